"""One cell of the matrix, run with its Python; the arguments are requirements. Standard library only."""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from environment import SetupFailed, environment, say, variables  # noqa: E402

# What depends on the versions of Python, of the client and of Metaflow: talking to a server, and whole flows.
TESTS = (
    "tests/unit/cluster",
    "tests/unit/decorators",
    "tests/contract",
    "tests/flows/test_gangs.py::test_a_gang_of_any_size[2-devcluster]",
    "tests/flows/test_golden_reports.py::test_a_gang_that_fails[exit-devcluster]",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set-up", action="store_true")
    parser.add_argument("requirements", nargs="*")
    options = parser.parse_args()
    requirements: list[str] = options.requirements
    name = (
        f"matrix-{sys.version_info[0]}.{sys.version_info[1]}-{hashlib.sha256(' '.join(requirements).encode()).hexdigest()[:8]}"
    )
    wanted = ROOT / ".venv" / f"{name}.txt"
    wanted.parent.mkdir(exist_ok=True)
    wanted.write_text("\n".join(requirements) + "\n")
    try:
        place = environment(name, extra="test", requirements=[wanted])
    except SetupFailed as error:
        say(str(error))
        return 1
    if options.set_up:
        return 0
    command = ["python", "-m", "pytest", "-q", f"-n{2 * (os.cpu_count() or 1)}", "-m", "not real", *TESTS]
    return subprocess.run(command, cwd=ROOT, env=variables(place)).returncode


if __name__ == "__main__":
    sys.exit(main())
