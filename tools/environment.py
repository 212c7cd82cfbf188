"""A virtual environment with this clone in it, made once and kept in .venv/ of the clone. Standard library only.

It is made anew when what it was made from changes: the Python, setup.py, the extras or the requirements of an example.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class SetupFailed(Exception):
    """The environment could not be made. The message is for people."""


def environment(name: str, *, extra: str = "", requirements: Sequence[Path] = ()) -> Path:
    """The directory .venv/<name>, holding the clone (editable), its `extra`, and what the requirement files list."""
    place = ROOT / ".venv" / name
    place.parent.mkdir(exist_ok=True)
    wanted = fingerprint(extra, requirements)
    stamp = place / "made-from"
    with only_one(place.parent / f"{name}.lock"):
        if stamp.exists() and stamp.read_text() == wanted:
            return place
        if place.exists():
            shutil.rmtree(place)
        version = ".".join(map(str, sys.version_info[:3]))
        say(f"Making a virtual environment in {shown(place)} (Python {version})")
        venv.create(place, with_pip=True, symlinks=True)
        install(place, extra, requirements)
        stamp.write_text(wanted)
    return place


def fingerprint(extra: str, requirements: Sequence[Path]) -> str:
    parts = [str(ROOT), sys.version, sys.base_prefix, extra]
    parts += [path.read_text() for path in (ROOT / "setup.py", *requirements)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def install(place: Path, extra: str, requirements: Sequence[Path]) -> None:
    """With uv, which takes seconds where pip takes a minute and a half; with pip where there is no uv."""
    python = str(place / "bin" / "python")
    what = ["--editable", f"{ROOT}[{extra}]" if extra else str(ROOT)]
    for path in requirements:
        what += ["--requirement", str(path)]
    settings = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PYTHONUNBUFFERED": "1"}
    settings.pop("PYTHONPATH", None)
    # --no-compile: most modules of most packages are never imported, so compiling all of them takes longer than it saves.
    pip = [python, "-m", "pip", "install", "--no-compile", "--progress-bar", "off"]
    started = time.monotonic()
    uv = [str(place / "bin" / "uv"), "pip", "install", "--python", python, "--no-progress"]
    is_installed = (
        run_installer(place, [*pip, "uv"], settings) and run_installer(place, [*uv, *what], {**settings, **uv_settings(python)})
    ) or run_installer(place, [*pip, *what], settings)
    if not is_installed:
        log = place / "install.log"
        tail = "\n".join("  " + line for line in log.read_text(errors="replace").splitlines()[-20:])
        raise SetupFailed(f"pip could not install the packages:\n{tail}\nThe whole log: {log}")
    say(f"  installed in {time.monotonic() - started:.0f} s")


def uv_settings(python: str) -> dict[str, str]:
    """pip's own settings in uv's words: where packages come from here."""
    listed = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    given = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        given[name.rpartition(".")[2]] = value.strip("'\"")
    names = {
        "index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS", "cert": "SSL_CERT_FILE",
    }  # fmt: skip
    return {uv: given[pip].replace("\\n", " ").strip() for pip, uv in names.items() if given.get(pip)}


def run_installer(place: Path, command: Sequence[str], settings: dict[str, str]) -> bool:
    """Whether it went well. Its output is in install.log; its progress is shown."""
    log = place / "install.log"
    started = time.monotonic()
    with (
        log.open("w") as output,
        subprocess.Popen(command, env=settings, stdout=output, stderr=subprocess.STDOUT) as installer,
        progress() as show,
    ):
        while installer.poll() is None:
            time.sleep(0.2)
            show(f"  installing, {time.monotonic() - started:.0f} s: {pip_says(log)}")
    return installer.returncode == 0


def pip_says(log: Path) -> str:
    """The progress in one phrase, of the last line of the log that tells."""
    lines = log.read_text(errors="replace").splitlines()
    found = sum(line.startswith("Collecting ") for line in lines)
    for line in reversed(lines):
        if line.startswith("Installing collected packages:"):
            return f"unpacking {line.count(',') + 1} packages"
        if line.startswith("Collecting "):
            return f"package {found}, {line.split()[1]}"
    return "asking for what there is"


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that shows a line over the one before; without a terminal, a line every 10 seconds."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        yield lambda text: print(f"\r{text[:width]:<{width}}", end="", file=sys.stderr, flush=True)
        print(f"\r{'':<{width}}\r", end="", file=sys.stderr, flush=True)
    else:
        last = time.monotonic()

        def show(text: str) -> None:
            nonlocal last
            if time.monotonic() - last >= 10:
                last = time.monotonic()
                say(text)

        yield show


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Two commands started at the same time must not make the same environment twice."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def variables(place: Path) -> dict[str, str]:
    """The environment variables of a process in the virtual environment at `place`."""
    values = {**os.environ, "VIRTUAL_ENV": str(place), "PYTHONUNBUFFERED": "1"}
    values["PATH"] = os.pathsep.join([str(place / "bin"), os.environ.get("PATH", os.defpath)])
    values.pop("PYTHONHOME", None)
    values.pop("PYTHONPATH", None)
    # One's own Metaflow configuration is for another cluster and another datastore.
    values.pop("METAFLOW_PROFILE", None)
    values["METAFLOW_HOME"] = str(place / "metaflow-home")
    # Metaflow asks for a user name and takes none of these when it is root's.
    names = [values.get(name) for name in ("METAFLOW_USER", "SUDO_USER", "USERNAME", "USER")]
    if not any(name and name != "root" for name in names):
        values["METAFLOW_USER"] = "developer"
    return values


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def shown(path: Path) -> str:
    """A path as short as it is clear: from the current directory where that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)
