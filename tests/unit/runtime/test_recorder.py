"""A recording replays to what was seen, and holds nothing that could be secret."""

from __future__ import annotations

import json
from typing import Any

from metaflow_extensions.kubernetes_ext import replay
from metaflow_extensions.kubernetes_ext.cluster.protocol import EVENTS, Resource
from metaflow_extensions.kubernetes_ext.runtime.recorder import REMOVED, Recorder, redacted
from metaflow_extensions.kubernetes_ext.status.model import Phase
from metaflow_extensions.kubernetes_ext.status.trace import parse_trace
from tests.fakes import FakeClock, FakeCluster
from tests.unit.runtime.workloads import BACKEND, JOBSETS, Gang


def test_values_of_variables_commands_and_copies_of_the_object_are_removed_at_any_depth() -> None:
    container = {
        "name": "main",
        "command": ["sh", "-c", "TOKEN=s3cret run"],
        "args": ["--password=s3cret"],
        "env": [
            {"name": "TOKEN", "value": "s3cret"},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}},
        ],
    }
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "s3cret", "kept": "yes"}
    jobset = {
        "metadata": {"annotations": annotations, "managedFields": [{"fieldsV1": {}}], "labels": {"args": "a label"}},
        "spec": {"replicatedJobs": [{"template": {"spec": {"template": {"spec": {"containers": [container]}}}}}]},
    }
    found = redacted(jobset)
    assert "s3cret" not in json.dumps(found)
    assert found["metadata"] == {"annotations": {"kept": "yes"}, "labels": {"args": "a label"}}
    made = found["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    assert made["command"] == made["args"] == [REMOVED]
    assert made["env"] == [
        {"name": "TOKEN", "value": REMOVED},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}},
    ]


def record(clock: FakeClock, cluster: FakeCluster, gang: Gang) -> tuple[Phase, list[dict[str, Any]]]:
    lines: list[str] = []
    phase = Recorder(cluster, BACKEND, gang.object, clock=clock, write=lines.append).record()
    return phase, [json.loads(line) for line in lines]


def test_a_recorded_failure_replays_to_the_same_verdict() -> None:
    clock, cluster = FakeClock(), FakeCluster()
    gang = Gang(cluster, 3)
    clock.at(2, gang.start)
    clock.at(8, lambda: gang.set_pod(2, "Failed", exit_code=3))
    clock.at(9, lambda: gang.finish("Failed"))
    event = {"metadata": {"name": "e"}, "involvedObject": {"uid": gang.object["metadata"]["uid"]}, "reason": "Failed"}
    clock.at(9, lambda: cluster.update(EVENTS, event))
    phase, entries = record(clock, cluster, gang)
    assert phase is Phase.FAILED
    found = replay.summary(list(replay.moments(parse_trace(map(json.dumps, entries)))))
    assert found["phase"] == "Failed"
    assert (found["failure"]["role"], found["failure"]["rank"], found["failure"]["exit_code"]) == ("worker", 2, 3)
    assert found["phases"][0][1] == "Pending"
    kinds = [(entry["type"], entry["object"]["kind"]) for entry in entries]
    assert kinds.count(("ADDED", "JobSet")) == 1
    assert kinds.count(("ADDED", "Event")) == 1
    assert kinds.count(("ADDED", "Pod")) == 3


def test_a_deletion_is_recorded_and_ends_it() -> None:
    clock, cluster = FakeClock(), FakeCluster()
    gang = Gang(cluster, 2)
    clock.at(2, gang.start)
    clock.at(5, lambda: cluster.remove(JOBSETS, gang.object["metadata"]["name"]))
    _, entries = record(clock, cluster, gang)
    assert ("DELETED", "JobSet") in [(entry["type"], entry["object"]["kind"]) for entry in entries]
    found = replay.summary(list(replay.moments(entries)))
    assert found["phase"] == "Gone"


def test_why_kueue_lets_it_wait_is_in_the_recording() -> None:
    workloads = Resource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
    clock, cluster = FakeClock(), FakeCluster((workloads,))
    gang = Gang(cluster, 2)
    uid, name = gang.object["metadata"]["uid"], gang.object["metadata"]["name"]
    gang.object["metadata"].setdefault("labels", {})["kueue.x-k8s.io/queue-name"] = "lq"
    gang.object["spec"]["suspend"] = True
    cluster.update(JOBSETS, gang.object)
    reason = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "insufficient unused quota for cpu"}
    queued = {
        "metadata": {
            "name": "jobset-g",
            "labels": {"kueue.x-k8s.io/job-uid": uid},
            "ownerReferences": [{"kind": "JobSet", "name": name, "uid": uid}],
        },
        "status": {"conditions": [reason]},
    }
    cluster.update(workloads, queued)

    def say(message: str) -> None:
        """More often than anybody lists."""
        cluster.update(workloads, {**queued, "status": {"conditions": [{**reason, "message": message}]}})

    for number in range(4):
        clock.at(3 + number / 10, lambda number=number: say(f"{number} more needed"))
    clock.at(20, lambda: cluster.remove(JOBSETS, name))
    _, entries = record(clock, cluster, gang)
    waits = [moment.status.waiting.summary for moment in replay.moments(entries) if moment.status.waiting]
    for words in ("insufficient unused quota for cpu", *(f"{number} more needed" for number in range(4))):
        assert any(words in summary for summary in waits), words
