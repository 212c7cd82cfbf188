"""Replays recorded watch events as the user would have seen them, with no cluster:

    python -m metaflow_extensions.kubernetes_ext.replay FILE.jsonl[.gz] [--json] [--workload NAME]

For bug reports (`python flow.py kubernetes record` makes such files), and for the tests. The format is in status/trace.py.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cli.failure_report import lines as report_lines
from .status.appwrapper import appwrapper_status
from .status.job import job_status
from .status.jobset import jobset_status
from .status.model import Failure, Observation, WorkloadStatus
from .status.trace import Entry, find, observations, parse_trace, seconds_of
from .status.transitions import transitions

Reducer = Callable[[Observation, "WorkloadStatus | None"], WorkloadStatus]
REDUCERS: dict[str, Reducer] = {"AppWrapper": appwrapper_status, "JobSet": jobset_status, "Job": job_status}


@dataclass(frozen=True)
class Moment:
    """The verdict after one line of the trace. `t` in seconds since the workload was created."""

    t: float
    status: WorkloadStatus


def moments(entries: Sequence[Entry], workload: str = "") -> Iterator[Moment]:
    """One for each line, from the first that shows the workload. ValueError where there is none in the trace."""
    found = find(entries, tuple(REDUCERS), workload)
    if found is None:
        raise ValueError(f"There is no {', '.join(REDUCERS)}{f' named {workload}' if workload else ''} in this trace.")
    kind, workload = found
    status: WorkloadStatus | None = None
    for entry, observation in zip(entries, observations(entries, kind, workload), strict=True):
        if observation.was_seen:
            status = REDUCERS[kind](observation, status)
            yield Moment(seconds_of(entry), status)


def summary(found: Sequence[Moment]) -> dict[str, Any]:
    """`{"phase", "failure", "phases": [[t, phase], ...]}`: the last verdict, and when each phase began."""
    phases: list[list[Any]] = []
    for moment in found:
        if not phases or phases[-1][1] != str(moment.status.phase):
            phases.append([moment.t, str(moment.status.phase)])
    end = found[-1].status
    return {"phase": str(end.phase), "failure": failure_summary(end.failure), "phases": phases}


def failure_summary(failure: Failure | None) -> dict[str, Any] | None:
    if failure is None:
        return None
    return {
        "category": str(failure.category),
        "role": failure.role,
        "rank": failure.rank,
        "pod": failure.pod,
        "exit_code": failure.exit_code,
        "reason": failure.reason,
    }


def narrative(found: Sequence[Moment]) -> Iterator[str]:
    """What the user would have read, with the seconds; the report of a failure at the end."""
    previous: WorkloadStatus | None = None
    for moment in found:
        for change in transitions(previous, moment.status):
            if change.kind != "failure":  # its report comes last
                yield f"{moment.t:8.1f} s  {change}"
        previous = moment.status
    if previous is not None and previous.failure is not None:
        yield ""
        yield from report_lines(previous)


def read(path: Path) -> list[Entry]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return parse_trace(file)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m metaflow_extensions.kubernetes_ext.replay", description=__doc__.split("\n")[0]
    )
    parser.add_argument("file", type=Path, help="a recording, also gzipped")
    parser.add_argument("--json", action="store_true", help="the last phase, the failure and when each phase began")
    parser.add_argument("--workload", default="", help="its name, where there are several")
    options = parser.parse_args(arguments)
    try:
        found = list(moments(read(options.file), options.workload))
    except (OSError, EOFError, zlib.error, ValueError) as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(summary(found), indent=2))
    else:
        print("\n".join(narrative(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
