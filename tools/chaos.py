"""Makes the environment of the tests, then runs tests/faults in it. Standard library only."""

from __future__ import annotations

import os
import sys

from environment import ROOT, SetupFailed, environment, say, variables

if __name__ == "__main__":
    try:
        place = environment("tests", extra="test")
    except SetupFailed as error:
        say(str(error))
        sys.exit(1)
    python = str(place / "bin" / "python")
    os.chdir(ROOT)
    os.execve(python, [python, "-m", "tests.faults", *sys.argv[1:]], variables(place))
