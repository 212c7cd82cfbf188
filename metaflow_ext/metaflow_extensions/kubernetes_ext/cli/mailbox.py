"""The datastore as the place where a client and the ranks of one task leave word for each other (decorators.hang_watch)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..decorators import hang_watch
from ..decorators.gang_record import Records
from ..spec.names import TaskIds


class DatastoreMailbox:
    """A `runtime.stall_watch.Mailbox`, of one attempt."""

    def __init__(self, flow_datastore: Any, run_id: str, step: str, ids: TaskIds, attempt: int) -> None:
        self._ids = ids
        self._answers = Records(flow_datastore, run_id, step, attempt, hang_watch.RANK)
        self._requests = Records(flow_datastore, run_id, step, attempt, hang_watch.REQUEST)

    def ask(self, token: str) -> None:
        self._requests.write(self._ids.control, {"token": token})

    def read(self, ranks: Sequence[int]) -> Mapping[int, Mapping[str, Any]]:
        task_ids = {self._ids.of_rank(rank): rank for rank in ranks if rank < self._ids.size}
        return {task_ids[task_id]: record for task_id, record in self._answers.read([*task_ids]).items()}


def patience(limit: float) -> float:
    """Seconds in which every rank that can answer does."""
    return 3 * hang_watch.beat_seconds(limit) + 5
