"""Probes are deleted in all cases."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.backends.job import JobBackend
from metaflow_extensions.kubernetes_ext.cluster.protocol import JOBS
from metaflow_extensions.kubernetes_ext.errors import Forbidden, Rejected
from metaflow_extensions.kubernetes_ext.runtime.probes import Probes
from metaflow_extensions.kubernetes_ext.runtime.submit import stamped
from metaflow_extensions.kubernetes_ext.status.model import Phase, WorkloadStatus
from tests.builders import make_group, make_spec
from tests.fakes import FakeClock, FakeCluster


def manifest(name: str) -> dict[str, Any]:
    return stamped(JobBackend().build(make_spec(name=name, groups=(make_group("task"),))))


class Ending(FakeCluster):
    """Its Jobs succeed at once; those called "long" never end."""

    def create(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        made = super().create(*args, **kwargs)
        if not made["metadata"]["name"].startswith("long"):
            done = {"type": "Complete", "status": "True"}
            return self.update(JOBS, {**made, "status": {"succeeded": 1, "conditions": [done]}})
        return made


def phases(probes: Probes) -> list[Phase | str]:
    return [one.phase if isinstance(one, WorkloadStatus) else str(one) for one in probes.outcomes]


def test_each_has_its_outcome_and_none_stays() -> None:
    cluster = Ending()
    cluster.fail("create", "jobs", Rejected("exceeded quota"))
    probes = Probes(cluster, FakeClock(), limit=20)
    probes.run([manifest("refused"), manifest("short"), manifest("long")])
    assert phases(probes)[:2] == ["exceeded quota", Phase.SUCCEEDED]
    outcome = probes.outcomes[2]
    assert isinstance(outcome, WorkloadStatus)
    assert not outcome.is_terminal
    assert (cluster.names(JOBS), probes.left) == ([], [])


class Interrupting(FakeClock):
    """Ctrl-C while something is waited for."""

    def wait(self, *args: Any) -> bool:
        raise KeyboardInterrupt


def test_none_stays_after_an_interruption() -> None:
    cluster = FakeCluster()
    with pytest.raises(KeyboardInterrupt):
        Probes(cluster, Interrupting(), limit=20).run([manifest("long"), manifest("long-too")])
    assert cluster.names(JOBS) == []


def test_what_can_not_be_deleted_is_told() -> None:
    cluster = Ending()
    cluster.fail("delete", "jobs", Forbidden("no"))
    probes = Probes(cluster, FakeClock(), limit=20)
    probes.run([manifest("short")])
    assert probes.left == ["kubectl delete jobs.batch short --namespace default"]
