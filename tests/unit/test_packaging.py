"""What is installed, as a wheel and editable, is all that is needed, and Metaflow finds it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = REPOSITORY / "metaflow_ext"
EXTENSION = "metaflow_extensions/kubernetes_ext"
LITTER = ("__pycache__", "*.egg-info", ".*")

WHOSE = """
from metaflow.plugins import STEP_DECORATORS, get_plugin_cli
for decorator in STEP_DECORATORS:
    if decorator.name in ("kubernetes", "parallel"):
        print(decorator.name, decorator.__module__)
for cli in get_plugin_cli():
    if "kubernetes" in cli.commands:
        print("cli", cli.commands["kubernetes"].commands["step"].callback.__module__)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of what the package is made of: building leaves its traces there, not in the clone."""
    place = tmp_path_factory.mktemp("source")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, place)
    shutil.copytree(SOURCE, place / "metaflow_ext", ignore=shutil.ignore_patterns(*LITTER))
    return place


@pytest.fixture(scope="module")
def wheel(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    pip(Path(sys.executable), "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(place), str(copy))
    (made,) = place.glob("*.whl")
    return made


def pip(python: Path, *words: str) -> None:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def environment_without_us(place: Path) -> Path:
    """A Python with this one's packages but for ours."""
    venv.create(place, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.search(r"kubernetes_ext|metaflow_extensions|metaflow_devcluster|__editable__|\.pth$", entry.name):
            (packages / entry.name).symlink_to(entry)
    return place / "bin" / "python"


def test_the_wheel_holds_every_file_of_the_source(wheel: Path) -> None:
    ignored = shutil.ignore_patterns(*LITTER)
    files = set()
    for directory, names, file_names in os.walk(SOURCE):
        skipped = ignored(directory, [*names, *file_names])
        names[:] = [name for name in names if name not in skipped]
        files |= {str((Path(directory) / name).relative_to(SOURCE)) for name in file_names if name not in skipped}

    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    assert inside == files


def test_the_wheel_holds_metaflows_extension_points_and_the_data(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())

    assert {f"{EXTENSION}/{point}/mfextinit_kubernetes_ext.py" for point in ("plugins", "config", "toplevel")} <= inside
    assert "metaflow_extensions/mfextmeta_kubernetes_ext.py" in inside
    assert "metaflow_extensions/__init__.py" not in inside  # it would hide all other extensions
    assert any(name.startswith("metaflow_devcluster/api/data/") and name.endswith(".json") for name in inside)


@pytest.mark.parametrize("how", ["wheel", "editable"])
def test_metaflow_uses_our_decorators_and_commands(how: str, copy: Path, wheel: Path, tmp_path: Path) -> None:
    python = environment_without_us(tmp_path / "venv")
    what = [str(wheel)] if how == "wheel" else ["--no-build-isolation", "--editable", str(copy)]
    pip(python, "install", "--no-deps", "--no-index", *what)

    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(python), "-W", "ignore", "-c", WHOSE],
        cwd=tmp_path,
        env={**environment, "METAFLOW_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = dict(line.split() for line in done.stdout.splitlines())
    assert found.keys() == {"kubernetes", "parallel", "cli"}
    assert [module for module in found.values() if not module.startswith("metaflow_extensions.kubernetes_ext.")] == []


def test_there_is_one_version() -> None:
    in_setup = re.search(r'^VERSION = "(.+)"$', (REPOSITORY / "setup.py").read_text(), re.MULTILINE)
    in_package = re.search(r'^__version__ = "(.+)"$', (SOURCE / EXTENSION / "__init__.py").read_text(), re.MULTILINE)

    assert in_setup is not None
    assert in_package is not None
    assert in_setup[1] == in_package[1]


@pytest.mark.parametrize(
    ("version", "allowed"),
    [
        pytest.param("30.1.0", False, id="older than supported"),
        pytest.param("31.0.0", True, id="the oldest"),
        pytest.param("37.0.1", True, id="before the one that breaks the resolver"),
        pytest.param("37.0.2", False, id="needs python-dateutil 3, which botocore refuses"),
    ],
)
def test_versions_of_the_kubernetes_client(version: str, allowed: bool, wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    lines = archive.read(metadata).decode().splitlines()
    required = [Requirement(line.partition(": ")[2]) for line in lines if line.startswith("Requires-Dist: ")]
    (kubernetes,) = [requirement for requirement in required if requirement.name == "kubernetes"]

    assert kubernetes.specifier.contains(version) is allowed
