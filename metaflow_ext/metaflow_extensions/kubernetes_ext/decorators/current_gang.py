"""`current.gang`: in the join after a gang, what each of its ranks recorded about itself; in a rank, how far it is."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from metaflow.metaflow_current import current

from . import gang_record

GangTask = namedtuple(
    "GangTask", ["task_id", "rank", "role", "pod", "node", "ip", "started", "finished", "restarts", "exit_code"]
)
GangTask.__doc__ = (
    """One rank as it recorded itself. Times are ISO 8601 (UTC) or None; `exit_code` differs from 0 only under @catch."""
)

_state: dict[str, Any] = {"progress": (0, "")}


class Gang:
    """`tasks`: a list of `GangTask`, by rank, one for each input task of this join that ran in a gang on Kubernetes."""

    @property
    def tasks(self) -> list[GangTask]:
        return sorted((as_task(task_id, record) for task_id, record in _input_records().items()), key=lambda task: task.rank)

    def progress(self, what: Any = "") -> None:
        """Say that this rank gets on, and how far it is ("epoch 3"); cheap enough for every step of a loop. Where it is used,
        a rank stands still when it has not been called for `stall_timeout`, whatever else the rank does."""
        _state["progress"] = (_state["progress"][0] + 1, str(what)[:200])


def attach(flow_datastore: Any) -> None:
    """Make `current.gang` available in this process. Any process of the flow gets here through step_init."""
    _state["flow_datastore"] = flow_datastore
    setattr(current.__class__, "gang", property(lambda _: Gang()))  # noqa: B010


def progress() -> tuple[int, str]:
    """How many times this process has said that it gets on, and what it said last."""
    return _state["progress"]  # type: ignore[no-any-return]


def as_task(task_id: str, record: gang_record.Record) -> GangTask:
    return GangTask(
        task_id=task_id,
        rank=record.get("rank", 0),
        role=record.get("role", ""),
        pod=record.get("pod", ""),
        node=record.get("node", ""),
        ip=record.get("ip", ""),
        started=record.get("started"),
        finished=record.get("finished"),
        restarts=record.get("restarts", 0),
        exit_code=record.get("exit_code", 0 if record.get("done") else None),
    )


def _input_records() -> dict[str, gang_record.Record]:
    """Of the tasks named on this step's command line: the only place where every Metaflow since 2.19.0 has them."""
    from metaflow.cli_args import cli_args
    from metaflow.util import decompress_list

    paths = cli_args.step_kwargs.get("input_paths")
    found: dict[str, gang_record.Record] = {}
    for step, tasks in _by_step(decompress_list(paths) if paths else []).items():
        for attempt in sorted({attempt for _, _, attempt in tasks}):
            run_id = tasks[0][0]
            records = gang_record.Records(_state["flow_datastore"], run_id, step, attempt)
            found.update(records.read([task_id for _, task_id, task_attempt in tasks if task_attempt == attempt]))
    return found


def _by_step(paths: list[str]) -> dict[str, list[Any]]:
    """{step: [(run id, task id, attempt)]} of "run/step/task[/attempt]" path specs; the attempt is looked up if absent."""
    steps: dict[str, list[Any]] = {}
    for path in paths:
        parts = path.split("/")
        run_id, step, task_id = parts[:3]
        attempt = int(parts[3]) if len(parts) > 3 else _last_attempt(run_id, step, task_id)
        steps.setdefault(step, []).append((run_id, task_id, attempt))
    return steps


def _last_attempt(run_id: str, step: str, task_id: str) -> int:
    return int(_state["flow_datastore"].get_task_datastore(run_id, step, task_id).attempt)
