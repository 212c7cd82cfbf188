"""Python and client versions, each in a virtual environment of its own with a part of the tests. Standard library only."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from environment import say  # noqa: E402

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
OLDEST_METAFLOW = "2.19.0"


@dataclass(frozen=True)
class Cell:
    python: str
    requirements: tuple[str, ...]  # beside what setup.py asks for

    def __str__(self) -> str:
        return f"Python {self.python}, {', '.join(self.requirements)}"


CELLS = [
    *(Cell(python, (f"kubernetes=={client}",)) for python in PYTHONS for client in ("31.0.0", "37.0.1")),
    Cell("3.10", ("kubernetes==31.0.0", f"metaflow=={OLDEST_METAFLOW}")),
]


def interpreter(version: str) -> str | None:
    """Beside the Python that runs this (as pyenv has them), or on the PATH."""
    beside = sorted(Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python3"))
    return str(beside[-1]) if beside else shutil.which(f"python{version}")


def sampled(commit: str) -> list[Cell]:
    """One cell, another one for most commits, the same for the same commit."""
    return [CELLS[int(commit[:8], 16) % len(CELLS)]]


def commit() -> str:
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def run(cell: Cell, options: list[str]) -> bool:
    say(f"--- {cell}")
    python = interpreter(cell.python)
    if python is None:
        say(f"PYTHON {cell.python} IS NOT ON THIS MACHINE: not tested")
        return False
    command = [python, str(ROOT / "tests" / "matrix" / "cell.py"), *options, *cell.requirements]
    return subprocess.run(command, cwd=ROOT).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/matrix/run", description=__doc__)
    parser.add_argument("--all", action="store_true", help="all cells (about 3 minutes each), not only the one of this commit")
    parser.add_argument("--set-up", action="store_true", help="only install what the cells need")
    parser.add_argument("--list", action="store_true", help="show them")
    options = parser.parse_args()
    cells = CELLS if options.all else sampled(commit())
    if options.list:
        print("\n".join(map(str, CELLS)))
        return 0
    os.environ["METAFLOW_KUBERNETES_EXT_MATRIX"] = "1"
    results = {str(cell): run(cell, ["--set-up"] if options.set_up else []) for cell in cells}
    for name, is_good in results.items():
        print(f"{'passed' if is_good else 'FAILED'}  {name}")
    print(f"{sum(results.values())} passed, {len(results) - sum(results.values())} failed", flush=True)
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
