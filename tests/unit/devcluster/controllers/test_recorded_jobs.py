"""Every status that a real Job controller wrote in the recordings is the one that is decided here."""

from __future__ import annotations

import copy
import datetime
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metaflow_devcluster.controllers import job as decisions
from metaflow_devcluster.controllers.objects import is_controlled_by, parse_time

TRACES = Path(__file__).parents[3] / "traces"
SCENARIOS = sorted(path.name.partition(".")[0] for path in TRACES.glob("*.jsonl.gz"))
Object = dict[str, Any]

# The recordings hold what was written, not what the controller had seen by then: in these few writes it acted on
# pods of a moment before, or had just deleted the pods that the recording shows as deleted.
UNSEEN = {
    "job_deadline": ("conditions",),
    "kueue_deactivated": ("ready",),
    "node_lost": ("terminating",),
    "worker_and_control_fail": ("terminating", "conditions"),
    "worker_fail_perindex": ("failedIndexes",),
}


def steps(scenario: str) -> Iterator[tuple[float, Object, Object, list[Object]]]:
    """For each recorded write of a Job's status: when, the Job before, the Job after, its pods at that moment."""
    objects: dict[tuple[str, str], Object] = {}
    with gzip.open(TRACES / f"{scenario}.s2.jsonl.gz", "rt") as file:
        for entry in map(json.loads, file):
            new = entry["object"]
            if new["kind"] not in ("Job", "Pod"):
                continue
            key = (new["kind"], new["metadata"]["name"])
            old = objects.get(key)
            if entry["type"] == "MODIFIED" and new["kind"] == "Job" and old and old["status"] != new["status"]:
                uid = new["metadata"]["uid"]
                pods = [pod for (kind, _), pod in objects.items() if kind == "Pod" and is_controlled_by(pod, uid)]
                yield entry["t"], old, new, pods
            if entry["type"] == "DELETED":
                objects.pop(key, None)
            else:
                objects[key] = new


def comparable(status: Object, without: tuple[str, ...] = ()) -> Object:
    found = copy.deepcopy(status)
    for key in without:
        found.pop(key, None)
    for entry in found.get("conditions", []):
        for key in ("lastProbeTime", "lastTransitionTime"):
            entry.pop(key, None)
    for key in ("startTime", "completionTime"):
        if key in found:
            found[key] = "set"
    for uids in found.get("uncountedTerminatedPods", {}).values():
        uids.sort()
    return found


def moment(job: Object) -> datetime.datetime:
    """About when the controller wrote: its newest time stamp."""
    status = job["status"]
    texts = [status.get("startTime"), status.get("completionTime"), job["metadata"]["creationTimestamp"]]
    texts += [entry["lastTransitionTime"] for entry in status.get("conditions", [])]
    return max(found for text in texts if (found := parse_time(text)))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_recorded_status_is_decided(scenario: str) -> None:
    different, without = [], UNSEEN.get(scenario, ())
    backoffs: dict[str, decisions.Backoff] = {}
    for at, before, after, pods in steps(scenario):
        uid = before["metadata"]["uid"]
        known = backoffs.get(uid, decisions.Backoff())
        decided = decisions.reconcile(before, pods, moment(after), backoff=known)
        backoffs[uid] = decided.backoff
        recorded, here = comparable(after["status"], without), comparable(decided.status, without)
        if recorded != here:
            different.append((at, recorded, here))
    assert different == []
