"""A gang started from a notebook, cell by cell, as a user would."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat

from tests.flows.conftest import Runner

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_notebook_runs_from_top_to_bottom(runner: Runner) -> None:
    for example in ("01-digits", "03-notebook"):
        shutil.copytree(EXAMPLES / example, runner.home / example, ignore=shutil.ignore_patterns(".metaflow", "__pycache__"))
    notebook = nbformat.read(runner.home / "03-notebook" / "gang.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # the example is kept without outputs

    done = runner.run(str(runner.home / "03-notebook" / "execute.py"), timeout=300)

    assert done.code == 0, str(done)
    accuracy = float(done.output.split("\naccuracy ")[1].split()[0])
    assert accuracy > 0.95
    assert [f"rank {rank} " in done.output for rank in range(4)] == [True] * 4
    assert not list((runner.home / "01-digits").glob("NotebookDigitsFlow*"))  # NBRunner's temporary file
