"""`kubernetes record`: a file for a bug report, which `python -m metaflow_extensions.kubernetes_ext.replay` reads."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from metaflow.exception import MetaflowException

from ..cluster.client import KubernetesClient
from ..decorators.host_errors import as_metaflow_error
from ..runtime.clock import RealClock
from ..runtime.recorder import Recorder
from .targets import parse, selector, workloads


def record(obj: Any, text: str, output: str) -> None:
    target = parse(obj.flow.name, text)
    with as_metaflow_error(), closing(KubernetesClient()) as client:
        found = list(workloads(client, selector(obj.flow.name, target)))
        if len(found) != 1:
            names = ", ".join(str(workload["metadata"]["name"]) for _, workload, _ in found)
            raise MetaflowException(
                f"{target} is {len(found)} workloads ({names}): name one as RUN/STEP/TASK." if found
                else f"No workload of {target} is in the cluster."
            )  # fmt: skip
        backend, workload, _ = found[0]
        with _opened(output) as file:
            recorder = Recorder(
                client, backend, workload, clock=RealClock(), write=lambda line: print(line, file=file, flush=True)
            )
            print(f"Recording {workload['metadata']['name']} into {output} until it ends, or Ctrl-C.", file=sys.stderr)
            try:
                phase = recorder.record()
            except KeyboardInterrupt:
                print("Stopped.", file=sys.stderr)
            else:
                print(f"It has ended as {phase}.", file=sys.stderr)


def _opened(output: str) -> IO[str]:
    try:
        return Path(output).open("w", encoding="utf-8")
    except OSError as error:
        raise MetaflowException(f"{output} can't be written: {error.strerror}.") from error
