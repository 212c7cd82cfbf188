"""What a task's container imports needs nothing but metaflow and runs on Python 3.8, whatever the client has."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import metaflow_extensions.kubernetes_ext as package

ROOT = Path(package.__path__[0])
PREFIX = package.__name__

IMPORTED = f"""
import json, sys
import metaflow
from metaflow.plugins import STEP_DECORATORS
ours = sorted(deco.__module__ for deco in STEP_DECORATORS if deco.name in ("kubernetes", "parallel"))
import {PREFIX}.decorators.current_gang, {PREFIX}.decorators.task_process, {PREFIX}.cli.kubernetes_cli
print(json.dumps({{
    "ours": ours,
    "modules": sorted(name for name in sys.modules if name.startswith({PREFIX!r})),
    "others": sorted({{name.partition(".")[0] for name in sys.modules}} & {{"kubernetes", "aiohttp", "jsonpatch"}}),
}}))
"""


def imported(python: str, **environment: str) -> dict[str, list[str]]:
    done = subprocess.run(
        [python, "-c", IMPORTED], capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def source(module: str) -> str:
    """Of a module, or of a package, which may be a namespace without one."""
    path = ROOT.joinpath(*module.removeprefix(PREFIX).strip(".").split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_the_modules_of_a_task_are_written_for_python_3_8() -> None:
    found = imported(sys.executable)
    assert found["others"] == []
    assert len(found["modules"]) > 10
    for module in found["modules"]:
        text = source(module)
        tree = ast.parse(text, feature_version=(3, 8))
        is_empty = not any(isinstance(node, (ast.FunctionDef, ast.ClassDef)) for node in ast.walk(tree))
        assert is_empty or "from __future__ import annotations" in text, f"{module}: its annotations are evaluated"
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                new = {keyword.arg for keyword in node.keywords} & {"kw_only", "slots", "strict"}
                assert not new, f"{module}:{node.lineno}: {new} came after Python 3.8"


def python_3_8() -> str | None:
    """One that works: pyenv's shims are there for every version that some environment has."""
    beside = sorted(map(str, Path(sys.base_prefix).parent.glob("3.8*/bin/python")))
    for candidate in (*beside, shutil.which("python3.8")):
        if candidate and subprocess.run([candidate, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


def test_a_real_python_3_8_imports_them(tmp_path: Path) -> None:
    """With a metaflow of its own. Where there is no such interpreter, the test above is what there is."""
    interpreter = python_3_8()
    if interpreter is None:
        return
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "metaflow-kubernetes-ext" / "task-python-3.8"
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        subprocess.run([interpreter, "-m", "venv", "--clear", place], check=True, timeout=120)
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-compile", "metaflow"], check=True, timeout=300)
        (place / "complete").touch()
    (tmp_path / "metaflow_extensions").symlink_to(ROOT.parent)
    found = imported(str(python), PYTHONPATH=str(tmp_path), HOME=str(tmp_path))
    assert found["ours"] == [f"{PREFIX}.decorators.kubernetes_decorator", f"{PREFIX}.decorators.parallel_decorator"]
