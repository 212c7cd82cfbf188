"""`kubernetes logs`: what all ranks have written, from their pods while they are there, else from Metaflow's datastore."""

from __future__ import annotations

import heapq
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from metaflow.exception import MetaflowException

from ..cluster.client import KubernetesClient
from ..cluster.logs import order
from ..cluster.protocol import LogLine
from ..decorators.host_errors import as_metaflow_error
from ..decorators.step_check import parse_logs
from ..errors import NotFound
from ..runtime.clock import RealClock
from ..runtime.logs import gap, selected
from ..runtime.monitor import Monitor
from ..spec.names import TaskIds
from ..status.model import RankStatus
from .targets import Target, identity, look, parse, selector, workloads

Line = tuple[str, str, str]  # RFC 3339 time stamp, prefix, text


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which lines. `since` is an RFC 3339 time stamp or ""."""

    ranks: Any = "all"  # see runtime.logs.selected
    since: str = ""
    tail: int | None = None
    pattern: re.Pattern[str] | None = None

    def has(self, text: str) -> bool:
        return self.pattern is None or self.pattern.search(text) is not None


class Printer:
    """A `runtime.reporter.Reporter`: lines of ranks to standard output, all else to standard error."""

    def __init__(self, wanted: Wanted, prefix: Callable[[int], str]) -> None:
        self._wanted = wanted
        self._prefix = prefix

    def line(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def log(self, role: str, rank: int, timestamp: str, line: str) -> None:
        if self._wanted.has(line):
            print(f"{self._prefix(rank)}{line}", flush=True)


def logs(
    obj: Any, text: str, ranks: str, since: str | None, tail: int | None, grep: str | None, previous: bool, follow: bool
) -> None:
    flow, target = obj.flow.name, parse(obj.flow.name, text)
    try:
        pattern = re.compile(grep) if grep else None
    except re.error as error:
        raise MetaflowException(f"--grep {grep!r} is no regular expression: {error}.") from error
    with as_metaflow_error():
        which = parse_logs(ranks if target.rank is None else str(target.rank))
        wanted = Wanted(ranks=which, since=moment(since, datetime.now(timezone.utc)), tail=tail, pattern=pattern)
        shown = False if previous else _from_pods(flow, target, wanted, follow)
    if not shown:
        _print(_kept(flow, target, wanted, previous), wanted)


def moment(since: str | None, now: datetime) -> str:
    """`--since` as a time stamp: 90s, 5m, 2h, 1d ago, or an RFC 3339 time stamp as it is."""
    if not since:
        return ""
    found = re.fullmatch(r"(\d+)([smhd])", since)
    if found:
        seconds = int(found.group(1)) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[found.group(2)]
        return (now - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        datetime.fromisoformat(since.replace("Z", "+00:00"))
    except ValueError:
        raise MetaflowException(f"--since is 90s, 5m, 2h, 1d or an RFC 3339 time stamp, not {since!r}.") from None
    return since


def rank_prefix(rank: int) -> str:
    return f"[rank {rank}] "


def no_prefix(rank: int) -> str:
    return ""


def _from_pods(flow: str, target: Target, wanted: Wanted, follow: bool) -> bool:
    """Whether there were pods to ask."""
    found = has_rank = False
    with closing(KubernetesClient()) as client:
        for backend, workload, _ in workloads(client, selector(flow, target)):
            found = True
            running = look(client, backend, workload)
            ranks = running.status.ranks  # none is known of what waits in a queue
            has_rank = has_rank or not ranks or any(selected(wanted.ranks, rank) for rank in ranks)
            prefix = rank_prefix if int(identity(workload)["ranks"] or 1) > 1 else no_prefix
            if follow and not running.status.is_terminal:
                printer, clock = Printer(wanted, prefix), RealClock()
                with running:
                    Monitor(
                        client, running, printer, clock=clock, which=wanted.ranks, since=wanted.since, tail=wanted.tail
                    ).follow()
            else:
                chosen = [rank for rank in running.status.ranks if rank.pod and selected(wanted.ranks, rank)]
                namespace = workload["metadata"]["namespace"]
                lines = (_of_pod(client, namespace, rank, prefix(rank.rank), wanted) for rank in chosen)
                _print(heapq.merge(*lines, key=lambda line: order(line[0])), wanted)
    if found and not has_rank and wanted.ranks != "none":
        raise MetaflowException(f"{target} has no such rank.")
    return found


def _of_pod(client: KubernetesClient, namespace: str, rank: RankStatus, prefix: str, wanted: Wanted) -> Iterator[Line]:
    """As it is asked for: a connection for each rank, but no more than some pages of each in memory."""
    try:
        with closing(client.logs(namespace, rank.pod, since=wanted.since, tail=wanted.tail)) as pieces:
            for piece in pieces:
                if isinstance(piece, LogLine):
                    yield piece.stamp, prefix, piece.text
                else:
                    print(gap(f"rank {rank.rank}", piece), file=sys.stderr)
    except NotFound:
        return  # gone since


def _kept(flow: str, target: Target, wanted: Wanted, previous: bool) -> Iterator[Line]:
    """What Metaflow has kept of the tasks; of the attempt before the last with `previous`."""
    from metaflow import Run, Task, namespace
    from metaflow.exception import MetaflowNotFound

    namespace(None)
    try:
        run = Run(f"{flow}/{target.run_id}")
    except MetaflowNotFound as error:
        raise MetaflowException(
            f"There is no run {target.run_id} of {flow}, neither in the cluster nor in Metaflow."
        ) from error
    has_task = False
    for step in run:
        streams: list[Iterable[Line]] = []
        for task in step if target.step in ("", step.id) else ():
            control, rank = TaskIds.parse(task.id)
            if target.task_id not in ("", control) or not selected(wanted.ranks, RankStatus(role="", rank=rank)):
                continue
            has_task = True
            if previous:
                if not task.current_attempt:
                    raise MetaflowException(f"{task.pathspec} has no attempt before its last.")
                task = Task(task.pathspec, attempt=task.current_attempt - 1)
            is_gang = control != task.id or any(other.id.startswith(f"{control}-worker-") for other in step)
            prefix = rank_prefix(rank) if is_gang else f"[{step.id}/{task.id}] " if not target.step else ""
            lines = sorted(
                (f"{at:%Y-%m-%dT%H:%M:%S.%f}Z", prefix, line.decode(errors="replace"))
                for stream in ("stdout", "stderr")
                for at, line in task.loglines(stream, as_unicode=False)  # core's own decoding raises for what is no text
                if at is not None
            )
            recent = [line for line in lines if not wanted.since or order(line[0]) >= order(wanted.since)]
            streams.append(recent[-wanted.tail :] if wanted.tail else recent)
        yield from heapq.merge(*streams)
    if not has_task and wanted.ranks != "none":
        raise MetaflowException(f"There is no task {target} of {flow}, or it has no such rank.")


def _print(lines: Iterable[Line], wanted: Wanted) -> None:
    for _, prefix, line in lines:
        if wanted.has(line):
            print(f"{prefix}{line}")
