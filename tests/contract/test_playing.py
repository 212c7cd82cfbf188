"""What the development cluster plays is seen as it was recorded on a real one: evictions by the node, and lost nodes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from metaflow_devcluster.cli import main
from metaflow_devcluster.lifecycle import Home
from metaflow_extensions.kubernetes_ext.backends.jobset import JobSetBackend
from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.protocol import JOBS, PODS, Resource
from metaflow_extensions.kubernetes_ext.replay import moments, read, summary
from metaflow_extensions.kubernetes_ext.runtime.clock import RealClock
from metaflow_extensions.kubernetes_ext.runtime.recorder import Recorder
from metaflow_extensions.kubernetes_ext.status.trace import Entry, parse_trace
from tests.contract.places import from_kubeconfig, until
from tests.unit.devcluster.world import FAIL_JOB_RULES, gang
from tests.unit.status.test_traces import TRACES

Object = dict[str, Any]
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
WORKER = "batch.kubernetes.io/job-completion-index=1,jobset.sigs.k8s.io/replicatedjob-name=worker"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesClient]:
    patch = pytest.MonkeyPatch()
    patch.setenv("METAFLOW_DEVCLUSTER_HOME", str(tmp_path_factory.mktemp("playing")))
    assert main(["up", "--nodes", "2"]) == 0
    try:
        with closing(KubernetesClient(from_kubeconfig(Home.default().kubeconfig))) as made:
            yield made
    finally:
        main(["down"])
        patch.undo()


def workload(name: str, **fields: Any) -> Object:
    """Control on the first node, the workers on the second; they would run for long."""
    made = gang(name, **fields)
    for node, group in enumerate(made["spec"]["replicatedJobs"]):
        spec = group["template"]["spec"]["template"]["spec"]
        spec["nodeSelector"] = {"kubernetes.io/hostname": f"devcluster-{node}"}
        spec["terminationGracePeriodSeconds"] = 1
        spec["containers"][0]["command"] = ["sleep", "100"]
        spec["tolerations"] = [
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        ]
    return made


def recorded(client: KubernetesClient, manifest: Object, act: Callable[[], object]) -> list[Entry]:
    """What was seen of a gang to whose running ranks this was done, until it has ended."""
    created = client.create(JOBSETS, "default", manifest)
    lines: list[str] = []
    recorder = Recorder(client, JobSetBackend(), created, clock=RealClock(), write=lines.append)
    thread = threading.Thread(target=recorder.record, daemon=True)
    thread.start()
    until(lambda: len(running(client, created["metadata"]["name"])) == 4, "all ranks run")
    act()
    thread.join(60)
    assert not thread.is_alive(), "it did not end"
    return [*parse_trace(lines), {"t": 100.0, "type": "NOTE", "object": {"kind": "Note"}}]  # deadlines have passed by then


def running(client: KubernetesClient, name: str) -> list[Object]:
    found: list[Object] = client.list(PODS, "default", label_selector=f"jobset.sigs.k8s.io/jobset-name={name}")["items"]
    return [pod for pod in found if pod.get("status", {}).get("phase") == "Running"]


def told(entries: list[Entry]) -> tuple[object, ...]:
    found = summary(list(moments(entries)))
    failure = found["failure"]
    return (
        [phase for _, phase in found["phases"] if phase != "Pending"],  # a recording may begin a moment later
        failure["category"],
        failure["role"],
        failure["exit_code"],
        failure["reason"],
    )


def first_written(entries: list[Entry], kind: str, marker: str) -> Object:
    """The first state of an object that has this in its status."""
    found = (entry["object"] for entry in entries if entry["object"]["kind"] == kind)
    return next(dict(obj["status"]) for obj in found if marker in json.dumps(obj.get("status") or {}))


def shape(status: Object) -> Object:
    """Of a pod's status: what is in it, and its words."""
    conditions = [[entry["type"], entry["status"], entry.get("reason")] for entry in status["conditions"]]
    return {
        "fields": sorted(status),
        "conditions": conditions,
        **{key: status.get(key) for key in ("phase", "reason", "message")},
    }


def test_an_eviction_by_the_node(client: KubernetesClient) -> None:
    trace = read(TRACES / "worker_evicted.s2.jsonl.gz")
    real = first_written(trace, "Pod", "TerminationByKubelet")

    def evict() -> None:
        [pod] = client.list(PODS, "default", label_selector=WORKER)["items"]
        assert main(["evict", pod["metadata"]["name"], "--message", real["message"]]) == 0

    ours = recorded(client, workload("evicted"), evict)
    assert shape(first_written(ours, "Pod", "TerminationByKubelet")) == shape(real)
    assert told(ours) == told(trace)


def test_a_node_that_is_lost_and_comes_back(client: KubernetesClient) -> None:
    trace = read(TRACES / "node_lost_pfp.s2.jsonl.gz")
    manifest = workload("lost", job={"podFailurePolicy": {"rules": FAIL_JOB_RULES}})
    ours = recorded(client, manifest, lambda: main(["node", "lost", "devcluster-1"]))
    assert (
        shape(first_written(ours, "Pod", "DisruptionTarget"))["conditions"][-1]
        == (shape(first_written(trace, "Pod", "DisruptionTarget"))["conditions"][-1])
    )
    assert told(ours) == told(trace)
    assert [taint["key"] for taint in client.get(NODES, "", "devcluster-1")["spec"]["taints"]] == (
        ["node.kubernetes.io/unreachable"] * 2
    )
    client.delete(JOBSETS, "default", "lost")
    assert len(client.list(PODS, "default", label_selector="jobset.sigs.k8s.io/jobset-name=lost")["items"]) >= 3  # they hang
    assert main(["node", "restore", "devcluster-1"]) == 0
    until(lambda: not client.list(PODS, "default", label_selector="jobset.sigs.k8s.io/jobset-name=lost")["items"], "it is back")
    assert "taints" not in client.get(NODES, "", "devcluster-1")["spec"]


def test_a_queue_with_a_script(client: KubernetesClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.json"
    script.write_text("{")
    assert main(["queue", "team", str(script)]) == 1
    assert "The script is not a list of steps" in capsys.readouterr().err
    says = {"conditions": {"QuotaReserved": ["False", "Pending", "insufficient unused quota for cpu, 1 more needed"]}}
    script.write_text(
        json.dumps([says, {"after": 0.5, "conditions": {"Admitted": ["True", "Admitted", ""]}, "suspend": False}])
    )
    assert main(["queue", "team", str(script)]) == 0
    assert main(["queue", "other"]) == 0
    manifest = {**workload("queued"), "metadata": {"name": "queued", "labels": {"kueue.x-k8s.io/queue-name": "team"}}}
    job = manifest["spec"]["replicatedJobs"][0]["template"]
    entries = recorded(client, manifest, lambda: client.delete(JOBSETS, "default", "queued"))
    assert [phase for _, phase in summary(list(moments(entries)))["phases"]][-4:] == ["Queued", "Starting", "Running", "Gone"]
    meta = {"name": "one", "labels": {"kueue.x-k8s.io/queue-name": "other"}}
    assert client.create(JOBS, "default", {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, **job})["spec"]["suspend"]
    until(lambda: client.get(JOBS, "default", "one").get("status", {}).get("active"), "it is admitted")
