"""Steps that wait in a queue of Kueue: its real controller on the real cluster, a script of it on the development cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.flows.conftest import GANG_OPTIONS, ON_BOTH, Runner, running_gang

KUEUE = "kueue.x-k8s.io/v1beta1"
CLUSTER_WIDE = ("ResourceFlavor", "ClusterQueue")


@contextmanager
def a_queue(runner: Runner, cpu: str) -> Iterator[None]:
    """LocalQueue `team` of the runner's namespace, with a quota of its own where Kueue is real."""
    if runner.kind != "real":
        subprocess.run(
            [sys.executable, "-m", "metaflow_devcluster", "queue", "team", "--namespace", runner.namespace],
            env=runner.environment, check=True, timeout=60,
        )  # fmt: skip
        yield
        return
    name = runner.namespace
    quota = [{"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": "100Gi"}]
    quota.append({"name": "ephemeral-storage", "nominalQuota": "100Gi"})
    group = {"coveredResources": [one["name"] for one in quota], "flavors": [{"name": name, "resources": quota}]}
    objects = [
        {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {}},
        {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": {"namespaceSelector": {}, "resourceGroups": [group]}},
        {"kind": "LocalQueue", "metadata": {"name": "team", "namespace": name}, "spec": {"clusterQueue": name}},
    ]
    path = runner.home / "queue.json"
    path.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": KUEUE, **one} for one in objects]})
    )
    said = runner.as_admin("create", "-f", str(path))
    assert "localqueue.kueue.x-k8s.io/team created" in said, said
    try:
        yield
    finally:
        for kind in reversed(CLUSTER_WIDE):
            runner.as_admin("delete", f"{kind.lower()}s.kueue.x-k8s.io", name, "--wait=false")


@ON_BOTH
def test_a_gang_and_a_plain_step_in_a_queue(runner: Runner) -> None:
    with a_queue(runner, "2"):
        done = runner.run("gang_flow.py", "run", "--size", "2", "--with", f"kubernetes:{GANG_OPTIONS},queue=team", timeout=400)
        assert done.code == 0, str(done)
        there = json.loads(runner.as_admin("get", "jobsets,jobs", "-o", "json"))["items"]
        queues = [(one["kind"], one["metadata"]["labels"].get("kueue.x-k8s.io/queue-name")) for one in there]
        assert sorted(queues, key=str) == sorted([("JobSet", "team"), *[("Job", "team")] * 3, *[("Job", None)] * 2], key=str)


@pytest.mark.parametrize("runner", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
def test_a_gang_waits_for_the_quota_of_another(runner: Runner) -> None:
    with a_queue(runner, "0.2"), running_gang(runner, "15", options=f"{GANG_OPTIONS},queue=team") as (first, lines):
        second = runner.gang("run", "--size", "2", options=f"{GANG_OPTIONS},queue=team")
        assert second.code == 0, str(second)
        assert "queue team" in second.output, str(second)
        assert first.wait(60) == 0, "".join(lines)
