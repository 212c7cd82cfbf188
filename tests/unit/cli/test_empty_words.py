"""An empty word, as a script's variable that is not set gives it, is never "all of them"; a file that can't be is said."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from metaflow.exception import MetaflowException

from metaflow_extensions.kubernetes_ext.cli.record_command import _opened
from metaflow_extensions.kubernetes_ext.cli.workloads_command import kill_workloads

OBJ = SimpleNamespace(flow=SimpleNamespace(name="F"), echo=print)


@pytest.mark.parametrize(
    ("target", "run_id", "user"), [("", None, None), (None, "", None), (None, None, "")], ids=["target", "run id", "user"]
)
def test_nothing_is_killed_for_an_empty_word(target: str | None, run_id: str | None, user: str | None) -> None:
    with pytest.raises(MetaflowException, match=r"is not RUN|is empty"):
        kill_workloads(OBJ, target, run_id, user, False)


def test_a_recording_needs_a_place(tmp_path: Path) -> None:
    with pytest.raises(MetaflowException, match="can't be written: No such file or directory"):
        _opened(str(tmp_path / "nowhere" / "x.jsonl"))
