"""The compiled form of Metaflow's and our modules, for the code package: each rank would compile the same 270 modules anew,
half a second of a core, and once more for its log.

A .pyc is used when Python has the same version there (as core's default image has) and the module is what it was made from:
it names the module's size and the time which core's packages give to every file. Otherwise it is as if it were not there.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType

PACKAGED = ("metaflow", "metaflow_extensions")  # what core puts into every code package
PACKAGE_TIME = 1575360000  # of each file in a package: metaflow.packaging_sys.tar_backend (PEP 552 for the header)
_HEADER = 16  # bytes: the magic number, flags, the source's time and its size


@lru_cache(1)  # not `cache`: a task imports this module, on Python 3.8 too
def for_package() -> list[tuple[str, str]]:
    """(path of a file, its path in the package) of what this process has imported. The files are gone with the process."""
    folder = Path(tempfile.mkdtemp(prefix="metaflow-compiled-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return list(compiled_files(list(sys.modules.values()), folder))


def compiled_files(modules: Iterable[ModuleType], folder: Path) -> Iterator[tuple[str, str]]:
    """Those modules that are packaged and that Python has compiled before, written to `folder`."""
    for module in modules:
        spec = getattr(module, "__spec__", None)
        if spec is None or spec.name.split(".")[0] not in PACKAGED or not spec.origin or not spec.cached:
            continue
        compiled = _as_packaged(Path(spec.origin), Path(spec.cached))
        if compiled is None:
            continue
        parents = spec.name.split(".") if spec.submodule_search_locations is not None else spec.name.split(".")[:-1]
        name = f"{Path(spec.origin).stem}.{sys.implementation.cache_tag}.pyc"
        path = folder / f"{spec.name}.pyc"
        path.write_bytes(compiled)
        yield str(path), "/".join([*parents, "__pycache__", name])


def _as_packaged(source: Path, cached: Path) -> bytes | None:
    """The compiled file of `source` as it must be beside the packaged one; None if it is not there or of another source."""
    try:
        content, stat = cached.read_bytes(), os.stat(source)
    except OSError:
        return None
    if content[:_HEADER] != _header(int(stat.st_mtime), stat.st_size):
        return None
    return _header(PACKAGE_TIME, stat.st_size) + content[_HEADER:]


def _header(mtime: int, size: int) -> bytes:
    numbers = (0, mtime & 0xFFFFFFFF, size & 0xFFFFFFFF)
    return importlib.util.MAGIC_NUMBER + b"".join(number.to_bytes(4, "little") for number in numbers)
