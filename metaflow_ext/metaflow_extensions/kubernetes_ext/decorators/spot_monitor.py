"""Core's sidecar that hears of a spot termination on AWS, started only where there is somebody to hear it from: it is a process
that imports Metaflow, in every rank."""

from __future__ import annotations

import socket
import threading

from metaflow.sidecar import Sidecar

NOTICE = "/tmp/spot_termination_notice"
INSTANCE_METADATA = ("169.254.169.254", 80)  # core's spot_monitor_sidecar asks there; a cloud's node answers
_SECONDS = 1.0  # core's, too


class SpotMonitor:
    """`start` returns at once; `stop` at the end of the task."""

    def __init__(self, address: tuple[str, int] = INSTANCE_METADATA) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._is_over = False
        self._sidecar: Sidecar | None = None

    def start(self) -> None:
        threading.Thread(target=self._look, name="spot monitor", daemon=True).start()

    def stop(self) -> None:
        with self._lock:
            self._is_over = True
            if self._sidecar is not None:
                self._sidecar.terminate()

    def _look(self) -> None:
        try:
            socket.create_connection(self._address, _SECONDS).close()
        except OSError:
            return
        with self._lock:
            if not self._is_over:
                self._sidecar = Sidecar("spot_termination_monitor")
                self._sidecar.start()
