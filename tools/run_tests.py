"""Set up and run every check and test, the quick ones first. Standard library only.

The last line is `N passed, N failed, N skipped`, over all tests; the exit code is 0 if every stage passed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from environment import ROOT, SetupFailed, environment, say, variables

NO_TESTS_COLLECTED = 5  # pytest's exit code
NOT_UNIT = ["flows", "benchmarks", "cluster"]  # under tests/; all else runs in the first stage of pytest


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

    def check(self, name: str, *command: str) -> bool:
        """A tool whose output matters only when it fails."""
        started = time.monotonic()
        print(f"{name:14}", end="", flush=True)
        done = subprocess.run(
            command, cwd=ROOT, env=variables(self.place), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        print(f"{'ok' if done.returncode == 0 else 'FAILED'}   {time.monotonic() - started:.1f} s", flush=True)
        if done.returncode:
            print(done.stdout, flush=True)
            self.failed.append(name)
        return done.returncode == 0

    def lost(self, name: str) -> bool:
        self.failed.append(name)
        return False

    def pytest(self, name: str, *arguments: str, inside: tuple[str, ...] = ()) -> bool:
        print(name, flush=True)
        report = self.place / f"junit-{name}.xml"
        report.unlink(missing_ok=True)
        # A test that hangs shows where, after five minutes.
        command = [*inside, "python", "-m", "pytest", f"--junitxml={report}", "-o", "faulthandler_timeout=300", *arguments]
        code = subprocess.run(command, cwd=ROOT, env=variables(self.place)).returncode
        if report.exists():
            self.counts.add(report)
        good = code == 0 or (code == NO_TESTS_COLLECTED and self.selection)
        if not good:
            self.failed.append(f"{name} (pytest's exit code {code})")
        return good


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
    for stage in stages(tests, options.quick, options.real, paths, [*selected, *further]):
        if not stage() and not options.keep_going:
            break
    if tests.failed:
        print(f"failed: {', '.join(tests.failed)}")
    print(tests.counts, flush=True)
    return 1 if tests.failed or not (tests.counts.passed or tests.counts.skipped) else 0


def stages(tests: Tests, quick: bool, real: bool, paths: list[str], arguments: list[str]) -> list[Callable[[], bool]]:
    """The stages as functions that say whether all was well."""
    if paths:
        return [lambda: tests.pytest("tests", "-v", *arguments)]
    unit = ["tests", *(f"--ignore=tests/{name}" for name in NOT_UNIT), "-m", "not real", "-q", f"-n{usable_cores()}"]
    flows = ["tests/flows", "-m", "not real", "-v", "-n2"]
    result = [
        lambda: tests.check("ruff format", "ruff", "format", "--check", "."),
        lambda: tests.check("ruff check", "ruff", "check", "."),
        lambda: tests.check("mypy", "mypy"),
        lambda: tests.check("lint-imports", "lint-imports"),
        lambda: tests.pytest("unit", *unit, *arguments),
    ]
    if not quick:
        result.append(lambda: tests.pytest("flows", *flows, *arguments))
    if real:
        cluster = ["tests/contract", "tests/flows", "-m", "real", "-v"]
        result.append(
            lambda: subprocess.run(["tests/cluster/up", "--yes"], cwd=ROOT).returncode == 0 or tests.lost("real cluster")
        )
        result.append(lambda: tests.pytest("real", *cluster, *arguments, inside=("tests/cluster/run", "--")))
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
        "--real", action="store_true", help="also those of the real Kubernetes (as root; tests/cluster/README.md)"
    )
    result.add_argument("--keep-going", action="store_true", help="go on after a stage that failed")
    result.add_argument("-k", metavar="EXPRESSION", help="only the tests that match, as in pytest")
    return result


if __name__ == "__main__":
    sys.exit(main())
