"""Two virtual environments: the tests' own, and one with the same packages but without this extension: core Metaflow. Standard library only."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from environment import environment, say  # noqa: E402

CORE = ROOT / ".venv" / "core"
PACKAGES = ("metaflow", "kubernetes", "boto3", "botocore", "s3transfer")


def main() -> None:
    ours = environment("tests", extra="test")
    frozen = subprocess.run([ours / "bin" / "pip", "freeze"], capture_output=True, text=True, check=True).stdout
    wanted = [line for line in frozen.splitlines() if line.split("==")[0] in PACKAGES]
    stamp = CORE / "made-from"
    if not stamp.exists() or stamp.read_text() != "\n".join(wanted):
        say(f"Making an environment of core Metaflow: {' '.join(wanted)}")
        venv.create(CORE, with_pip=True, clear=True, symlinks=True)
        subprocess.run([CORE / "bin" / "pip", "install", "--quiet", *wanted], check=True)
        stamp.write_text("\n".join(wanted))


if __name__ == "__main__":
    main()
