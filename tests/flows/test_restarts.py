"""Gangs that the cluster takes away start again within their attempt, without @retry."""

from __future__ import annotations

from contextlib import closing

from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from tests.contract import places
from tests.flows.conftest import ON_BOTH, Runner
from tests.flows.test_failures import eventually, left_over
from tests.flows.test_gangs import read_run
from tests.flows.test_golden_reports import disturbed


@ON_BOTH
def test_an_evicted_gang_starts_again_and_leaves_one_set_of_results(runner: Runner) -> None:
    with closing(KubernetesClient(places.from_kubeconfig(runner.admin_config))) as admin:
        done = disturbed(runner, lambda pod: places.evict(admin, runner.namespace, pod), seconds="6")
    assert done.code == 0, str(done)
    assert "was evicted from its node" in done.output
    assert done.output.count("All 2 ranks start again (restart 1 of 3).") == 1, str(done)
    run = read_run(runner, names=("ranks", "attempts", "gang_tasks"))
    assert eval(run["data"]["ranks"]) == [0, 1]
    assert eval(run["data"]["attempts"]) == {0}, "no attempt of @retry was spent"
    assert [task["restarts"] for task in eval(run["data"]["gang_tasks"])] == [1, 1]
    for task in run["tasks"].values():
        assert task["stdout"].count("hello from rank") == 1
        assert task["metadata"]["kubernetes-restart"] == "1"
    assert eventually(lambda: left_over(runner).count("jobset.jobset.x-k8s.io/") == 1), "only what succeeded stays"
