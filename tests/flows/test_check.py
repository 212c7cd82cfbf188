"""`kubernetes check`: each precondition that is broken has its line. All at once, each in a step of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cluster.protocol import Resource
from tests.contract import places
from tests.contract.waiting import until
from tests.flows.conftest import Runner, devcluster_runner, real_runner

FLOW = "check_flow.py"
SMALL = {"cpu": 0.1, "memory": 200, "disk": 10}
LOCAL_QUEUES = Resource("kueue.x-k8s.io", "v1beta2", "localqueues", "LocalQueue")
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")
QUEUE = "kueue.x-k8s.io/queue-name"

# Of each step: attributes, variables, and what is said: the check, and words of its text.
ON_EVERY: dict[str, tuple[dict[str, Any], dict[str, str], str, str]] = {
    "python": ({}, {"METAFLOW_INIT_SCRIPT": "PATH=/nowhere"}, "python", "The image has no command python"),
    "secret": ({"secrets": "not-there"}, {}, "secret", '"not-there" not found'),
    "account": ({"service_account": "not-there"}, {}, "service account", '"not-there" not found'),
    "room": ({"cpu": 1000}, {}, "node", "Insufficient cpu"),
    "port": ({}, {"METAFLOW_S3_ENDPOINT_URL": "http://127.0.0.1:9"}, "network", "can't be reached from the pod"),
    "quota": ({}, {}, "quota", "must specify limits.memory"),
}
ON_REAL: dict[str, tuple[dict[str, Any], dict[str, str], str, str]] = {
    "bash": ({}, {}, "image", "The image has no bash"),
    "claim": ({"persistent_volume_claims": {"not-there": "/data"}}, {}, "volume claim", '"not-there" not found'),
    "name": ({}, {"METAFLOW_S3_ENDPOINT_URL": "http://s3.invalid"}, "network", "s3.invalid, can't be resolved"),
    "security": ({}, {}, "pod security", 'PodSecurity "restricted'),
    "limits": ({}, {}, "limit range", "must be less than or equal to memory limit of 100Mi"),
    "queue": ({"labels": {QUEUE: "not-there"}}, {}, "queue", "not-there doesn't exist"),
    "stopped": ({"labels": {QUEUE: "stopped"}}, {}, "queue", "stopped"),
}


def check(runner: Runner, told: dict[str, Any], *words: str, **environment: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, rows, and what was said beside them."""
    done = subprocess.run(
        runner.command(FLOW, "kubernetes", "check", "--json", *words),
        cwd=runner.home, env={**runner.environment, "TEST_CHECK": json.dumps(told), **environment},
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout or "[]"), done.stderr


def of_step(rows: list[dict[str, Any]], step: str) -> list[tuple[str, str, str]]:
    return [(row["state"], row["check"], row["text"]) for row in rows if step in row["steps"]]


def broken(rows: list[dict[str, Any]], step: str) -> tuple[str, str]:
    """The check and the text of the step's only broken row."""
    found = [(name, text) for state, name, text in of_step(rows, step) if state == "broken"]
    assert len(found) == 1, (step, found, rows)
    return found[0]


def told_of(cases: dict[str, Any], **namespaces: str) -> dict[str, Any]:
    told: dict[str, Any] = {"start": {"attributes": SMALL}}
    for step, (attributes, variables, _, _) in cases.items():
        where = {"namespace": namespaces[step]} if step in namespaces else {}
        told[step] = {"attributes": {**SMALL, **attributes, **where}, "variables": variables}
    return told


