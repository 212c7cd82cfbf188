"""`kubernetes describe --watch`: how far a workload is, until it has ended. On a terminal one line that is refreshed; elsewhere a line
for each change, and now and then one when nothing changes."""

from __future__ import annotations

import shutil
import sys
from contextlib import closing
from datetime import datetime, timezone
from typing import Any

from metaflow.exception import MetaflowException

from ..cluster.client import KubernetesClient
from ..decorators.host_errors import as_metaflow_error
from ..runtime.running import RunningJobSet
from ..status.model import WorkloadStatus
from ..status.progress import Progress, line
from ..status.reading import created_at
from ..status.transitions import transitions
from .describe_command import reason
from .targets import parse, selector, workloads


class Screen:
    """`is_live` where the last line can be written over."""

    def __init__(self, out: Any, is_live: bool) -> None:
        self._out, self._is_live = out, is_live

    def keep(self, text: str) -> None:
        """A line that stays."""
        self._out.write(f"\r\033[K{text}\n" if self._is_live else f"{text}\n")
        self._out.flush()

    def refresh(self, text: str) -> None:
        """The line below all that stay; nothing where it can't be written over."""
        if self._is_live:
            self._out.write(f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}")
            self._out.flush()


def watch(obj: Any, text: str) -> None:
    target = parse(obj.flow.name, text)
    with as_metaflow_error(), closing(KubernetesClient()) as client:
        found = list(workloads(client, selector(obj.flow.name, target)))
        if len(found) != 1:
            raise MetaflowException(f"{target} is {len(found)} workloads in the cluster: --watch needs one, as RUN/STEP/TASK.")
        backend, workload, _ = found[0]
        with RunningJobSet(client, backend, workload, namespace=workload["metadata"]["namespace"]) as running:
            running.refresh()
            status = _until_its_end(running, Screen(sys.stdout, sys.stdout.isatty()), created_at(workload))
    print("\n".join(reason(status)))


def _until_its_end(running: RunningJobSet, screen: Screen, began: datetime | None) -> WorkloadStatus:
    before, progress, status = None, Progress(), running.status
    while True:
        at = datetime.now(timezone.utc)
        news = [str(change) for change in transitions(before, status) if change.kind != "failure"]
        for text in news:
            screen.keep(text)
        progress, sparse = progress.seen(status, at, has_news=bool(news))
        if status.is_terminal:
            screen.refresh("")
            return running.settle()
        screen.refresh(line(status, (at - (began or at)).total_seconds()))
        if sparse and not sys.stdout.isatty():
            screen.keep(sparse)
        before, status = status, running.step(1.0)
