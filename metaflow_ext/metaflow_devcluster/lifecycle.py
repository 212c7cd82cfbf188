"""Starting and stopping the cluster as a background process of its user, and cleaning up after one that died.

Everything of a cluster is in one directory of mode 0700. The server holds a lock on a file there for as long as it
lives, however it dies; that lock, and no process id, says whether it runs.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from .node.environment import SHARED_FILES

START_TIMEOUT, STOP_TIMEOUT = 60.0, 10.0
_POLL = 0.03
_started: list[subprocess.Popen[bytes]] = []  # they outlive this process; nobody is to wait for them
_BOOT = "import sys; sys.path.append(sys.argv.pop(1)); from metaflow_devcluster.cli import main; sys.exit(main())"


class LifecycleError(Exception):
    """One sentence for the user."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a cluster is to be; None leaves the choice to the node (see node.capacity)."""

    nodes: int = 1
    node_cpu: str | None = None
    node_memory: str | None = None
    delays: str = "none"
    port: int = 0


@dataclass(frozen=True)
class Home:
    """The directory of a cluster and what is in it."""

    path: Path
    kubeconfig: Path = field(init=False)
    log: Path = field(init=False)
    lock: Path = field(init=False)
    server: Path = field(init=False)
    node: Path = field(init=False)

    def __post_init__(self) -> None:
        for name, file in (
            ("kubeconfig", "kubeconfig"),
            ("log", "server.log"),
            ("lock", "lock"),
            ("server", "server.json"),
            ("node", "node"),
        ):
            object.__setattr__(self, name, self.path / file)

    @classmethod
    def default(cls) -> Home:
        """$METAFLOW_DEVCLUSTER_HOME or ~/.metaflow-devcluster."""
        given = os.environ.get("METAFLOW_DEVCLUSTER_HOME")
        return cls(Path(given).absolute() if given else Path.home() / ".metaflow-devcluster")

    def create(self) -> None:
        """Make the directory, for its user only."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self.path.stat().st_uid != os.getuid():
                raise LifecycleError(f"{self.path} belongs to another user; set METAFLOW_DEVCLUSTER_HOME.")
            self.path.chmod(0o700)
        except OSError as error:
            raise LifecycleError(f"The directory {self.path} can not be used: {error.strerror}.") from error

    def take_lock(self) -> IO[str] | None:
        """The lock of a running server, None when another process has it. Keep the file open."""
        file = self.lock.open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return file

    def is_running(self) -> bool:
        if not self.lock.exists():
            return False
        file = self.take_lock()
        if file is None:
            return True
        file.close()
        return False

    def state(self) -> dict[str, Any]:
        """What the server wrote about itself; empty when it has not got that far."""
        try:
            found: dict[str, Any] = json.loads(self.server.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return found

    def environment(self) -> dict[str, str]:
        """The variables that make clients use this cluster."""
        return {"KUBECONFIG": str(self.kubeconfig), SHARED_FILES: "1"}


def write_private(path: Path, text: str) -> None:
    """Write a file that only its user may read, at once or not at all."""
    new = path.with_name(path.name + ".new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    new.replace(path)


def kubeconfig(url: str) -> str:
    """A kubeconfig (JSON is YAML). The secret is a part of the URL: kubectl sends no tokens over plain HTTP."""
    name = "metaflow-devcluster"
    found = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
    }
    return json.dumps(found, indent=2) + "\n"


def up(home: Home, options: Options, *, lifeline: bool = False) -> tuple[bool, subprocess.Popen[bytes] | None]:
    """Start a server unless one runs; whether it was started, and its process.

    With `lifeline` the server ends when the returned process's standard input is closed, that is, with its starter.
    """
    home.create()
    if home.is_running():
        _wait_until_ready(home, None)
        return False, None
    sweep(home)
    arguments = ["serve", "--options", json.dumps(asdict(options)), *(["--lifeline"] if lifeline else [])]
    with open(os.open(home.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, str(Path(__file__).parent.parent), *arguments],
            stdin=subprocess.PIPE if lifeline else subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=home.path,
            env={**os.environ, "METAFLOW_DEVCLUSTER_HOME": str(home.path)},
        )
    _started.append(process)
    _wait_until_ready(home, process)
    return True, process


def down(home: Home) -> bool:
    """Stop the server and remove what it leaves; whether one was running."""
    was_running = home.path.exists() and home.is_running()
    pid = home.state().get("pid")
    if was_running and pid:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if _signal(pid, number) and _wait_for_lock(home):
                break
        else:
            raise LifecycleError(f"The server (process {pid}) does not end.")
    if home.path.exists():
        sweep(home)
    return was_running


def sweep(home: Home) -> None:
    """End the processes and remove the files of a server that is gone."""
    for pid in leftover_processes(home.node):
        _signal(pid, signal.SIGKILL)
    shutil.rmtree(home.node, ignore_errors=True)
    for path in (home.kubeconfig, home.server):
        path.unlink(missing_ok=True)


def leftover_processes(node: Path) -> list[int]:
    """Processes whose environment places them in a container of this node, and shims by their pid files.

    A shim ends by itself when the server is gone; this finds what is left if a shim was killed as well.
    """
    found = []
    home = f"HOME={node}/pods/".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(variable.startswith(home) for variable in variables):
            found.append(int(entry.parent.name))
    return found


def request(home: Home, path: str, timeout: float = 10.0, *, method: str = "GET", body: dict[str, Any] | None = None) -> bytes:
    """Ask the running server; what it refuses is a LifecycleError with its own words. PATCH merges."""
    url = home.state().get("url")
    if not url or not home.is_running():
        raise LifecycleError("The cluster is not running; start it with: metaflow-devcluster up")
    try:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(url + path, data, {"Content-Type": kind}, method=method)
        with urllib.request.urlopen(asked, timeout=timeout) as answer:
            found: bytes = answer.read()
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        try:
            text = json.loads(text)["message"]
        except (ValueError, KeyError, TypeError):
            text = text or str(error)
        raise LifecycleError(text) from error
    except OSError as error:
        raise LifecycleError(f"The server does not answer: {error}.") from error
    return found


def _wait_until_ready(home: Home, process: subprocess.Popen[bytes] | None) -> None:
    end = time.monotonic() + START_TIMEOUT
    while time.monotonic() < end:
        if process is not None and process.poll() is not None:
            raise LifecycleError(f"The server did not start: {last_words(home)}")
        if home.state().get("url") and home.is_running():
            try:
                request(home, "/readyz", timeout=2.0)
            except LifecycleError:
                time.sleep(_POLL)
                continue
            return
        time.sleep(_POLL)
    raise LifecycleError(f"The server is not ready after {START_TIMEOUT:g} seconds; see {home.log}.")


def last_words(home: Home) -> str:
    """The last line of the server's log."""
    try:
        lines = home.log.read_text(errors="replace").split("\n")
    except FileNotFoundError:
        lines = []
    return next((line for line in reversed(lines) if line.strip()), f"it wrote nothing to {home.log}")


def _wait_for_lock(home: Home) -> bool:
    end = time.monotonic() + STOP_TIMEOUT
    while time.monotonic() < end:
        if not home.is_running():
            return True
        time.sleep(_POLL)
    return False


def _signal(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True
