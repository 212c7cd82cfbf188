"""`python flow.py kubernetes COMMAND`, on the development cluster and on the real Kubernetes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
import yaml

from metaflow_extensions.kubernetes_ext import replay
from tests.contract.waiting import until
from tests.flows.conftest import ON_BOTH, ON_REAL_S3, Runner, running_gang
from tests.flows.test_failures import KUBERNETES, eventually, left_over, step_process

GANG = "gang_flow.py"


def command(runner: Runner, *words: str, code: int = 0) -> str:
    """What a command prints to standard output."""
    done = subprocess.run(
        runner.command(GANG, *words),
        cwd=runner.home,
        env=runner.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@contextmanager
def watching(runner: Runner, target: str) -> Iterator[list[str]]:
    """`describe --watch` on a terminal, from its first refreshed line to its end; the list has its output then."""
    seen: list[str] = []
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        runner.command(GANG, "kubernetes", "describe", target, "--watch"),
        cwd=runner.home, env=runner.environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    with process, open(ours, "rb", buffering=0) as terminal:
        output = b""
        while b"ranks run.\r\n\r\x1b[K" not in output:
            output += terminal.read(1024)
        yield seen
        with suppress(OSError):  # EIO: nobody has the other end any more
            while piece := terminal.read(1024):
                output += piece
    assert process.returncode == 0
    seen.append(output.decode())


@ON_BOTH
def test_a_gang_that_runs_is_listed_described_and_killed(runner: Runner) -> None:
    with running_gang(runner, "300") as (process, lines):
        (row,) = json.loads(command(runner, "kubernetes", "list", "--json"))
        target = f"{row['run_id']}/train"
        listed = command(runner, "kubernetes", "list").splitlines()
        assert listed[0].split()[:4] == ["NAME", "KIND", "RUN", "STEP"]
        assert listed[1].split()[:4] == [row["name"], "JobSet", row["run_id"], "train"]
        described = command(runner, "kubernetes", "describe", target)
        assert "Status:    Running" in described
        assert [line.split()[:2] for line in described.splitlines()[-2:]] == [["0", "control"], ["1", "worker"]]
        (found,) = json.loads(command(runner, "kubernetes", "describe", f"GangFlow/{target}", "--json"))
        assert (found["phase"], [rank["phase"] for rank in found["ranks"]]) == ("Running", ["Running", "Running"])
        assert "Running." in command(runner, "kubernetes", "why", target)
        assert command(runner, "kubernetes", "list", "-l", "metaflow.org/step=other") == ""
        assert "No unfinished" in subprocess.run(
            runner.command(GANG, "kubernetes", "kill", f"{row['run_id']}/join"),
            cwd=runner.home, env=runner.environment, capture_output=True, text=True, check=True,
        ).stderr  # fmt: skip
        with watching(runner, target) as seen:
            killed = command(runner, "kubernetes", "kill", target)
            assert f"JobSet {row['name']} of step train" in killed
        assert "All 2 ranks run.\r\n\r\x1b[KRunning for" in seen[0], "a line that stays, then one that is written over"
        assert ": 2 of 2 ranks run." in seen[0]
        assert "with `kubernetes kill`, with all 2 ranks." in seen[0]
    assert process.returncode != 0
    assert f"was killed by {runner.environment['METAFLOW_USER']} with `kubernetes kill`, with all 2 ranks." in "".join(lines)
    until(lambda: left_over(runner) == "", "nothing is left")


@ON_BOTH
def test_why_is_known_after_everything_is_gone(runner: Runner) -> None:
    assert runner.gang("run", "--size", "2", "--fail-rank", "1").code != 0
    until(lambda: left_over(runner) == "", "nothing is left")
    run_id = (runner.home / ".metaflow" / "GangFlow" / "latest_run").read_text()
    told = command(runner, "kubernetes", "why", run_id)
    assert f"{run_id}/train/" in told
    assert "Worker 0 (rank 1, pod " in told
    assert "failed with exit code 3" in told
    assert "|   about to fail" in told
    (found,) = json.loads(command(runner, "kubernetes", "why", f"{run_id}/train", "--json"))
    assert (found["failure"]["category"], found["failure"]["rank"], found["failure"]["exit_code"]) == ("user_error", 1, 3)
    assert found["timeline"][0]["what"].startswith("JobSet gangflow-train-")
    described = command(runner, "kubernetes", "describe", f"{run_id}/train")
    assert "Status:    Failed" in described
    assert "is not in the cluster any more" in described
    ranks = [line.split() for line in described.splitlines()[-2:]]
    assert [(rank[0], rank[1], rank[3]) for rank in ranks][1] == ("1", "worker", "Failed"), described
    assert "Nothing of 123 is in the cluster" in command(runner, "kubernetes", "why", "123", code=1)


@ON_BOTH
def test_events_and_manifest_outlive_the_workload(runner: Runner) -> None:
    assert runner.gang("run", "--size", "2", "--fail-rank", "1").code != 0
    until(lambda: left_over(runner) == "", "nothing is left")
    run_id = (runner.home / ".metaflow" / "GangFlow" / "latest_run").read_text()
    found = json.loads(command(runner, "kubernetes", "events", f"{run_id}/train", "--json"))
    told = {(event["object"]["kind"], event["reason"]) for event in found}
    assert {("Pod", "Scheduled"), ("Pod", "Started"), ("Job", "SuccessfulCreate")} <= told, told
    seen = [event["last_seen"] for event in found]
    assert seen == sorted(seen)
    lines = command(runner, "kubernetes", "events", f"{run_id}/train").splitlines()
    assert lines[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert len(lines) == len(found) + 1
    of_worker = json.loads(command(runner, "kubernetes", "events", f"{run_id}/train/{control_of(runner)}-worker-0", "--json"))
    assert {event["object"]["kind"] for event in of_worker} == {"Pod"}
    (manifest,) = json.loads(command(runner, "kubernetes", "manifest", f"{run_id}/train", "--json"))
    assert (manifest["kind"], manifest["metadata"]["name"][:14]) == ("JobSet", "gangflow-train")
    manifest["metadata"]["name"] = "again"
    assert "created" in post(runner, manifest)


def post(runner: Runner, manifest: dict[str, object]) -> str:
    path = runner.home / "again.json"
    path.write_text(json.dumps(manifest))
    return runner.kubectl("create", "-f", str(path))


def control_of(runner: Runner) -> str:
    code = (
        "from metaflow import Flow, namespace\nnamespace(None)\n"
        "print(*(task.id for task in Flow('GangFlow').latest_run['train'] if '-worker-' not in task.id))"
    )
    return runner.python(code).strip()


@ON_BOTH
def test_an_interrupted_run_is_remembered_with_the_state_that_it_was_in(runner: Runner) -> None:
    with running_gang(runner, "300") as (process, lines):
        os.killpg(process.pid, signal.SIGTERM)
    assert process.returncode != 0
    run_id = (runner.home / ".metaflow" / "GangFlow" / "latest_run").read_text()
    assert until(lambda: left_over(runner) == "", "nothing is left")
    (found,) = json.loads(command(runner, "kubernetes", "why", f"{run_id}/train", "--json"))
    assert (found["phase"], found["failure"]["category"], found["failure"]["reason"]) == ("Gone", "gone", "Interrupted"), lines
    assert "The run was interrupted (SIGTERM), and the JobSet deleted while " in command(
        runner, "kubernetes", "why", f"{run_id}/train"
    )


def test_what_the_cluster_refuses_is_remembered(runner: Runner) -> None:
    options = "cpu=0.1,memory=200,disk=10,namespace=nowhere"
    assert runner.run(GANG, "run", "--size", "2", TEST_GANG_ONLY=options).code != 0
    run_id = (runner.home / ".metaflow" / "GangFlow" / "latest_run").read_text()
    (found,) = json.loads(command(runner, "kubernetes", "why", run_id, "--json"))
    assert found["phase"] == "Failed"
    assert "nowhere" in found["failure"]["summary"]


def test_orphans_are_those_whose_step_process_is_gone(runner: Runner) -> None:
    with running_gang(runner, "20") as (process, _):
        (row,) = json.loads(command(runner, "kubernetes", "list", "--json"))
        assert (row["client"], command(runner, "kubernetes", "list", "--orphans")) == ("running", "")
        step = step_process(process.pid)
        process.kill()
    assert eventually(lambda: not os.path.exists(f"/proc/{step}")), "its step process detaches"
    (orphan,) = json.loads(command(runner, "kubernetes", "list", "--orphans", "--json"))
    assert (orphan["name"], orphan["client"], orphan["status"]) == (row["name"], "gone", "Running")
    (killed,) = json.loads(command(runner, "kubernetes", "kill", row["run_id"], "--json"))
    assert killed["name"] == row["name"]
    assert until(lambda: left_over(runner) == "", "nothing is left")


@ON_BOTH
def test_logs_come_from_pods_and_later_from_what_metaflow_has_kept(runner: Runner) -> None:
    done = runner.gang("run", "--size", "3")
    assert done.code == 0, str(done)
    run_id = (runner.home / ".metaflow" / "GangFlow" / "latest_run").read_text()
    words = ["kubernetes", "logs", f"{run_id}/train"]
    hello = [f"[rank {rank}] hello from rank {rank} of 3" for rank in range(3)]
    assert sorted(command(runner, *words, "--grep", "^hello").splitlines()) == hello
    assert command(runner, *words, "--rank", "1", "--grep", "hello").splitlines() == [hello[1]]
    assert len(command(runner, *words, "--tail", "1").splitlines()) == 3
    assert command(runner, *words, "--since", "2099-01-01T00:00:00Z") == ""
    runner.kubectl("delete", "jobsets,jobs,pods", "--all")
    until(lambda: left_over(runner) == "", "nothing is left")
    assert sorted(command(runner, *words, "--grep", "^hello").splitlines()) == hello
    assert "There is no task" in command(runner, "kubernetes", "logs", f"{run_id}/nope", code=1)
    assert "has no such rank" in command(runner, "kubernetes", "logs", f"{run_id}/train", "--rank", "9", code=1)
    assert "neither in the cluster nor" in command(runner, "kubernetes", "logs", "123", code=1)


def test_logs_follow_and_a_recording_replays(runner: Runner) -> None:
    with running_gang(runner, "6") as (process, lines):
        (row,) = json.loads(command(runner, "kubernetes", "list", "--json"))
        target = f"{row['run_id']}/train"
        recording = subprocess.Popen(
            runner.command(GANG, "kubernetes", "record", target, "-o", "trace.jsonl"), cwd=runner.home, env=runner.environment
        )
        followed = command(runner, "kubernetes", "logs", target, "--follow")
    assert process.returncode == 0, "".join(lines)
    assert recording.wait(60) == 0
    assert sorted(line for line in followed.splitlines() if "hello" in line) == [
        f"[rank {rank}] hello from rank {rank} of 2" for rank in range(2)
    ]
    found = list(replay.moments(replay.read(runner.home / "trace.jsonl")))
    assert replay.summary(found)["phase"] == "Succeeded"


@ON_BOTH
def test_a_manifest_can_be_posted_again_under_another_name(runner: Runner) -> None:
    done = runner.gang("run", "--size", "2")
    assert done.code == 0, str(done)
    run_id = (runner.home / ".metaflow" / "GangFlow" / "latest_run").read_text()
    manifest = yaml.safe_load(command(runner, "kubernetes", "manifest", f"{run_id}/train"))
    assert "status" not in manifest
    assert "uid" not in manifest["metadata"]
    manifest["metadata"]["name"] = "again"
    assert "created" in post(runner, manifest)
    until(lambda: "Completed" in runner.kubectl("get", "jobset", "again"), "it runs to its end", 120)


@ON_BOTH
def test_a_manifest_before_the_run_is_validated_with_its_jobs_and_pods(runner: Runner) -> None:
    words = ["--with", KUBERNETES, "kubernetes", "manifest", "--step", "train", "--num-parallel", "4"]
    manifest = yaml.safe_load(command(runner, *words, "--validate"))
    assert [entry["name"] for entry in manifest["spec"]["replicatedJobs"]] == ["control", "worker"]
    assert "how large" in command(runner, *words[:-2], code=1)


def permit_pods(runner: Runner) -> None:
    """What running flows does not need: the right to create pods. Without it, pods are not checked."""
    if runner.kind == "real":
        runner.as_admin("create", "role", "pods", "--verb=create", "--resource=pods")
        user = os.environ["METAFLOW_KUBERNETES_EXT_CLUSTER_USER"]
        runner.as_admin("create", "rolebinding", "pods", "--role=pods", f"--user={user}")
        until(lambda: "yes" in runner.kubectl("auth", "can-i", "create", "pods"), "the right is there")


def validated(runner: Runner, options: str, code: int) -> str:
    words = ["--with", f"{KUBERNETES},{options}", "kubernetes", "manifest", "--step", "train", "--num-parallel", "4"]
    return command(runner, *words, "--validate", code=code)


@ON_BOTH
def test_a_quota_that_the_pods_do_not_meet_is_found_before_the_run(runner: Runner) -> None:
    permit_pods(runner)
    runner.as_admin("create", "quota", "limit", "--hard=limits.memory=1Gi")
    until(lambda: "used:" in runner.as_admin("get", "quota", "limit", "-o", "yaml"), "it is counted")
    told = validated(runner, "qos=burstable", 1)
    assert "Job worker: ok" in told
    assert "a pod of worker: " in told
    assert "must specify limits.memory" in told


@ON_REAL_S3
def test_a_pod_security_standard_that_the_pods_violate_is_found_before_the_run(runner: Runner) -> None:
    permit_pods(runner)
    runner.as_admin("label", "namespace", runner.namespace, "pod-security.kubernetes.io/enforce=restricted")
    told = validated(runner, "qos=burstable", 1)
    assert "a pod of control: " in told
    assert 'violates PodSecurity "restricted:latest"' in told


@ON_REAL_S3
def test_without_the_right_to_create_pods_they_are_not_checked_and_that_is_said(runner: Runner) -> None:
    runner.as_admin("create", "quota", "limit", "--hard=limits.memory=1Gi")
    words = ["--with", KUBERNETES, "kubernetes", "manifest", "--step", "train", "--num-parallel", "4", "--validate"]
    done = subprocess.run(
        runner.command(GANG, *words), cwd=runner.home, env=runner.environment, capture_output=True, text=True, check=True
    )
    assert "a pod of worker: not checked, since you may not create pods here" in done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param(["describe", "1/2/3/4"], "is not RUN, RUN/STEP or RUN/STEP/TASK", id="a path that is too long"),
        pytest.param(["describe", "1"], "Nothing of 1 is in the cluster", id="no such run"),
        pytest.param(["manifest", "--step", "nope"], "There is no step 'nope'", id="no such step"),
        pytest.param(["manifest", "--step", "train"], "is not for Kubernetes", id="a step without @kubernetes"),
    ],
)
def test_what_can_not_be_answered_is_said(runner: Runner, words: list[str], text: str) -> None:
    assert text in command(runner, "kubernetes", *words, code=1)
