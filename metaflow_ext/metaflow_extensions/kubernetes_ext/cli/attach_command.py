"""`kubernetes attach`: what the ranks of a run's workloads write and what happens to them, until all have ended.

For runs whose client was killed or shut down: their workloads go on without it. What a step process would do at their end is
done here instead, unless it is still there to do it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

from metaflow.exception import MetaflowException

from ..cluster.client import KubernetesClient
from ..decorators.host_errors import as_metaflow_error
from ..decorators.launch_spec import TaskRef
from ..decorators.step_check import parse_logs
from ..errors import ClusterError
from ..runtime.clock import RealClock
from ..runtime.monitor import Monitor
from ..runtime.process import GONE
from ..runtime.running import RunningJobSet
from ..runtime.timeline import Timeline
from ..spec.names import TaskIds
from ..status.model import Phase, WorkloadStatus
from . import failure_report
from .logs_command import Printer, Wanted, no_prefix, rank_prefix
from .rank_records import Records
from .stored_lines import with_stored_lines
from .targets import identity, look, parse, selector, workloads
from .workloads_command import follower_state


@dataclass(frozen=True, kw_only=True)
class Attached:
    """One workload. `is_orphan`: the step process that followed it is known to be gone."""

    running: RunningJobSet
    manifest: Mapping[str, Any]
    is_orphan: bool

    @property
    def whose(self) -> dict[str, str]:
        return identity(self.manifest)

    @property
    def is_of_interest(self) -> bool:
        """A failed one that its step process still follows is about to be reported and deleted by that."""
        phase = self.running.status.phase
        return phase is not Phase.SUCCEEDED and (self.is_orphan or not phase.is_terminal)


def attach(obj: Any, text: str, ranks: str) -> int:
    """The exit code: 0 if all have succeeded. Raises MetaflowException where there is nothing to attach to."""
    target = parse(obj.flow.name, text)
    with as_metaflow_error(), closing(KubernetesClient()) as client:
        which = parse_logs(ranks if target.rank is None else str(target.rank))
        found = list(_found(client, selector(obj.flow.name, target)))
        for one in found:
            if one.is_orphan and one.running.status.phase is Phase.SUCCEEDED:
                _records(obj, one, Timeline()).keep(one.running.status)  # once more, if its step process had come so far
        attached = [one for one in found if one.is_of_interest]
        if not attached:
            raise MetaflowException(
                f"Nothing of {target} runs in the cluster. `kubernetes why {target}` tells how it ended, and `resume "
                f"--origin-run-id {target.run_id}` goes on with what it has finished."
            )
        monitors = [
            Monitor(client, one.running, _printer(one, len(attached) > 1), clock=RealClock(), which=which) for one in attached
        ]
        try:
            phases = [_conclude(obj, *ended) for ended in _ends(attached, monitors)]
        except KeyboardInterrupt:
            print(f"Detached: {target} goes on. `kubernetes kill {target}` ends it.", file=sys.stderr, flush=True)
            return 130
    if any(one.is_orphan for one in attached):
        print(f"All has ended. To go on with it: resume --origin-run-id {target.run_id}", file=sys.stderr)
    return 0 if all(phase is Phase.SUCCEEDED for phase in phases) else 1


def _found(client: KubernetesClient, label_selector: str) -> Iterator[Attached]:
    for backend, workload, _ in workloads(client, label_selector):
        is_orphan = follower_state(workload) == GONE
        yield Attached(running=look(client, backend, workload), manifest=workload, is_orphan=is_orphan)


def _ends(attached: Sequence[Attached], monitors: Sequence[Monitor]) -> Iterator[tuple[Attached, Monitor, WorkloadStatus]]:
    """Each workload when it has ended. Meanwhile all are shown, in turn."""
    with ExitStack() as stack:
        for one, monitor in zip(attached, monitors, strict=True):
            stack.enter_context(one.running)
            stack.callback(monitor.close)
        going_on = list(zip(attached, monitors, strict=True))
        while going_on:
            for one, monitor in list(going_on):
                monitor.show(one.running.step(1.0 / len(going_on)))
                if one.running.status.is_terminal:
                    going_on.remove((one, monitor))
                    yield one, monitor, monitor.finish()


def _conclude(obj: Any, one: Attached, monitor: Monitor, status: WorkloadStatus) -> Phase:
    """What its step process would have done."""
    monitor.close()
    task, ids = _task(one.whose)
    status = with_stored_lines(status, obj.flow_datastore, task, ids, monitor.tell)
    if one.is_orphan:
        _records(obj, one, monitor.timeline).keep(status)
    if status.phase is Phase.SUCCEEDED:
        return status.phase
    for line in failure_report.lines(status, monitor.other_last_lines(status)):
        monitor.tell(line)
    if one.is_orphan and status.phase is not Phase.GONE:
        try:
            one.running.kill()
        except ClusterError as error:  # says how to finish
            monitor.tell(str(error))
    return status.phase


def _records(obj: Any, one: Attached, timeline: Timeline) -> Records:
    task, ids = _task(one.whose)
    records = Records(obj, task, ids, timeline, lambda text: print(text, file=sys.stderr))
    records.manifest = one.manifest
    return records


def _task(whose: Mapping[str, str]) -> tuple[TaskRef, TaskIds]:
    size = int(whose["ranks"] or 1)
    task = TaskRef(
        flow=whose["flow"], run_id=whose["run_id"], step=whose["step"], task_id=whose["task_id"],
        attempt=int(whose["attempt"] or 0), user="", num_parallel=size,
    )  # fmt: skip
    return task, TaskIds(task.task_id, size)


def _printer(one: Attached, is_one_of_several: bool) -> Printer:
    prefix = f"[{one.whose['step']}/{one.whose['task_id']}] " if is_one_of_several else ""
    of_rank = rank_prefix if int(one.whose["ranks"] or 1) > 1 else no_prefix
    return _Prefixed(prefix, lambda rank: f"{prefix}{of_rank(rank)}")


class _Prefixed(Printer):
    def __init__(self, prefix: str, of_rank: Callable[[int], str]) -> None:
        super().__init__(Wanted(), of_rank)
        self._before = prefix

    def line(self, text: str) -> None:
        super().line(f"{self._before}{text}")
