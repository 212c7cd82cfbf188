"""Carries out the JobSet controller's decisions on the store."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Callable, Iterable

from ..cluster import Cluster
from ..errors import AlreadyExists, ApiError, NotFound
from ..store import Change
from . import jobset as decisions
from .events import Recorder
from .jobset_children import job_name, job_of, service_of
from .manager import Key, TryAgain
from .objects import (
    Object,
    controller_of,
    is_being_deleted,
    is_controlled_by,
    key_of,
    name_of,
    namespace_of,
    spec_of,
    status_of,
    uid_of,
)

JOBS, JOBSETS = "jobs.batch", "jobsets.jobset.x-k8s.io"
_RESUMED_FIELDS = ("nodeSelector", "schedulingGates", "tolerations")


class JobSetController:
    """Keys are (namespace, name)."""

    first_retry = 0.005

    def __init__(self, cluster: Cluster, now: Callable[[], datetime.datetime]) -> None:
        self._cluster, self._store = cluster, cluster.store
        self._now = now
        self._record = Recorder(cluster.store, "jobset", now)

    def keys(self, change: Change) -> Iterable[tuple[Key, float]]:
        if change.resource == JOBSETS:
            yield key_of(change.object), 0.0
        elif change.resource in (JOBS, "services"):
            owner = controller_of(change.object, "JobSet")
            if owner is not None:
                yield (namespace_of(change.object), owner["name"]), 0.0

    def reconcile(self, key: Key) -> float | None:
        jobset = self._store.find(JOBSETS, *key)
        if jobset is None or is_being_deleted(jobset):
            return None
        if spec_of(jobset).get("managedBy") not in (None, decisions.CONTROLLER):
            return None
        if not spec_of(jobset).get("replicatedJobs"):
            return None
        uid = uid_of(jobset)
        jobs = self._store.list(JOBS, key[0], lambda job: is_controlled_by(job, uid))
        self._carry_out(jobset, decisions.reconcile(jobset, jobs, self._now()))
        return None

    def _carry_out(self, jobset: Object, actions: decisions.Actions) -> None:
        namespace = namespace_of(jobset)
        for name in actions.delete:
            self._delete(namespace, name)
        if actions.needs_service:
            self._create_service(jobset)
        self._create_jobs(jobset, actions.create)
        for name in actions.suspend:
            self._store.modify(JOBS, namespace, name, _suspend)
        for name, replicated_job in actions.resume:
            self._resume(jobset, name, replicated_job)
        if actions.status != status_of(jobset):
            self._store.update(JOBSETS, {**jobset, "status": actions.status}, status_only=True)
        for type, reason, message in actions.events:
            self._record(jobset, type, reason, message)

    def _delete(self, namespace: str, name: str) -> None:
        job = self._store.find(JOBS, namespace, name)
        if job is not None and not is_being_deleted(job):
            self._store.delete(JOBS, namespace, name, propagation="Foreground")

    def _create_service(self, jobset: Object) -> None:
        """A foreign Service of this name is kept in silence: the gang then has no host names."""
        service = service_of(jobset)
        if self._store.find("services", namespace_of(jobset), name_of(service)) is not None:
            return
        try:
            self._cluster.create("services", service)
        except ApiError as error:
            self._record(jobset, "Warning", "HeadlessServiceCreationFailed", str(error))
            raise TryAgain(str(error)) from error

    def _create_jobs(self, jobset: Object, wanted: list[decisions.JobToCreate]) -> None:
        """Every Job is tried, whatever happened to the others; one refusal keeps the status from being written."""
        rjobs = {rjob["name"]: rjob for rjob in spec_of(jobset)["replicatedJobs"]}
        refusal: ApiError | None = None
        for new in wanted:
            rjob = rjobs[new.replicated_job]
            try:
                self._cluster.create(JOBS, job_of(jobset, rjob, new.index))
            except ApiError as error:
                refusal = error
                name = job_name(jobset, rjob, new.index)
                text = f'job "{name}" creation failed with error: {_plain(error)}'
                self._record(jobset, "Warning", "JobCreationFailed", text)
        if refusal is not None:
            raise TryAgain(str(refusal)) from refusal

    def _resume(self, jobset: Object, name: str, replicated_job: str) -> None:
        rjob = next(rjob for rjob in spec_of(jobset)["replicatedJobs"] if rjob["name"] == replicated_job)
        wanted = rjob["template"]["spec"]["template"]

        def change(job: Object) -> None:
            template = job["spec"]["template"]
            for key in _RESUMED_FIELDS:
                if key in wanted["spec"]:
                    template["spec"][key] = copy.deepcopy(wanted["spec"][key])
            for key in ("labels", "annotations"):
                given = (wanted.get("metadata") or {}).get(key) or {}
                metadata = template.setdefault("metadata", {})
                metadata[key] = {**(metadata.get(key) or {}), **given}
            job["spec"]["suspend"] = False

        try:
            self._store.modify(JOBS, namespace_of(jobset), name, change)
        except NotFound:
            return


def _suspend(job: Object) -> None:
    job["spec"]["suspend"] = True


def _plain(error: ApiError) -> str:
    """JobSet looks Jobs up before it creates them, so a clash reads as a plain conflict of names."""
    if isinstance(error, AlreadyExists):
        return error.message.replace("object is being deleted: ", "")
    return error.message