def test_broken_preconditions_are_named_on_the_development_cluster(tmp_path: Path, devcluster: dict[str, str]) -> None:
    runner = devcluster_runner(tmp_path, devcluster)
    other = devcluster_runner(tmp_path, devcluster)
    other.kubectl("create", "quota", "limit", "--hard=limits.memory=1Gi")
    until(lambda: "hard:" in other.kubectl("get", "quota", "limit", "-o", "yaml").partition("status:")[2], "it is counted")
    cases = {step: case for step, case in ON_EVERY.items() if step != "port"}  # its datastore is local
    told = told_of(cases, quota=other.namespace)
    told["image"] = {"attributes": {**SMALL, "image": "devcluster/does-not-exist:1"}}
    told["nowhere"] = {"attributes": {**SMALL, "namespace": "not-there"}}
    code, rows, said = check(runner, told, "--probe")
    assert code == 1, said
    for step, (_, _, name, words) in cases.items():
        found, text = broken(rows, step)
        assert (found, words in text) == (name, True), (step, text)
    assert broken(rows, "image")[0] == "image"
    assert broken(rows, "nowhere") == ("namespace", "There is no namespace not-there.")
    assert ("ok", "pod") in [row[:2] for row in of_step(rows, "start")]
    assert "No resources found" in runner.kubectl("get", "jobs,pods"), "the probes are deleted"


@pytest.fixture
def real_place(real_cluster: places.Server, tmp_path: Path) -> Iterator[tuple[Runner, places.Place]]:
    with real_cluster.place() as place:
        yield real_runner(tmp_path, place), place


@pytest.mark.real
def test_broken_preconditions_are_named_on_a_real_cluster(
    real_cluster: places.Server, real_place: tuple[Runner, places.Place]
) -> None:
    runner, place = real_place
    kind = {"apiVersion": LOCAL_QUEUES.api_version, "kind": LOCAL_QUEUES.kind}
    queue = {**kind, "metadata": {"name": "stopped"}, "spec": {"clusterQueue": "metaflow", "stopPolicy": "Hold"}}
    place.admin.create(LOCAL_QUEUES, place.namespace, queue)
    cases = {**ON_EVERY, **ON_REAL}
    with ExitStack() as stack:
        security, quota, limits = (stack.enter_context(real_cluster.place()) for _ in range(3))
        rights = stack.enter_context(real_cluster.place(without=places.Permission("batch", "jobs", "create")))
        level = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
        security.admin.patch(places.NAMESPACES, "", security.namespace, level)
        quota.limit({"limits.memory": "1Gi"})
        most = {"limits": [{"type": "Container", "max": {"memory": "100Mi"}}]}
        limits.admin.create(LIMIT_RANGES, limits.namespace, {"metadata": {"name": "most"}, "spec": most})
        told = told_of(cases, security=security.namespace, quota=quota.namespace, limits=limits.namespace)
        told["image"] = {"attributes": {**SMALL, "image": place.missing_image}}
        told["bash"]["attributes"]["image"] = Path(os.environ[f"{places.CLUSTER}STATE"], "pause-image").read_text().split()[0]
        told["rights"] = {"attributes": {**SMALL, "namespace": rights.namespace}}
        told["nowhere"] = {"attributes": {**SMALL, "namespace": "not-there"}}
        told["gang"] = {"attributes": SMALL}
        code, rows, said = check(runner, told, "--probe", METAFLOW_KUBERNETES_JOBSET_VERSION="v1alpha9")
    assert code == 1, said
    for step, (_, _, name, words) in cases.items():
        found, text = broken(rows, step)
        assert (found, words in text) == (name, True), (step, text)
    assert broken(rows, "image")[0] == "image"
    assert ("ok", "pod") in [row[:2] for row in of_step(rows, "start")]
    whole = [(row["check"], row["text"]) for row in rows if row["state"] == "broken" and not row["steps"]]
    texts = "\n".join(f"{name}: {text}" for name, text in whole)
    assert f"permission: You may not create jobs.batch in namespace {rights.namespace}." in texts
    assert "permission: You may do nothing in namespace not-there." in texts
    assert "jobset: The cluster does not serve jobsets.jobset.x-k8s.io/v1alpha9" in texts
    assert "Served there: v1alpha2." in texts
    until(lambda: not place.pods(), "the probes are deleted")


def test_a_server_that_does_not_answer_is_the_only_line(tmp_path: Path, devcluster: dict[str, str]) -> None:
    config = json.loads(Path(devcluster["KUBECONFIG"]).read_text())
    config["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:9"
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    runner = devcluster_runner(tmp_path, devcluster)
    code, (row,), _ = check(runner, told_of({}), KUBECONFIG=str(path))
    assert (code, row["check"], row["state"]) == (1, "api server", "broken")
    assert "can't be reached: Connection refused" in row["text"]
