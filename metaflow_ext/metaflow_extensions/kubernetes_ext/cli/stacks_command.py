"""`kubernetes stacks`: where every rank of what runs stands in its Python code now, and which one stands apart."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from datetime import datetime, timezone
from functools import partial
from typing import Any

from metaflow.exception import MetaflowException

from ..cluster.client import KubernetesClient
from ..cluster.protocol import ClusterClient
from ..decorators.host_errors import KubernetesError, as_metaflow_error
from ..runtime.clock import RealClock
from ..runtime.running import RunningJobSet
from ..runtime.stall_watch import collect, stack_in_log
from ..spec.names import TaskIds
from ..status.model import RankStatus
from ..status.stacks import FINISHED, MOVING, SILENT, Place, RankStack, alike, folded, odd_ones, places
from .mailbox import DatastoreMailbox
from .tables import short_age
from .targets import Target, identity, look, parse, selector, workloads


def stacks(obj: Any, text: str, timeout: float, as_json: bool) -> None:
    target = parse(obj.flow.name, text)
    with as_metaflow_error(), closing(KubernetesClient()) as client:
        there = [
            (identity(workload), look(client, backend, workload))
            for backend, workload, _ in workloads(client, selector(obj.flow.name, target))
        ]
        running = [(whose, one) for whose, one in there if _ranks(one, target)]
        if not running:
            raise MetaflowException(f"Nothing of {target} runs now.")
        print(f"Waiting for the ranks to answer, up to {timeout:g} s.", file=sys.stderr)
        found = [(whose, one, _ask(obj, client, whose, one, target, timeout)) for whose, one in running]
    if as_json:
        print(json.dumps([_as_json(whose, one, ranks) for whose, one, ranks in found], indent=2))
    else:
        now = datetime.now(timezone.utc)
        print("\n\n".join("\n".join(_lines(whose, one, ranks, now)) for whose, one, ranks in found))
    if all(rank.state == SILENT for _, _, ranks in found for rank in ranks):
        raise KubernetesError(
            f"No rank has answered within {timeout:g} s. They are asked through the datastore: is this one that of the run, and "
            "is stall_timeout not 0 there? Ranks that have only just started don't listen yet."
        )


def _ranks(running: RunningJobSet, target: Target) -> list[RankStatus]:
    ranks = running.status.ranks if not running.status.is_terminal else ()
    return [rank for rank in ranks if rank.phase == "Running" and target.rank in (None, rank.rank)]


def _ask(
    obj: Any, client: ClusterClient, whose: Mapping[str, str], running: RunningJobSet, target: Target, timeout: float
) -> list[RankStack]:
    ids = TaskIds(whose["task_id"], int(whose["ranks"] or 1))
    mailbox = DatastoreMailbox(obj.flow_datastore, whose["run_id"], whose["step"], ids, int(whose["attempt"] or 0))
    return collect(mailbox, _ranks(running, target), timeout, RealClock(), partial(stack_in_log, client, running.namespace))


def _lines(whose: Mapping[str, str], running: RunningJobSet, ranks: list[RankStack], now: datetime) -> Iterator[str]:
    found = places(ranks)
    odd = odd_ones(found)
    yield f"{whose['run_id']}/{whose['step']}/{whose['task_id']} ({running.name}):" + (
        f" {folded(odd)} stand{'s' if len(odd) == 1 else ''} apart." if odd else ""
    )
    for place in found:
        for group in alike(place.ranks):
            yield f"{folded([one.rank for one in group])}: {_state(Place(group, place.frame), now)}"
            yield from (f"    {frame.with_code}" for frame in group[0].stack if group[0].state != FINISHED)


def _state(group: Place, now: datetime) -> str:
    """The one that has stood for the shortest speaks for all."""
    first = max(group.ranks, key=lambda one: one.since or now)
    age = short_age(max(0, int((now - first.since).total_seconds()))) if first.since else "?"
    said = f', said "{first.progress}"' if first.progress else ""
    if first.state == SILENT:
        return f"{group.load}, but wrote this to its log" if first.stack else "no answer"
    if first.state == FINISHED:
        return f"ended the step's code {age} ago{said}"
    what = "makes progress" if first.state == MOVING else f"no progress for {age}"
    return f"{what}, {group.load}{said}"


def _as_json(whose: Mapping[str, str], running: RunningJobSet, ranks: list[RankStack]) -> dict[str, Any]:
    pods = {rank.rank: rank for rank in running.status.ranks}
    return {
        "name": running.name,
        "namespace": running.namespace,
        **whose,
        "odd_ones": [*odd_ones(places(ranks))],
        "ranks": [
            {
                **asdict(one),
                "since": one.since and one.since.isoformat(),
                "pod": pods[one.rank].pod,
                "node": pods[one.rank].node,
            }
            | {"threads": [{"thread": name, "stack": [asdict(frame) for frame in stack]} for name, stack in one.threads]}
            for one in ranks
        ],
    }
