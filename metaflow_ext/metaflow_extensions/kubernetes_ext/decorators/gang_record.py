"""What every rank writes about itself into its own task's datastore, and how the ranks agree that the gang is done.

A record is JSON beside the task's artifacts, one an attempt. It serves `current.gang.tasks` and the commit barrier:
control may write its DONE marker only after every worker's, else a failed gang has a successful control and `resume`
takes it for good. A gang's pods may also be deleted and started again within one attempt (Kueue does), with DONE markers
of the first start still there; so what counts is not the marker but the worker's statement, written after it, "done,
and control was alive as <pod uid>". A worker knows that control's record is not one left by a dead pod by seeing its
beat advance.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, Dict  # noqa: UP035

NAME = "gang_record"
Record = Dict[str, Any]  # noqa: UP006  (at run time, on Python 3.8)

# Seconds between control's beats while its user code runs, and while it waits at its end.
BEAT_SECONDS = 10.0
COMMIT_POLL_SECONDS = 0.25
MAX_POLL_SECONDS = 2.0


class Records:
    """Reads and writes the records of one step's tasks at one attempt; `name` tells different ones of a task apart."""

    def __init__(self, flow_datastore: Any, run_id: str, step: str, attempt: int, name: str = NAME) -> None:
        self._flow_datastore = flow_datastore
        self._storage = flow_datastore._storage_impl
        self._run_id = run_id
        self._step = step
        self._attempt = attempt
        self._name = name

    def write(self, task_id: str, record: Record) -> None:
        self._storage.save_bytes(iter([(self._path(task_id), BytesIO(json.dumps(record).encode("utf-8")))]), overwrite=True)

    def read(self, task_ids: Sequence[str]) -> dict[str, Record]:
        """Records by task id; tasks without a readable one are left out."""
        paths = {self._path(task_id): task_id for task_id in task_ids}
        found: dict[str, Record] = {}
        with self._storage.load_bytes(list(paths)) as loaded:
            for key, path, _ in loaded:
                if path is None:
                    continue
                with open(path, "rb") as file:
                    record = parse(file.read())
                if record is not None:
                    found[paths[key]] = record
        return found

    def _path(self, task_id: str) -> str:
        return str(
            self._storage.path_join(
                self._flow_datastore.flow_name, self._run_id, self._step, task_id, "%d.%s.json" % (self._attempt, self._name)
            )
        )


def parse(content: bytes) -> Record | None:
    """A record, or None where it is torn or none."""
    try:
        record = json.loads(content.decode("utf-8"))
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def is_committed(worker: Record | None, control_uid: str) -> bool:
    """Whether the worker's statement is about this very start of control."""
    return bool(worker and worker.get("done") and worker.get("control") == control_uid)


def missing_workers(records: dict[str, Record], worker_ids: Sequence[str], control_uid: str) -> list[str]:
    return [task_id for task_id in worker_ids if not is_committed(records.get(task_id), control_uid)]


def wait_for_workers(
    records: Records,
    worker_ids: Sequence[str],
    control_uid: str,
    beat: Callable[[], None],
    timeout: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Control's barrier: return when every worker has stated that it is done. `beat` tells them that control lives.

    Raises TimeoutError after `timeout` seconds. When the gang dies the pod of this process is killed, which ends the wait.
    """
    deadline, delay, left = clock() + timeout, COMMIT_POLL_SECONDS, list(worker_ids)
    while True:
        beat()
        left = missing_workers(records.read(left), left, control_uid)
        if not left:
            return
        if clock() > deadline:
            raise TimeoutError(
                "%d workers have not finished within %d seconds, the first is %s" % (len(left), timeout, left[0])
            )
        sleep(delay)
        delay = min(delay * 1.2, MAX_POLL_SECONDS)


def wait_for_live_control(
    records: Records,
    control_id: str,
    timeout: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """A worker's end: the pod uid of the control that beats now. Raises TimeoutError after `timeout` seconds."""
    deadline, delay = clock() + timeout, COMMIT_POLL_SECONDS
    first: Record | None = None
    while True:
        record = records.read([control_id]).get(control_id)
        if record is not None:
            if first is not None and _beat(record) != _beat(first):
                return str(record.get("pod_uid", ""))
            first = record
        if clock() > deadline:
            raise TimeoutError("The control task %s has shown no sign of life for %d seconds" % (control_id, timeout))
        sleep(delay)
        delay = min(delay * 1.2, MAX_POLL_SECONDS)


def _beat(record: Record) -> Any:
    return record.get("pod_uid"), record.get("beat")


class Beat:
    """Rewrites control's record with an advancing beat: from a thread while user code runs, and on demand."""

    def __init__(self, records: Records, task_id: str, record: Record) -> None:
        self._records, self._task_id, self._record = records, task_id, record
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="gang-beat", daemon=True).start()

    def __call__(self) -> None:
        with self._lock:
            self._record["beat"] = self._record.get("beat", 0) + 1
            self._records.write(self._task_id, self._record)

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            try:
                self()
            except Exception:  # noqa: BLE001 - any storage's error: a beat that is lost is made up by the next
                continue
