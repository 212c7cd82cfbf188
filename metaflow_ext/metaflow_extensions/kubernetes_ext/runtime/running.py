"""A workload that was submitted, followed by watches from its creation on.

Watches run in threads and only fill an inbox; everything else happens in the thread that calls `step`, `wait` or `refresh`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any

from ..backends.base import Backend, Wrapping
from ..cluster.protocol import JOBS as JOB_RESOURCE
from ..cluster.protocol import PODS as POD_RESOURCE
from ..cluster.protocol import ClusterClient, WatchEvent
from ..cluster.retry import Backoff, retrying
from ..errors import ClusterError, Forbidden, NotFound, Unavailable
from ..status.incidents import NODE_LOST_AFTER
from ..status.model import Observation, Phase, RankStatus, WorkloadStatus
from ..status.reading import moment
from ..status.verdict import with_end_of_culprit
from .clock import Clock, RealClock
from .closer_look import CloserLook
from .feeds import Degraded, Ended, Feeds, Message, Refused, Selection, Trouble
from .outage import Outage
from .picture import JOBS, PODS, WORKLOAD, WRAPPED, Picture, uid_of
from .resources import kubectl_delete, resource_of

STEP_SECONDS = 5.0  # deadlines are computed, not watched: look at the time this often
SETTLE_SECONDS = 2.0
_GONE_SECONDS = 600.0  # for pods to end, whatever their grace periods
_CONFIRM = "confirm"


class RunningJobSet:
    """A workload of any backend. Properties do no I/O and change nothing.

    `tell` hears what is worth telling beside the status: an outage and its end, a missing permission; from the thread that
    calls `step`. The client is shared and stays open at `close`.
    """

    def __init__(
        self,
        client: ClusterClient,
        backend: Backend,
        workload: Mapping[str, Any],
        *,
        namespace: str,
        clock: Clock | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._client = client
        self._backend = backend
        self._resource = resource_of(backend)
        self._name = str(workload["metadata"]["name"])
        self._uid = uid_of(workload)
        self._namespace = namespace
        self._clock = clock or RealClock()
        self._tell = tell
        self._picture = Picture(workload)
        self._outage = Outage()
        self._closer_look = CloserLook(client, namespace, tell)
        self._feeds = Feeds(client, namespace, self._selections(), self._clock)
        self._is_started = False
        self._killed_at: datetime | None = None
        self._cost = 0.0  # seconds that the last reduction took
        self._observation = self._picture.observation(self._clock.now())
        self._status = backend.reduce(self._observation)

    @property
    def name(self) -> str:
        return self._name

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    def uid(self) -> str:
        return self._uid

    @property
    def status(self) -> WorkloadStatus:
        """As of the last `step`, `wait` or `refresh`."""
        return self._status

    @property
    def observation(self) -> Observation:
        return self._observation

    @property
    def outage_since(self) -> datetime | None:
        """Since when the API server is not reached; None while it is."""
        return self._outage.since

    @property
    def killed_at(self) -> datetime | None:
        """When `kill` succeeded; what follows is our own doing."""
        return self._killed_at

    @property
    def delete_command(self) -> str:
        """The kubectl command that removes the workload with its dependents."""
        return kubectl_delete(self._resource, self._namespace, self._name)

    def __enter__(self) -> RunningJobSet:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def start(self) -> None:
        """Begin to watch; `step` and `wait` do it too. Call it right after the creation, so that no evidence is missed."""
        if not self._is_started:
            self._is_started = True
            self._feeds.start()

    def step(self, seconds: float = STEP_SECONDS) -> WorkloadStatus:
        """The status after the next news, or after `seconds` without any. ClusterError if it can't be watched at all."""
        self.start()
        if not self._status.is_terminal:
            self._clock.wait(self._feeds.inbox.filled, seconds)
            if self._cost > 0.002:
                self._clock.sleep(min(1.0, 10 * self._cost))  # in large gangs, many events are worth one reduction
        for source, message in self._feeds.inbox.drain():
            self._hear(source, message)
        if self._picture.is_missing:
            self._confirm()
        status = self._reduce()
        if not status.is_terminal and self._outage.since is None and self._closer_look.is_due(status, self._observation.at):
            self._closer_look.look(self._picture, self._observation)
            status = self._reduce()
        news = self._outage.news(self._observation.at)
        if news:
            self._tell(news)
        return status

    def changes(self) -> Iterator[WorkloadStatus]:
        """The status now, then each time it has changed, to the terminal one."""
        status = self._status
        yield status
        while not status.is_terminal:
            previous, status = status, self.step()
            if status != previous:
                yield status

    def wait(self) -> WorkloadStatus:
        """Blocks until the workload has ended, however long the server is away meanwhile."""
        for _ in self.changes():
            pass
        return self._status

    def refresh(self) -> WorkloadStatus:
        """The status by asking the server now: workload, Jobs, pods, Events. Raises ClusterError."""
        at = self._clock.now()
        self._picture.confirm(self._find())
        for selection in self._selections()[1:]:
            listed = self._client.list(
                selection.resource,
                self._namespace,
                label_selector=selection.label_selector,
                field_selector=selection.field_selector,
            )
            self._picture.apply(selection.source, WatchEvent("SYNCED", {"items": listed.get("items") or []}), at)
        self._closer_look.look(self._picture, self._picture.observation(at))
        self._refine()  # of one that has ended, ranks and cause are still to be found out
        self._hear_of_culprit()
        return self._status

    def look_closer(self) -> WorkloadStatus:
        """Read Events now, for causes that only they tell. Never fails."""
        self._closer_look.look(self._picture, self._observation)
        return self._reduce()

    def settle(self, seconds: float = SETTLE_SECONDS) -> WorkloadStatus:
        """After the end: hear what the other watches still bring while the cause of the failure is vague, then read Events.

        The workload's or a Job's word that it has ended can come before the pods' own. The phase stays; only the cause and the
        ranks become more precise.
        """
        give_up_at = self._clock.monotonic() + seconds
        while self._is_unsettled and self._clock.monotonic() < give_up_at:
            self._clock.wait(self._feeds.inbox.filled, 0.25)
            for source, message in self._feeds.inbox.drain():
                self._hear(source, message)
            self._refine()
        self._status = with_end_of_culprit(self._status)
        if self._has_vague_failure:
            self._closer_look.look(self._picture, self._observation)
            self._refine()
        self._hear_of_culprit()
        return self._status

    def _hear_of_culprit(self) -> None:
        """What the cluster says of the pod that failed first."""
        culprit = self._culprit
        if culprit is not None and culprit.pod_uid:
            self._closer_look.look_at(self._picture, culprit.pod_uid)
            self._refine()

    @property
    def _has_vague_failure(self) -> bool:
        return self._status.failure is not None and self._status.failure.is_vague

    @property
    def _is_unsettled(self) -> bool:
        return self._has_vague_failure or self._has_unended_culprit or self._has_unended_success

    @property
    def _has_unended_culprit(self) -> bool:
        """Its end, with the exit code, is still to come: a disruption is known before it."""
        failure, culprit = self._status.failure, self._culprit
        return failure is not None and failure.exit_code is None and culprit is not None and culprit.phase == "Running"

    @property
    def _culprit(self) -> RankStatus | None:
        """The rank that failed first, as it is now."""
        failure = self._status.failure
        return next((rank for rank in self._status.ranks if failure and rank.rank == failure.rank), None)

    @property
    def _has_unended_success(self) -> bool:
        """Or one whose pods are not known yet, so that their logs would not be read."""
        ranks = self._status.ranks
        return self._status.phase is Phase.SUCCEEDED and any(rank.phase in ("Pending", "Running") for rank in ranks)

    def _refine(self) -> None:
        self._observation = self._picture.observation(self._clock.now())
        self._status = self._backend.reduce(self._observation, self._status)

    def kill(self, patience: float = 120.0) -> None:
        """Delete the workload with its dependents; gone already is success.

        Retried for `patience` seconds while the server is not reached; ClusterError then ends with the command to finish by
        hand.
        """
        try:
            retrying(self._delete, patience=patience, sleep=self._clock.sleep, monotonic=self._clock.monotonic)
        except ClusterError as error:
            raise type(error)(
                f"{self._resource.kind} {self._name} could not be deleted and may still run: {error} "
                f"When this is solved, run: {self.delete_command}",
                status=error.status,
                reason=error.reason,
                body=error.body,
            ) from error
        self._killed_at = self._clock.now()

    def await_pods_gone(self) -> None:
        """After `kill`: return when its pods are gone, or ought to be, since those of a lost node stay."""
        selector = self._backend.pod_selector(self._name)
        give_up_at = self._clock.monotonic() + _GONE_SECONDS
        for delay in Backoff(longest=5.0).delays():
            if self._clock.monotonic() > give_up_at:
                return
            with contextlib.suppress(ClusterError):
                pods = self._client.list(POD_RESOURCE, self._namespace, label_selector=selector).get("items") or ()
                if not any(self._is_expected_to_end(pod) for pod in pods):
                    return
            self._clock.sleep(delay)

    def _is_expected_to_end(self, pod: Mapping[str, Any]) -> bool:
        due = moment(pod, "metadata", "deletionTimestamp")
        return due is None or self._clock.now() < due + NODE_LOST_AFTER

    def close(self) -> None:
        """End the watches. The workload goes on."""
        self._feeds.close()

    def _selections(self) -> tuple[Selection, ...]:
        """The workload's first."""
        backend, itself = self._backend, f"metadata.name={self._name}"
        found = [Selection(source=WORKLOAD, resource=self._resource, field_selector=itself)]
        if isinstance(backend, Wrapping):
            found.append(Selection(source=WRAPPED, resource=resource_of(backend.wrapped), field_selector=itself))
        jobs = backend.job_selector(self._name)
        if jobs is not None:
            found.append(Selection(source=JOBS, resource=JOB_RESOURCE, label_selector=jobs))
        return (*found, Selection(source=PODS, resource=POD_RESOURCE, label_selector=backend.pod_selector(self._name)))

    def _hear(self, source: str, message: Message) -> None:
        at = self._clock.now()
        if isinstance(message, WatchEvent):
            self._picture.apply(source, message, at)
        elif isinstance(message, Trouble):
            self._outage.hear(source, None if message.error is None else str(message.error), at)
        elif isinstance(message, Degraded):
            self._tell(f"Can't watch the {source}, so they are listed now and then: {message.error}")
        elif isinstance(message, Refused) and source != WORKLOAD:
            self._tell(f"Can't see the {source}, so much of what happens can't be told: {message.error}")
        elif isinstance(message, Ended) and message.error is not None:
            self._end_of_feed(source, message.error)

    def _end_of_feed(self, source: str, error: Exception) -> None:
        if source == WORKLOAD and isinstance(error, NotFound):
            self._picture.is_missing = True  # the kind itself was removed from the cluster
        elif source == WORKLOAD or not isinstance(error, Forbidden):  # else it was told when it was refused
            raise error

    def _confirm(self) -> None:
        """Only a 404 makes an object gone; without an answer it stays missing and is asked for again."""
        try:
            self._picture.confirm(self._find())
        except Unavailable as error:
            self._outage.hear(_CONFIRM, str(error), self._clock.now())
        else:
            self._outage.hear(_CONFIRM, None, self._clock.now())

    def _find(self) -> dict[str, Any] | None:
        try:
            return self._client.get(self._resource, self._namespace, self._name)
        except NotFound:
            return None

    def _delete(self) -> None:
        try:
            self._client.delete(self._resource, self._namespace, self._name, propagation="Background", uid=self._uid)
        except Forbidden as error:
            if error.status == 401:  # a log-in that expired may be renewed meanwhile
                raise Unavailable(str(error), status=error.status, reason=error.reason, body=error.body) from error
            raise

    def _reduce(self) -> WorkloadStatus:
        """What ended stays ended: a later deletion by time to live or by ourselves changes nothing."""
        started = self._clock.monotonic()
        self._observation = self._picture.observation(self._clock.now())
        if not self._status.is_terminal:
            self._status = self._backend.reduce(self._observation, self._status)
        self._cost = self._clock.monotonic() - started
        return self._status
