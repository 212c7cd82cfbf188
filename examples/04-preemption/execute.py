"""Run flow.py on Kubernetes, and evict one of its pods, as a node that is drained would, when it has trained for a while."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from kubernetes import client, config
from metaflow.metaflow_config import KUBERNETES_NAMESPACE

HERE = Path(__file__).resolve().parent
SELECTOR = "metaflow.org/flow=PreemptionFlow,metaflow.org/step=train,jobset.sigs.k8s.io/replicatedjob-name=worker"


def main() -> int:
    command = [sys.executable, "-u", str(HERE / "flow.py"), "run", "--with", "kubernetes:logs=all", *sys.argv[1:]]
    trained: set[str] = set()  # the ranks that are well on their way
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            print(line, end="", flush=True)
            found = re.search(r"\[rank (\d)\] step 20$", line.rstrip())
            if found and found[1] not in trained:
                trained.add(found[1])
                if trained == {"0", "1"}:
                    evict()
    return run.returncode


def evict() -> None:
    config.load_kube_config()
    core, namespace = client.CoreV1Api(), KUBERNETES_NAMESPACE or "default"
    for pod in core.list_namespaced_pod(namespace, label_selector=SELECTOR).items:
        if pod.status.phase == "Running":
            meta = client.V1ObjectMeta(name=pod.metadata.name, namespace=namespace)
            core.create_namespaced_pod_eviction(pod.metadata.name, namespace, client.V1Eviction(metadata=meta))
            print(f"--- evicted {pod.metadata.name}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
