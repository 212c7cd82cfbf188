"""What a cluster must have is asked before the run."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.cluster.protocol import JOBS, Resource
from metaflow_extensions.kubernetes_ext.decorators.preflight import require_kueue
from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from tests.fakes import FakeCluster


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_queue_where_there_is_kueue(version: str) -> None:
    cluster = FakeCluster(served=(JOBS, Resource("kueue.x-k8s.io", version, "localqueues", "LocalQueue")))
    require_kueue(cluster, ["train"])


def test_a_queue_where_there_is_no_kueue() -> None:
    cluster = FakeCluster(served=(JOBS,))
    require_kueue(cluster, [])
    with pytest.raises(InvalidSpec, match=r"does not serve Kueue .* step \*train\* asks for.*leave `queue` and `topology` out"):
        require_kueue(cluster, ["train"])
