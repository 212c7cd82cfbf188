"""What can't work is one clear sentence with what to do, before anything is uploaded or submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.conftest import Done, Runner


def refused(done: Done, runner: Runner, *texts: str) -> None:
    assert done.code != 0
    for text in texts:
        assert text in done.output, str(done)
    assert "Traceback" not in done.output, str(done)
    assert not list(Path(runner.home).glob(".metaflow/*/data/*")), "something was uploaded"
    assert runner.kubectl("get", "jobsets,jobs,pods", "-o", "name", "-l", "metaflow.org/flow=GangFlow") == ""


@pytest.mark.parametrize(
    ("option", "texts"),
    [
        pytest.param("cpu=-1", ["cpu must be greater than 0"], id="negative cpu"),
        pytest.param("memory=lots", ["memory", "lots", "4Gi"], id="memory in words"),
        pytest.param("gpu=1.5", ["gpu is a whole number"], id="half a gpu"),
        pytest.param("port=99999", ["port is a whole number from 1 to 65535"], id="port"),
        pytest.param("qos=best", ["qos is one of guaranteed, burstable"], id="quality of service"),
        pytest.param("nonsense=1", ["does not support the attribute 'nonsense'"], id="unknown attribute"),
        pytest.param("logs=some", ["logs is control, all, none or ranks"], id="logs"),
        pytest.param("namespace=No_Such", ["namespace", "No_Such", "not valid in Kubernetes"], id="namespace"),
        pytest.param("secrets=A_B", ["secret", "A_B", "not valid in Kubernetes"], id="secret's name"),
    ],
)
def test_wrong_attributes(runner: Runner, option: str, texts: list[str]) -> None:
    refused(runner.run("gang_flow.py", "run", "--with", f"kubernetes:{option}"), runner, *texts)


def test_no_configuration(runner: Runner) -> None:
    done = runner.run("gang_flow.py", "run", "--with", "kubernetes", KUBECONFIG="")
    refused(done, runner, "No Kubernetes configuration", "Set KUBECONFIG")


def test_a_kubeconfig_that_is_not_there(runner: Runner) -> None:
    done = runner.run("gang_flow.py", "run", "--with", "kubernetes", KUBECONFIG="/no/such/file")
    refused(done, runner, "/no/such/file", "does not exist")


def test_a_kubeconfig_that_is_none(runner: Runner) -> None:
    wrong = runner.home / "wrong.yaml"
    wrong.write_text("just: nonsense\n")
    refused(runner.run("gang_flow.py", "run", "--with", "kubernetes", KUBECONFIG=str(wrong)), runner, "wrong.yaml")


def test_a_cluster_that_is_not_reached(runner: Runner) -> None:
    text = Path(runner.environment["KUBECONFIG"]).read_text()
    elsewhere = runner.home / "elsewhere.yaml"
    elsewhere.write_text(text.replace("http://127.0.0.1:", "http://127.0.0.1:1/x"))
    done = runner.run("gang_flow.py", "run", "--with", "kubernetes", KUBECONFIG=str(elsewhere))
    refused(done, runner, "127.0.0.1:1")


def test_jobset_is_not_installed(runner: Runner) -> None:
    done = runner.run("gang_flow.py", "run", "--with", "kubernetes", METAFLOW_KUBERNETES_JOBSET_GROUP="jobset.example.org")
    refused(done, runner, "does not serve jobsets.jobset.example.org/v1alpha2", "train", "Install it")


def test_a_plain_flow_needs_no_jobset(runner: Runner) -> None:
    done = runner.run(
        "plain_flow.py", "run", "--with", "kubernetes:cpu=0.1,memory=100", METAFLOW_KUBERNETES_JOBSET_GROUP="jobset.example.org"
    )
    assert done.code == 0, str(done)
    assert "squares [1, 4, 9]" in done.output


def test_a_local_datastore_without_shared_files(runner: Runner) -> None:
    done = runner.run("gang_flow.py", "run", "--with", "kubernetes", METAFLOW_KUBERNETES_SHARED_FILES="")
    refused(done, runner, "--datastore=s3", "metaflow-devcluster run")


@pytest.mark.parametrize("size", ["0", "-1"])
def test_num_parallel_below_one(runner: Runner, size: str) -> None:
    done = runner.run("gang_flow.py", "run", "--with", "kubernetes:cpu=0.1", "--size", size)
    assert done.code != 0
    assert "num_parallel" in done.output
    assert "train" in done.output
    assert "JobSet" not in done.output
