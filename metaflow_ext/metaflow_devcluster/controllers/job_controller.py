"""Carries out the Job controller's decisions on the store, and looks after pods whose Job is gone."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable

from ..cluster import Cluster
from ..errors import ApiError, NotFound
from ..store import Change
from . import job as decisions
from .delays import Delays
from .events import Recorder
from .job_pods import pod_of
from .manager import Key, TryAgain
from .objects import (
    TRACKING_FINALIZER,
    Object,
    controller_of,
    is_controlled_by,
    is_tracked,
    key_of,
    meta,
    name_of,
    namespace_of,
    status_of,
    uid_of,
)

JOBS = "jobs.batch"
_ORPHANS = "orphans"


class JobController:
    """Keys are ("job", namespace, name), and ("orphans", namespace, pod) for pods without their Job."""

    def __init__(self, cluster: Cluster, now: Callable[[], datetime.datetime], delays: Delays) -> None:
        self._cluster, self._store = cluster, cluster.store
        self._now, self._delays = now, delays
        self._record = Recorder(cluster.store, "job-controller", now)
        self._backoffs: dict[str, decisions.Backoff] = {}
        self.first_retry = delays.create_backoff

    def keys(self, change: Change) -> Iterable[tuple[Key, float]]:
        obj = change.object
        if change.resource == JOBS:
            yield ("job", *key_of(obj)), 0.0
            if change.type == "DELETED":
                self._backoffs.pop(uid_of(obj), None)
                for pod in self._pods_of(obj):
                    yield (_ORPHANS, *key_of(pod)), 0.0
        elif change.resource == "pods":
            owner = controller_of(obj, "Job")
            if owner is not None and self._job(namespace_of(obj), owner) is not None:
                after = 0.0 if change.type == "ADDED" else self._delays.pod_batch
                yield ("job", namespace_of(obj), owner["name"]), after
            elif is_tracked(obj) and change.type != "DELETED":
                yield (_ORPHANS, *key_of(obj)), 0.0

    def reconcile(self, key: Key) -> float | None:
        kind, namespace, name = key
        if kind == _ORPHANS:
            self._release_orphan(namespace, name)
            return None
        job = self._store.find(JOBS, namespace, name)
        if job is None or job["spec"].get("managedBy") not in (None, "kubernetes.io/job-controller"):
            return None
        known = self._backoffs.get(uid_of(job), decisions.Backoff())
        actions = decisions.reconcile(
            job, self._pods_of(job), self._now(), backoff=known, first_backoff=self._delays.pod_backoff
        )
        self._backoffs[uid_of(job)] = actions.backoff
        return self._carry_out(job, actions)

    # -- reading

    def _job(self, namespace: str, owner: Object) -> Object | None:
        job = self._store.find(JOBS, namespace, owner["name"])
        return job if job is not None and uid_of(job) == owner["uid"] else None

    def _pods_of(self, job: Object) -> list[Object]:
        uid = uid_of(job)
        return self._store.list("pods", namespace_of(job), lambda pod: is_controlled_by(pod, uid))

    # -- writing

    def _carry_out(self, job: Object, actions: decisions.Actions) -> float | None:
        namespace = namespace_of(job)
        for name in actions.untrack_first:
            self._untrack(namespace, name)
        for name in actions.delete:
            self._delete(job, name)
        created, error = self._create(job, actions.create)
        if actions.status:
            self._write_status(job, actions.status, len(actions.create) - created)
        for type, reason, message in actions.events:
            self._record(job, type, reason, message)
        for name in actions.untrack:
            self._untrack(namespace, name)
        if error is not None:
            raise TryAgain(str(error))
        return actions.after

    def _create(self, job: Object, wanted: list[decisions.NewPod]) -> tuple[int, ApiError | None]:
        """Create pods until one is refused, which is the quota or the template and would refuse the others too."""
        for count, new in enumerate(wanted):
            try:
                pod = self._cluster.create("pods", pod_of(job, new.index, new.failures))
            except ApiError as error:
                self._record(job, "Warning", "FailedCreate", f"Error creating: {error}")
                return count, error
            self._record(job, "Normal", "SuccessfulCreate", f"Created pod: {name_of(pod)}")
        return len(wanted), None

    def _delete(self, job: Object, name: str) -> None:
        try:
            self._store.delete("pods", namespace_of(job), name)
        except NotFound:
            return
        self._record(job, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")

    def _write_status(self, job: Object, status: Object, refused: int) -> None:
        active = status.get("active", 0) - refused
        wanted = {**status, "active": active} if active > 0 else {k: v for k, v in status.items() if k != "active"}
        if wanted != status_of(job):
            self._store.update(JOBS, {**job, "status": wanted}, status_only=True)

    def _untrack(self, namespace: str, name: str) -> None:
        def change(pod: Object) -> None:
            rest = [entry for entry in meta(pod).get("finalizers") or [] if entry != TRACKING_FINALIZER]
            meta(pod).pop("finalizers", None)
            if rest:
                meta(pod)["finalizers"] = rest

        try:
            self._store.modify("pods", namespace, name, change)
        except NotFound:
            return

    def _release_orphan(self, namespace: str, name: str) -> None:
        pod = self._store.find("pods", namespace, name)
        if pod is None or not is_tracked(pod):
            return
        owner = controller_of(pod, "Job")
        if owner is None or self._job(namespace, owner) is None:
            self._untrack(namespace, name)
