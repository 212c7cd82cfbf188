"""`kubernetes attach`: what the ranks of a run's workloads write and what happens to them, until all have ended.

For runs whose client was killed or shut down: their workloads go on without it. What a step process would do at their end is
done here instead, unless it is still there to do it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from metaflow.exception import MetaflowException

from ..backends.base import Backend
from ..cluster.client import KubernetesClient
from ..decorators.host_errors import as_metaflow_error
from ..decorators.launch_spec import TaskRef
from ..decorators.step_check import parse_logs
from ..errors import ClusterError
from ..runtime.clock import RealClock
from ..runtime.monitor import Monitor
from ..runtime.process import GONE
from ..runtime.running import RunningJobSet
from ..spec.names import TaskIds
from ..status.model import Phase, WorkloadStatus
from . import failure_report
from .logs_command import Printer, Wanted, no_prefix, rank_prefix
from .rank_records import Records
from .targets import identity, look, parse, selector, workloads
from .workloads_command import follower_state


@dataclass(frozen=True, kw_only=True)
class Attached:
    """One workload. `is_orphan`: the step process that followed it is known to be gone."""

    running: RunningJobSet
    backend: Backend
    manifest: Mapping[str, Any]
    is_orphan: bool

    @property
    def whose(self) -> dict[str, str]:
        return identity(self.manifest)

    @property
    def pathspec(self) -> str:
        return f"{self.whose['run_id']}/{self.whose['step']}/{self.whose['task_id']}"


def attach(obj: Any, text: str, ranks: str) -> int:
    """The exit code: 0 if all have succeeded. Raises MetaflowException where there is nothing to attach to."""
    target = parse(obj.flow.name, text)
    with as_metaflow_error(), closing(KubernetesClient()) as client:
        which = parse_logs(ranks if target.rank is None else str(target.rank))
        found = [
            Attached(
                running=look(client, backend, workload), backend=backend, manifest=workload,
                is_orphan=follower_state(workload) == GONE,
            )
            for backend, workload in workloads(client, selector(obj.flow.name, target))
        ]  # fmt: skip
        going_on = [one for one in found if not one.running.status.is_terminal or one.is_orphan]
        if not going_on:
            raise MetaflowException(
                f"Nothing of {target} runs in the cluster. `kubernetes why {target}` tells how it ended, and `resume "
                f"--origin-run-id {target.run_id}` goes on with what it has finished."
            )
        prefix = _prefix if len(going_on) > 1 else _no_prefix
        pool = ThreadPoolExecutor(len(going_on))
        try:
            ends = list(pool.map(lambda one: _follow(obj, client, one, which, prefix(one)), going_on))
        except KeyboardInterrupt:
            print(f"Detached: {target} goes on. `kubernetes kill {target}` ends it.", file=sys.stderr, flush=True)
            return 130
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    if any(one.is_orphan for one in going_on):
        print(f"All has ended. To go on with it: resume --origin-run-id {target.run_id}", file=sys.stderr)
    return 0 if all(end.phase is Phase.SUCCEEDED for end in ends) else 1


def _follow(obj: Any, client: KubernetesClient, one: Attached, which: Any, prefix: str) -> WorkloadStatus:
    rank_of = rank_prefix if int(one.whose["ranks"] or 1) > 1 else no_prefix
    printer = _Prefixed(prefix, lambda rank: f"{prefix}{rank_of(rank)}")
    monitor = Monitor(client, one.running, printer, clock=RealClock(), which=which)
    with one.running:
        status = monitor.follow()
    if one.is_orphan:
        records = Records(
            obj, _task(one), TaskIds(one.whose["task_id"], int(one.whose["ranks"] or 1)), monitor.timeline, printer.line
        )
        records.manifest = one.manifest
        records.keep(status)
    if status.phase is Phase.SUCCEEDED:
        return status
    for line in failure_report.lines(status, monitor.other_last_lines(status)):
        printer.line(line)
    if one.is_orphan and status.phase is not Phase.GONE:
        try:
            one.running.kill()
        except ClusterError as error:  # says how to finish
            printer.line(str(error))
    return status


def _task(one: Attached) -> TaskRef:
    whose = one.whose
    return TaskRef(
        flow=whose["flow"], run_id=whose["run_id"], step=whose["step"], task_id=whose["task_id"],
        attempt=int(whose["attempt"] or 0), user="", num_parallel=int(whose["ranks"] or 1),
    )  # fmt: skip


class _Prefixed(Printer):
    def __init__(self, prefix: str, of_rank: Callable[[int], str]) -> None:
        super().__init__(Wanted(), of_rank)
        self._before = prefix

    def line(self, text: str) -> None:
        super().line(f"{self._before}{text}")


def _prefix(one: Attached) -> str:
    return f"[{one.whose['step']}/{one.whose['task_id']}] "


def _no_prefix(one: Attached) -> str:
    return ""
