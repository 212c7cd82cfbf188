"""The script of a probe, run by a real bash: each thing that is missing has its exit code and its words."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from metaflow_extensions.kubernetes_ext.decorators import probe_script

FAILS = "false"
DOWNLOAD = ["i=0; while [ $i -le 5 ]; do false && break; sleep 10; i=$((i+1)); done"]  # as core has it
OLD = '#!/bin/sh\nexec %s -c "import sys; sys.version_info = (3, 6); $2"\n' % sys.executable


def run(box: Path, commands: Sequence[str] = (), **environment: str) -> tuple[int, str]:
    """Exit code, and the last line of what it has said."""
    done = subprocess.run(
        ["/bin/bash", "-c", probe_script.text(commands)],
        cwd=box, env={"PATH": f"{box}/bin:/usr/bin:/bin", "MF_DATASTORE": "local", "MF_DATASTORE_ROOT": f"{box}/.metaflow", **environment},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert not done.stderr, "of two streams a container runtime keeps no order"
    return done.returncode, (done.stdout.splitlines() or [""])[-1]


@pytest.fixture
def box(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    return tmp_path


def test_what_is_all_there_is_written_to_the_datastore(box: Path) -> None:
    python = box / "bin" / "python"
    python.unlink()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')  # with its packages, which a link would hide
    python.chmod(0o755)
    assert run(box, ["flush_mflogs"], MF_PROBE_PATH="Flow/kubernetes-check") == (0, "")
    assert (box / ".metaflow" / "Flow" / "kubernetes-check").read_bytes() == b"written by kubernetes check"


@pytest.mark.parametrize(
    ("commands", "environment", "code", "words"),
    [
        pytest.param(
            [], {"METAFLOW_INIT_SCRIPT": "PATH=/nowhere"}, probe_script.NO_PYTHON, "no python in /nowhere", id="no python"
        ),
        pytest.param([FAILS], {}, probe_script.NO_SETUP, "", id="the set-up fails"),
        pytest.param(DOWNLOAD, {}, probe_script.NO_PACKAGE, "", id="a download fails, and is tried once"),
        pytest.param(
            [],
            {"MF_DATASTORE": "s3", "METAFLOW_S3_ENDPOINT_URL": "http://127.0.0.1:9"},
            probe_script.UNREACHABLE,
            "The datastore can't be reached from the pod at http://127.0.0.1:9: Connection refused",
            id="nobody listens",
        ),
        pytest.param(
            [],
            {"METAFLOW_DEFAULT_METADATA": "service", "METAFLOW_SERVICE_URL": "http://nowhere.invalid/x"},
            probe_script.UNREACHABLE,
            "The name of the metadata service, nowhere.invalid, can't be resolved in the pod",
            id="no such name",
        ),
        pytest.param([], {"MF_DATASTORE": "unknown"}, probe_script.UNWRITABLE, "", id="it can't be written"),
    ],
)
def test_what_is_missing(box: Path, commands: list[str], environment: dict[str, str], code: int, words: str) -> None:
    found, said = run(box, commands, **environment)
    assert found == code, said
    assert words in said


def test_an_old_python(box: Path) -> None:
    python = box / "bin" / "python"
    python.unlink()
    python.write_text(OLD)
    python.chmod(0o755)
    assert run(box) == (probe_script.OLD_PYTHON, "It is Python 3.6.")


def test_a_directory_that_can_not_be_written(box: Path) -> None:
    (box / ".logs").write_text("a file")
    assert run(box)[0] == probe_script.NO_DIRECTORY
