"""Every status that a real JobSet controller wrote in the recordings is the one that is decided here.

A controller sees Jobs through a cache. So each recorded status must be what is decided for the Jobs as they were at
one of the last few writes before it.
"""

from __future__ import annotations

import copy
import datetime
import gzip
import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metaflow_devcluster.controllers import jobset as decisions
from metaflow_devcluster.controllers.objects import is_controlled_by

LAG = 7
TRACES = Path(__file__).parents[3] / "traces"
SCENARIOS = sorted(path.name.partition(".")[0] for path in TRACES.glob("*.jsonl.gz"))
Object = dict[str, Any]


def steps(scenario: str) -> Iterator[tuple[float, Object, Object, list[list[Object]]]]:
    """For each recorded write of a JobSet's status: when, the JobSet before and after, its Jobs at moments before."""
    objects: dict[tuple[str, str], Object] = {}
    moments: deque[list[Object]] = deque(maxlen=LAG)
    with gzip.open(TRACES / f"{scenario}.s2.jsonl.gz", "rt") as file:
        for entry in map(json.loads, file):
            new = entry["object"]
            if new["kind"] not in ("Job", "JobSet"):
                continue
            key = (new["kind"], new["metadata"]["name"])
            old = objects.get(key)
            is_write = entry["type"] == "MODIFIED" and new["kind"] == "JobSet"
            if is_write and old and old.get("status") != new.get("status"):
                uid = new["metadata"]["uid"]
                yield entry["t"], old, new, [[job for job in jobs if is_controlled_by(job, uid)] for jobs in moments]
            if entry["type"] == "DELETED":
                objects.pop(key, None)
            else:
                objects[key] = new
            moments.append([obj for (kind, _), obj in objects.items() if kind == "Job"])


def comparable(status: Object) -> Object:
    found = copy.deepcopy(status)
    for entry in found.get("conditions", []):
        entry.pop("lastTransitionTime")
    return found


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_recorded_status_is_decided(scenario: str) -> None:
    now = datetime.datetime.now(datetime.timezone.utc)
    different = []
    for at, before, after, moments in steps(scenario):
        recorded = comparable(after["status"])
        decided = [comparable(decisions.reconcile(before, jobs, now).status) for jobs in moments]
        if recorded not in decided:
            different.append((at, recorded, decided))
    assert different == []
