"""`python -m tests.contract.following KUBECONFIG NAMESPACE NAME`: follows all ranks of a JobSet to its end, as `kubernetes logs
--follow` does; what the ranks write on standard output, and last on standard error what that took, as JSON."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

from metaflow_extensions.kubernetes_ext.backends.jobset import JobSetBackend
from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.runtime.clock import RealClock
from metaflow_extensions.kubernetes_ext.runtime.monitor import Monitor
from metaflow_extensions.kubernetes_ext.runtime.resources import resource_of
from metaflow_extensions.kubernetes_ext.runtime.running import RunningJobSet
from tests.contract.places import from_kubeconfig


class Printer:
    threads = lines = 0

    def line(self, text: str) -> None:
        print(text, file=sys.stderr)

    def log(self, role: str, rank: int, timestamp: str, line: str) -> None:
        print(f"[rank {rank}] {line}")
        self.lines += 1
        if self.lines % 100 == 0:
            self.threads = max(self.threads, threading.active_count())


def peak_mb() -> int:
    """Of this program (on Linux); the system's own count, getrusage, begins with that of the one it was started from."""
    if not Path("/proc/self/status").exists():
        return 0
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))


def main(kubeconfig: str, namespace: str, name: str) -> None:
    client, backend, printer, clock = (
        KubernetesClient(from_kubeconfig(Path(kubeconfig))),
        JobSetBackend(),
        Printer(),
        RealClock(),
    )
    before = peak_mb()
    workload = client.get(resource_of(backend), namespace, name)
    with RunningJobSet(client, backend, workload, namespace=namespace, clock=clock) as running:
        Monitor(client, running, printer, clock=clock).follow()
    client.close()
    cost = {"threads": printer.threads, "peak_mb": peak_mb(), "peak_mb_before": before, "cpu_seconds": time.process_time()}
    print(json.dumps(cost), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
