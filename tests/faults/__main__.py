"""`tests/chaos`: whole gang runs under seeded faults. The last line is `N passed, N failed`."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.contract import places
from tests.faults.runs import Outcome, run
from tests.faults.schedule import scenario
from tests.flows.conftest import Runner, devcluster_home, devcluster_runner, own_devcluster, real_runner_of_shared_files

Place = Callable[[Path], AbstractContextManager[Runner]]


def main() -> int:
    options = parser().parse_args()
    seeds = range(options.start, options.start + options.seeds)
    if options.show:
        print("\n".join(str(scenario(seed)) for seed in seeds))
        return 0
    started, failed = time.monotonic(), []
    with on_real() if options.real else on_devcluster() as place, ThreadPoolExecutor(options.jobs) as pool:
        for number, outcome in enumerate(pool.map(one, seeds, itertools.repeat(place)), start=1):
            if outcome.wrong:
                failed.append(outcome.scenario.seed)
                print(f"{outcome}  requests: {', '.join(outcome.requests)}", flush=True)
            elif options.verbose:
                print(outcome, flush=True)
            if number % 10 == 0:
                print(f"[{time.monotonic() - started:.0f} s] {number} runs, {len(failed)} failed", flush=True)
    if failed:
        print(f"again: {', '.join(f'tests/chaos --seeds 1 --from {seed}' for seed in failed)}")
    print(f"{options.seeds - len(failed)} passed, {len(failed)} failed", flush=True)
    return 1 if failed else 0


def one(seed: int, place: Place) -> Outcome:
    home = Path(tempfile.mkdtemp(prefix=f"chaos-{seed}-"))
    try:
        with place(home) as runner:
            return run(runner, scenario(seed))
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def on_devcluster() -> Iterator[Place]:
    with devcluster_home() as home, own_devcluster(home) as environment:
        yield lambda path: contextlib.nullcontext(devcluster_runner(path, environment))


@contextmanager
def on_real() -> Iterator[Place]:
    with places.real_server() as server:

        @contextmanager
        def place(home: Path) -> Iterator[Runner]:
            with server.place() as found, real_runner_of_shared_files(home, found) as runner:
                yield runner

        yield place


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="tests/chaos", description=__doc__)
    result.add_argument("--seeds", type=int, default=20, help="how many schedules of faults")
    result.add_argument(
        "--from", dest="start", type=int, default=0, metavar="SEED", help="the first; each is the same every time"
    )
    result.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    result.add_argument("--real", action="store_true", help="on the real Kubernetes: tests/cluster/run -- tests/chaos --real")
    result.add_argument("--show", action="store_true", help="say what would be done, do nothing")
    result.add_argument("--verbose", action="store_true", help="print the output of what passed, too")
    return result


if __name__ == "__main__":
    sys.exit(main())
