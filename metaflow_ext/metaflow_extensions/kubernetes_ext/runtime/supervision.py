"""What a run and its step processes tell the run's supervisor (`supervisor.py`), a process that outlives them all.

Step processes say what they own; the run says when it has ended. A run starts one supervisor and passes its address to the step
processes in an environment variable. Everything works without one, too: then nobody cleans up after a process that was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..backends.base import Backend
from ..cluster.protocol import Resource
from ..spec import labels
from .resources import resource_of

ADDRESS = "METAFLOW_KUBERNETES_SUPERVISOR"  # path of a Unix socket in a folder that only its user can enter
DETACH = "detach"
FINISHED = "finished"
HEARD = "heard"
_ANSWER_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Owned:
    """A workload that a step process has created or is about to create. `submission` tells it from somebody else's."""

    group: str
    version: str
    plural: str
    kind: str
    namespace: str
    name: str
    submission: str
    is_beside: bool = False  # another object that goes with the workload of this name

    @property
    def resource(self) -> Resource:
        return Resource(self.group, self.version, self.plural, self.kind)


def owned(kind: Backend | Resource, manifest: Mapping[str, Any], *, is_beside: bool = False) -> Owned:
    """`manifest` carries the annotation of its submission (`submit.stamped`)."""
    metadata = manifest["metadata"]
    resource = kind if isinstance(kind, Resource) else resource_of(kind)
    return Owned(
        group=resource.group,
        version=resource.version,
        plural=resource.plural,
        kind=resource.kind,
        namespace=str(metadata["namespace"]),
        name=str(metadata["name"]),
        submission=str(metadata["annotations"][labels.SUBMISSION]),
        is_beside=is_beside,
    )


class Supervised:
    """A step process's line to the supervisor. Never raises: a supervisor that is gone changes nothing for a step."""

    def __init__(self, address: str | None, on_detach: Callable[[], None]) -> None:
        """`on_detach` is called, in a thread, when the run was killed: the workload is to go on without its step process."""
        self._socket: socket.socket | None = None
        self._heard = threading.Event()
        if address:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(address)
            except OSError:
                connection.close()
            else:
                self._socket = connection
                listen = threading.Thread(target=self._listen, args=(connection, on_detach), daemon=True, name="supervised")
                listen.start()

    def own(self, workload: Owned) -> None:
        """Call it before the request that creates the workload. Returns when the supervisor knows, or is gone."""
        if self._socket is not None:
            self._heard.clear()
            self._send({"own": asdict(workload)})
            self._heard.wait(_ANSWER_SECONDS)

    def release(self) -> None:
        """What was owned has ended, or is deleted: nothing is left to clean up."""
        self._send({"release": True})

    def close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._socket = None

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _listen(self, connection: socket.socket, on_detach: Callable[[], None]) -> None:
        with contextlib.suppress(OSError, ValueError), connection.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                if line.strip() == HEARD:
                    self._heard.set()
                elif line.strip() == DETACH:
                    on_detach()
        self._heard.set()


class Supervision:
    """A run's supervisor, as the run sees it."""

    def __init__(self) -> None:
        """Starts the process. Raises OSError where that can't be."""
        self._folder = tempfile.mkdtemp(prefix="mf-k8s-")
        self._address = os.path.join(self._folder, "s")
        ours, its = socket.socketpair()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(self._address)
            listening.listen(128)
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.supervisor", str(its.fileno()), str(listening.fileno()), self._folder],
                pass_fds=(its.fileno(), listening.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a signal to the terminal's processes, or its end, is not for it
            )
        except OSError:
            ours.close()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        finally:
            its.close()
            listening.close()
        self._socket = ours

    @property
    def address(self) -> str:
        return self._address

    @property
    def pid(self) -> int:
        return self._process.pid

    def finish(self, tell: Callable[[str], None], patience: float = 30.0) -> None:
        """The run has ended: what its step processes left behind is deleted. Tells what is; waits for it for `patience` seconds.

        What can't be deleted by then is gone on with in the background.
        """
        with contextlib.suppress(OSError):
            self._socket.sendall(FINISHED.encode() + b"\n")
            self._socket.settimeout(patience)
            with self._socket.makefile("r", encoding="utf-8") as lines:
                for line in lines:
                    tell(line.rstrip("\n"))
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)  # it is on its way out, unless it goes on in the background
