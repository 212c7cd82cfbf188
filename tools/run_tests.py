"""Set up and run every check and test, the quick ones first. Standard library only.

The last line is `N passed, N failed, N skipped`, over all tests; the exit code is 0 if every stage passed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from environment import ROOT, SetupFailed, environment, say, variables
from real_cluster import INSIDE, RealCluster, is_ci

NO_TESTS_COLLECTED = 5  # pytest's exit code
NOT_UNIT = [
    "flows",
    "benchmarks",
    "cluster",
    "comparison",
    "matrix",
]  # under tests/; all else runs in the first stage of pytest
FLOWS_AT_ONCE = ("-n3", "--maxschedchunk=1", "--durations=12")  # a flow waits as much as it computes


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, report: Path) -> None:
        """Add the results in pytest's JUnit report."""
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped = int(suite.get("skipped", 0))
            self.failed += failed
            self.skipped += skipped
            self.passed += int(suite.get("tests", 0)) - failed - skipped

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


@dataclass
class Tests:
    """Runs one stage after the other and remembers what failed."""

    place: Path
    selection: bool  # only some tests are wanted: a stage without any is then no failure
    counts: Counts = field(default_factory=Counts)
    failed: list[str] = field(default_factory=list)
    begun: subprocess.Popen[bytes] | None = None

    def check(self, *command: str) -> bool:
        """A tool whose output matters only when it fails."""
        done = subprocess.run(
            command, cwd=ROOT, env=variables(self.place), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode:
            print(done.stdout, flush=True)
        return done.returncode == 0

    def begin(self, *command: str) -> bool:
        """Preparations beside the stages that follow, with the cores that these leave; who needs them says what is wrong."""
        self.begun = subprocess.Popen(
            ["nice", "-n", "9", *command], cwd=ROOT, env=variables(self.place), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return True

    def close(self) -> None:
        """What was begun is not wanted any more."""
        if self.begun is not None and self.begun.poll() is None:
            os.killpg(self.begun.pid, signal.SIGTERM)
            self.begun.wait()

    def pytest(self, name: str, *arguments: str, inside: tuple[str, ...] = ()) -> bool:
        report = self.place / f"junit-{name}.xml"
        report.unlink(missing_ok=True)
        # A test that hangs shows where, after five minutes.
        command = [*inside, "python", "-m", "pytest", f"--junitxml={report}", "-o", "faulthandler_timeout=300", *arguments]
        code = subprocess.run(command, cwd=ROOT, env=variables(self.place)).returncode
        if report.exists():
            self.counts.add(report)
        return code == 0 or (code == NO_TESTS_COLLECTED and self.selection)


def main() -> int:
    options, further = parser().parse_known_args()
    try:
        place = environment("tests", extra="test")
    except SetupFailed as error:
        say(str(error))
        return 1
    paths = [argument for argument in further if (ROOT / argument.split("::")[0]).exists()]
    selected = ["-k", options.k] if options.k else []
    tests = Tests(place, selection=bool(further or selected))
    started = time.monotonic()
    cluster = RealCluster(anew=is_ci()) if is_wanted(options, paths) else None
    try:
        for name, stage in stages(tests, options.quick, cluster, paths, [*selected, *further]):
            say(f"[{minutes(started)}] {name}")
            if not stage():
                tests.failed.append(name)
                if not options.keep_going:
                    break
    finally:
        tests.close()
        if cluster is not None:
            cluster.down()
    if cluster is None and not (options.quick or paths):
        say("The tests on the real Kubernetes were not asked for: tests/run --real (as root; tests/cluster/README.md)")
    say(f"[{minutes(started)}] end")
    if tests.failed:
        print(f"failed: {', '.join(tests.failed)}")
    print(tests.counts, flush=True)
    return 1 if tests.failed or not (tests.counts.passed or tests.counts.skipped) else 0


def is_wanted(options: argparse.Namespace, paths: list[str]) -> bool:
    """Whether the real Kubernetes takes part: in CI always, elsewhere when asked for."""
    return not paths and not options.quick and (options.real or is_ci())


def minutes(started: float) -> str:
    seconds = int(time.monotonic() - started)
    return f"{seconds // 60:2}:{seconds % 60:02}"


def stages(
    tests: Tests, quick: bool, cluster: RealCluster | None, paths: list[str], arguments: list[str]
) -> list[tuple[str, Callable[[], bool]]]:
    """Names, and functions that say whether all was well. What fails quickly and often comes first."""
    if paths:
        return [("tests", lambda: tests.pytest("tests", "-v", *arguments))]
    unit = ["tests", *(f"--ignore=tests/{name}" for name in NOT_UNIT), "-m", "not real", "-q", f"-n{2 * usable_cores()}"]
    flows = ["tests/flows", "-m", "not real", "-v", *FLOWS_AT_ONCE]
    real = ["tests/contract", "tests/flows", "-m", "real", "-v", *FLOWS_AT_ONCE]
    result: list[tuple[str, Callable[[], bool]]] = [
        ("ruff format", lambda: tests.check("ruff", "format", "--check", ".")),
        ("ruff check", lambda: tests.check("ruff", "check", ".")),
        ("mypy", lambda: tests.check("mypy")),
        ("lint-imports", lambda: tests.check("lint-imports")),
        ("unit tests", lambda: tests.pytest("unit", *unit, *arguments)),
    ]
    if cluster is not None:
        cell = "one cell of the matrix of versions is set up in the background"
        result.insert(0, (cell, lambda: tests.begin("tests/matrix/run", "--set-up")))
        result.append(("the real Kubernetes begins to build in the background", cluster.prepare))
    if not quick:
        result.append(("flows on the development cluster", lambda: tests.pytest("flows", *flows, *arguments)))
    if cluster is not None:
        result.append(("the real Kubernetes begins to come up in the background", cluster.begin))
        result.append(("one cell of the matrix of versions", lambda: tests.check("tests/matrix/run")))
        result.append(("the real Kubernetes is up", cluster.up))
        result.append(("tests on the real Kubernetes", lambda: tests.pytest("real", *real, *arguments, inside=INSIDE)))
    return result


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="tests/run",
        description="Set up and pass all checks and tests. Arguments not named here go to pytest; with paths of tests, "
        "only those run. The tests of whole flows start their own development cluster.",
        allow_abbrev=False,
    )
    result.add_argument("--quick", action="store_true", help="the checks and the unit tests, without whole flows")
    result.add_argument(
        "--real", action="store_true", help="also on the real Kubernetes, as in CI (as root; tests/cluster/README.md)"
    )
    result.add_argument("--keep-going", action="store_true", help="go on after a stage that failed")
    result.add_argument("-k", metavar="EXPRESSION", help="only the tests that match, as in pytest")
    return result


if __name__ == "__main__":
    sys.exit(main())
