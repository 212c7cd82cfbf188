"""The layers of CONTRIBUTING.md, held by import-linter's contracts in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest
from importlinter.application.use_cases import lint_imports

ROOT = Path(__file__).resolve().parents[2]


def test_every_import_goes_in_its_direction(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from importlinter.cli import EXIT_STATUS_SUCCESS  # importing the command line configures the library

    monkeypatch.chdir(ROOT)
    kept = lint_imports(
        config_filename="pyproject.toml", cache_dir=None, is_debug_mode=False, show_timings=False, verbose=False
    )
    assert (EXIT_STATUS_SUCCESS if kept else 1) == 0, capsys.readouterr().out


def test_the_namespace_of_metaflow_extensions_stays_a_namespace() -> None:
    assert not (ROOT / "metaflow_ext" / "metaflow_extensions" / "__init__.py").exists()
