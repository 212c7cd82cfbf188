"""Follows a workload to its end and tells its user what happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ..cluster.protocol import ClusterClient
from ..status.diagnosis import of_waiting
from ..status.launch_limit import LaunchLimit
from ..status.model import Phase, RankStatus, Stalled, WorkloadStatus
from ..status.progress import Progress
from ..status.transitions import transitions
from .clock import Clock
from .logs import LogStreams, selected
from .reporter import Reporter
from .running import RunningJobSet
from .timeline import Timeline

_STARTED = ("Running", "Succeeded", "Failed")
_ENDED = ("Succeeded", "Failed", "Deleted")
_MOST_CAPTURED = 8  # ranks that fail by themselves, within one workload


class Monitor:
    """`which` ranks' logs are shown: "all", "control", "none" or a list (`logs.selected`); `since`, `tail`: what of them."""

    def __init__(
        self,
        client: ClusterClient,
        running: RunningJobSet,
        reporter: Reporter,
        *,
        clock: Clock,
        which: str | Iterable[int] = "all",
        since: str = "",
        tail: int | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self._running = running
        self._reporter = reporter
        self._clock = clock
        self._which = which if isinstance(which, str) else tuple(which)
        self._timeline = timeline or Timeline()
        self._logs = LogStreams(client, running.namespace, reporter=reporter, tell=self.tell, since=since, tail=tail)
        self._captured: set[str] = set()
        self._told: WorkloadStatus | None = None
        self._gives_up = False
        self._progress = Progress()

    @property
    def timeline(self) -> Timeline:
        return self._timeline

    def tell(self, text: str) -> None:
        """To the user, and into the timeline."""
        self._timeline.add(self._clock.now(), text)
        self._reporter.line(text)

    def follow(
        self, limit: LaunchLimit | None = None, stalled: Callable[[WorkloadStatus], Stalled | None] = lambda status: None
    ) -> WorkloadStatus:
        """Blocks until the workload has ended; the last status, its failure with the culprit's last lines.

        A workload that waits for what can't come, or for longer than `limit`, is given up: it ends here as failed, and is still
        to be deleted. Without a limit nothing is given up. `stalled` says
        whether its ranks stand still.
        """
        self._gives_up = limit is not None
        try:
            status = self._running.status
            while not status.is_terminal:
                self.show(replace(status, stalled=stalled(status)))
                if limit is not None:
                    limit = limit.seen(status, self._running.observation.at) if self._running.outage_since is None else limit
                    if given_up := self._given_up(status, limit):
                        return given_up
                status = self._running.step()
            self.show(status)
            return self.finish()
        finally:
            self.close()

    def _given_up(self, status: WorkloadStatus, limit: LaunchLimit) -> WorkloadStatus | None:
        at = self._running.observation.at
        if status.waiting is not None and status.waiting.is_hopeless:
            return replace(status, phase=Phase.FAILED, failure=of_waiting(status.waiting, at))
        # While the server is away, nobody knows whether it has started meanwhile.
        failure = limit.exceeded(status, at) if self._running.outage_since is None else None
        return replace(self._running.look_closer(), phase=Phase.FAILED, failure=failure) if failure else None

    def show(self, status: WorkloadStatus) -> None:
        """Tell what has changed since the last call, now and then that nothing has, and look after the logs."""
        self._look_after_logs(status)
        is_given_up = self._gives_up and status.waiting is not None and status.waiting.is_hopeless
        # The report of a failure comes with the end, with all that is known by then.
        news = [
            change
            for change in transitions(self._told, status)
            if change.kind != "failure" and not (change.kind == "waiting" and is_given_up)
        ]
        for change in news:
            self.tell(str(change))
            for line in change.details:
                self._reporter.line(line)
        self._told = status
        self._progress, still = self._progress.seen(status, self._clock.now(), has_news=bool(news))
        if still:
            self._reporter.line(still)

    def _look_after_logs(self, status: WorkloadStatus) -> None:
        """Of a workload that has succeeded every pod has ended, also one whose own word has not come yet."""
        have_ended = status.phase is Phase.SUCCEEDED
        for rank in status.ranks:
            if rank.pod and (rank.phase in _STARTED or have_ended) and selected(self._which, rank):
                self._logs.follow(rank, self._container(rank))
            if rank.phase == "Failed" and not rank.is_collateral and len(self._captured) < _MOST_CAPTURED:
                self._captured.add(rank.pod_uid)
                self._logs.capture(rank, self._container(rank))
            if rank.phase in _ENDED or have_ended:
                self._logs.has_ended(rank.pod_uid)

    def finish(self) -> WorkloadStatus:
        """The terminal status with all that is known of its failure. Does not close the logs."""
        status = self._running.settle()
        self._look_after_logs(status)
        failure = status.failure
        if failure is None:
            return status
        self._timeline.add(self._clock.now(), failure.summary)
        culprit = next((rank for rank in status.ranks if rank.rank == failure.rank), None)
        lines = self._logs.last_lines(culprit.pod_uid) if culprit is not None else ()
        return replace(status, failure=replace(failure, last_lines=lines or failure.last_lines))

    def other_last_lines(self, status: WorkloadStatus) -> dict[int, tuple[str, ...]]:
        """By rank, of those that failed by themselves beside the culprit, as far as they were kept."""
        culprit = status.failure.rank if status.failure else None
        others = [rank for rank in status.ranks if rank.pod_uid in self._captured and rank.rank != culprit]
        return {rank.rank: self._logs.last_lines(rank.pod_uid) for rank in others}

    def close(self, wait: float = 5.0) -> None:
        """Waits for the logs of ended pods to be complete."""
        self._logs.close(wait)

    def _container(self, rank: RankStatus) -> str:
        """The first container: a mesh's sidecars come after it. "" (the only one) if the pod is not known."""
        for record in self._running.observation.pods:
            if (record.object.get("metadata") or {}).get("uid") == rank.pod_uid:
                containers = (record.object.get("spec") or {}).get("containers") or [{}]
                return str(containers[0].get("name") or "")
        return ""
