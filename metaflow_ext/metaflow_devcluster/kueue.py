"""What the cluster knows of Kueue: its kinds, which workloads are queued, and scripts of what a queue says.

There is no Kueue here, and nothing is counted. A LocalQueue carries a script: the conditions of its Workloads over time, as they
were recorded from a real one or as somebody wants to see them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from .controllers.objects import labels_of, owners_of
from .store import Store

Object = dict[str, Any]
GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
WORKLOADS, LOCAL_QUEUES = f"workloads.{GROUP}", f"localqueues.{GROUP}"
QUEUE_NAME, JOB_UID = f"{GROUP}/queue-name", f"{GROUP}/job-uid"
SCRIPT = "metaflow-devcluster/script"
"""Annotation of a LocalQueue."""
QUEUED = {"jobs.batch": "job", "jobsets.jobset.x-k8s.io": "jobset"}
"""The kinds that wait in queues, and the prefix of their Workloads' names."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """`conditions` are by type: status, reason, message. `status` and `spec` are merged into the Workload, null removes."""

    after: float = 0.0  # seconds, since the step before or the creation
    conditions: dict[str, list[str]] = field(default_factory=dict)
    status: Object = field(default_factory=dict)
    spec: Object = field(default_factory=dict)
    suspend: bool | None = None  # of the workload itself


ADMIT_AT_ONCE = (
    Step(
        conditions={
            "QuotaReserved": ["True", "QuotaReserved", "Quota reserved in ClusterQueue devcluster"],
            "Admitted": ["True", "Admitted", "The workload is admitted"],
        },
        suspend=False,
    ),
)


def no_such_queue(name: str) -> Step:
    return Step(conditions={"QuotaReserved": ["False", "Inadmissible", f"LocalQueue {name} doesn't exist"]})


def parse_script(text: str) -> tuple[Step, ...]:
    """ValueError in one sentence where it is none."""
    try:
        found = json.loads(text)
        steps = tuple(Step(**entry) for entry in found)
        for step in steps:
            is_good = all(len(words) == 3 for words in step.conditions.values()) and float(step.after) >= 0
            if not is_good:
                raise ValueError("a condition is [status, reason, message], and `after` is in seconds")
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"The script is not a list of steps: {error}.") from error
    return steps


def is_queued(obj: Object) -> bool:
    """Waits in a queue by itself; what belongs to another workload waits with that."""
    kind = str(obj.get("kind")).lower()
    is_child = any(owner.get("controller") for owner in owners_of(obj))
    return kind in QUEUED.values() and bool(labels_of(obj).get(QUEUE_NAME)) and not is_child


def is_played(store: Store) -> bool:
    """Whether somebody has made this a cluster with queues."""
    return WORKLOADS in store.resources and LOCAL_QUEUES in store.resources


def definitions() -> list[Object]:
    """The CustomResourceDefinitions; of what they hold only what is needed here is known."""
    return [_definition("Workload", "workloads", "wl"), _definition("LocalQueue", "localqueues", "queue")]


def _definition(kind: str, plural: str, short: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": VERSION, "served": True, "storage": True, "subresources": {"status": {}}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List", "shortNames": [short]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced",
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
