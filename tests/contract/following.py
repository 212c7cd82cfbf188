"""`python -m tests.contract.following KUBECONFIG NAMESPACE NAME`: follows all ranks of a JobSet to its end, as `kubernetes logs
--follow` does; what the ranks write on standard output, and last on standard error what that took, as JSON."""

from __future__ import annotations

import json
import resource
import sys
import threading
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


def main(kubeconfig: str, namespace: str, name: str) -> None:
    client, backend, printer, clock = (
        KubernetesClient(from_kubeconfig(Path(kubeconfig))),
        JobSetBackend(),
        Printer(),
        RealClock(),
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    workload = client.get(resource_of(backend), namespace, name)
    with RunningJobSet(client, backend, workload, namespace=namespace, clock=clock) as running:
        Monitor(client, running, printer, clock=clock).follow()
    client.close()
    used = resource.getrusage(resource.RUSAGE_SELF)
    cost = {
        "threads": printer.threads,
        "peak_mb": used.ru_maxrss // 1024,
        "peak_mb_before": before // 1024,
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "lines": printer.lines,
    }
    print(json.dumps(cost), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
