"""Reads what no watch brings: Events, and Kueue's Workload. On demand, seldom, and never a reason to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from ..cluster.protocol import EVENTS, ClusterClient, Resource
from ..errors import ClusterError, Forbidden, NotFound
from ..spec import labels
from ..status.model import Observation, Phase, WorkloadStatus
from .picture import Picture, uid_of

# Seconds of waiting after which Events are read. They are for people, and each reading costs some requests: what can be read
# from the objects themselves comes by the watches at once.
SCHEDULE = (5.0, 30.0, 150.0, 600.0)
_MOST_PODS = 2
_PENDING = "PendingWorkloadsSummary"
_KUEUE_VERSIONS = ("v1beta2", "v1beta1")


class CloserLook:
    """`tell` hears once of each permission that is missing."""

    def __init__(self, client: ClusterClient, namespace: str, tell: Callable[[str], None]) -> None:
        self._client = client
        self._namespace = namespace
        self._tell = tell
        self._denied: set[str] = set()
        self._waiting_since: datetime | None = None
        self._looks = 0
        self._has_run = False
        self._workloads: Resource | None = None
        self._visibility: Resource | Literal[False] | None = None  # None: not looked for yet

    def is_due(self, status: WorkloadStatus, at: datetime) -> bool:
        """While the workload does not run: after the seconds of SCHEDULE, then each time as long again as its last step."""
        if status.phase not in (Phase.PENDING, Phase.QUEUED, Phase.STARTING):
            self._waiting_since, self._has_run = None, True
            return False
        if self._waiting_since is None:
            self._waiting_since, self._looks = at, 0
            if self._has_run and status.phase is Phase.QUEUED:
                return True  # what is known of its Workload is that it was admitted; by now that says why it was stopped
        beyond = max(0, self._looks - len(SCHEDULE) + 1)
        due = SCHEDULE[min(self._looks, len(SCHEDULE) - 1)] + beyond * SCHEDULE[-1]
        if (at - self._waiting_since).total_seconds() < due:
            return False
        self._looks += 1
        return True

    def look(self, picture: Picture, observation: Observation) -> None:
        """Adds what there is to the picture; ClusterErrors but a missing permission mean: another time."""
        for uid in _worth_a_look(observation):
            self.look_at(picture, uid)
        workload = observation.workload or {}
        if is_queued_by_kueue(workload):
            resource = self._kueue()
            found = self._list(resource, label_selector=f"{labels.KUEUE_JOB_UID}={uid_of(workload)}") if resource else []
            picture.admission = found[-1] if found else picture.admission
            if picture.admission and not (picture.admission.get("spec") or {}).get("active", True):
                self.look_at(picture, uid_of(picture.admission))  # Kueue takes the words of a check back when it gives up
            picture.queued_ahead = self._ahead(picture.admission) if picture.admission else None

    def look_at(self, picture: Picture, uid: str) -> None:
        """The Events of one object."""
        picture.add_events(self._list(EVENTS, field_selector=f"involvedObject.uid={uid}"))

    def _list(self, resource: Resource, **selectors: str) -> list[Mapping[str, Any]]:
        if resource.plural in self._denied:
            return []
        try:
            return list(self._client.list(resource, self._namespace, **selectors).get("items") or ())
        except Forbidden as error:
            self._denied.add(resource.plural)
            self._tell(f"Some causes of waiting and failing can't be told: {error}")
        except ClusterError:
            pass
        return []

    def _ahead(self, admission: Mapping[str, Any]) -> int | None:
        """By Kueue's visibility API, which many clusters don't serve and not everybody may read: then it is just not told."""
        if self._visibility is None:
            served = _served(self._client, "visibility.kueue.x-k8s.io", "localqueues/pendingworkloads", _PENDING)
            self._visibility = served or False
        queue = (admission.get("spec") or {}).get("queueName")
        if not self._visibility or not queue:
            return None
        group, version = self._visibility.group, self._visibility.version
        pending = Resource(group, version, f"localqueues/{queue}/pendingworkloads", _PENDING)
        try:
            items = self._client.list(pending, self._namespace).get("items") or ()
        except (Forbidden, NotFound):
            self._visibility = False
            return None
        except ClusterError:
            return None
        name = (admission.get("metadata") or {}).get("name")
        return next((item.get("positionInClusterQueue") for item in items if item["metadata"].get("name") == name), None)

    def _kueue(self) -> Resource | None:
        self._workloads = self._workloads or kueue_resource(self._client)
        return self._workloads


def is_queued_by_kueue(workload: Mapping[str, Any]) -> bool:
    return bool(((workload.get("metadata") or {}).get("labels") or {}).get(labels.KUEUE_QUEUE))


def kueue_resource(client: ClusterClient, plural: str = "workloads", kind: str = "Workload") -> Resource | None:
    """A kind of Kueue's in the version that the cluster serves; None where it can't be told, or there is no Kueue."""
    return _served(client, "kueue.x-k8s.io", plural, kind)


def _served(client: ClusterClient, group: str, plural: str, kind: str) -> Resource | None:
    for version in _KUEUE_VERSIONS:
        resource = Resource(group, version, plural, kind)
        try:
            if client.serves(resource):
                return resource
        except ClusterError:
            return None
    return None


def _worth_a_look(observation: Observation) -> Iterator[str]:
    """The uids of the workload, its Jobs, and a few pods that have a node and don't run."""
    if observation.workload is not None:
        yield uid_of(observation.workload)
    yield from filter(None, map(uid_of, observation.jobs))
    stuck = [
        record.object
        for record in observation.pods
        if not record.deleted
        and (record.object.get("status") or {}).get("phase") == "Pending"
        and (record.object.get("spec") or {}).get("nodeName")
    ]
    yield from map(uid_of, stuck[:_MOST_PODS])
