"""What is compiled once, on the client, is not compiled again by every rank."""

import importlib
import importlib.util
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from metaflow.packaging_sys.tar_backend import TarPackagingBackend

from metaflow_extensions.kubernetes_ext.decorators import compiled_code

SOURCES = {
    "made_up/__init__.py": "",
    "made_up/deep.py": "import made_up.other\n\ndef place():\n    return place.__code__.co_filename\n",
    "made_up/other.py": "",
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ModuleType]]:
    """A package that stands for Metaflow, imported."""
    for name, text in SOURCES.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(compiled_code, "PACKAGED", ("made_up",))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    importlib.import_module("made_up.deep")
    yield [module for name, module in sys.modules.items() if name.startswith("made_up") or name == "os"]
    for name in [name for name in sys.modules if name.startswith("made_up")]:
        del sys.modules[name]


def packaged(modules: list[ModuleType], folder: Path) -> Path:
    """Through core's own archive, as the package of a run, unpacked by tar."""
    folder.mkdir()
    archive = TarPackagingBackend()
    with archive.create():
        for module in modules:
            if module.__name__.startswith("made_up") and module.__file__:
                archive.add_file(module.__file__, f"code/{os.path.relpath(module.__file__, folder.parent / 'site')}")
        for path, name in compiled_code.compiled_files(modules, folder):
            archive.add_file(path, f"code/{name}")
    content = archive.get_blob()
    assert content
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as tar:
        tar.extractall(folder, filter="data")
    return folder / "code"


def imported(place: Path) -> list[str]:
    """Of a new Python that imports from there: what it compiled, and where a function says it is from."""
    code = "import made_up.deep; print(made_up.deep.place())"
    command = [sys.executable, "-v", "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    sources = [
        line.split()[-1] for line in done.stderr.splitlines() if line.startswith("# code object from") and "made_up" in line
    ]
    return [*(Path(source).name for source in sources if source.endswith(".py")), done.stdout.strip()]


def test_a_rank_with_the_same_python_compiles_nothing(modules: list[ModuleType], tmp_path: Path) -> None:
    code = packaged(modules, tmp_path / "package")
    assert sorted(str(path.relative_to(code)) for path in code.rglob("*.pyc")) == [
        f"made_up/__pycache__/{name}.{sys.implementation.cache_tag}.pyc" for name in ("__init__", "deep", "other")
    ]
    assert imported(code) == [str(code / "made_up/deep.py")]


def test_a_module_that_is_another_one_there_is_compiled(modules: list[ModuleType], tmp_path: Path) -> None:
    code = packaged(modules, tmp_path / "package")
    (code / "made_up" / "other.py").write_text("changed = True\n")
    assert imported(code) == ["other.py", str(code / "made_up/deep.py")]


def test_what_was_compiled_of_another_source_is_left_out(modules: list[ModuleType], tmp_path: Path) -> None:
    other = tmp_path / "site" / "made_up" / "other.py"
    other.write_text("changed = True\n")
    Path(importlib.util.cache_from_source(str(tmp_path / "site" / "made_up" / "deep.py"))).unlink()
    names = [name for _, name in compiled_code.compiled_files(modules, tmp_path)]
    assert names == [f"made_up/__pycache__/__init__.{sys.implementation.cache_tag}.pyc"]
