"""What finding one's workloads costs does not depend on what else is in the namespace."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import metaflow  # noqa: F401  (before its extensions)
import pytest

from metaflow_extensions.kubernetes_ext.cli.targets import look, selector, workloads
from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.protocol import JOBS, PODS
from metaflow_extensions.kubernetes_ext.cluster.transport import Transport
from tests.contract import objects
from tests.contract.places import JOBSETS, Place
from tests.contract.waiting import until

LABELS = {"app.kubernetes.io/managed-by": "metaflow-kubernetes-ext", "metaflow.org/flow": "F"}
FEW, MANY = 50, 5000


class Counting(Transport):
    """Counts requests, and the bytes of their answers."""

    requests = 0
    bytes = 0

    def open(self, *arguments: Any) -> Any:
        response = super().open(*arguments)
        self.requests += 1
        self.bytes += len(response.data)
        return response


@contextmanager
def counted(place: Place) -> Iterator[tuple[KubernetesClient, Counting]]:
    with place.another_client() as client:
        client._transport = transport = Counting(client._login)
        yield client, transport


def unrelated(place: Place, names: range) -> None:
    """Pods of nobody, which stay where they are: they wait for a node that there is not."""

    def create(number: int) -> None:
        spec = {"nodeName": "nowhere", "containers": [{"name": "main", "image": place.image, "command": ["true"]}]}
        place.admin.create(PODS, place.namespace, {"metadata": {"name": f"other-{number}"}, "spec": spec})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, names))


def cost(place: Place) -> tuple[tuple[int, int], tuple[int, int]]:
    """(requests, bytes) of listing this flow's workloads, and of looking closely at them."""
    with counted(place) as (client, transport):
        found = list(workloads(client, selector("F"), place.namespace))
        assert [workload["metadata"]["name"] for _, workload, _ in found] == ["ours"]
        listed = transport.requests, transport.bytes
        look(client, *found[0][:2])
        return listed, (transport.requests - listed[0], transport.bytes - listed[1])


@pytest.mark.parametrize("place", ["devcluster"], indirect=True)
def test_listing_and_looking_cost_the_same_whatever_else_is_there(place: Place) -> None:
    ours = objects.jobset("ours")
    place.create(JOBSETS, {**ours, "metadata": {"name": "ours", "labels": LABELS}})
    until(lambda: len(place.client.list(JOBS, place.namespace)["items"]) == 2, "its Jobs are there")
    unrelated(place, range(FEW))
    few = cost(place)
    unrelated(place, range(FEW, MANY))
    many = cost(place)
    print(f"(requests, bytes) of listing and of looking: with {FEW} other pods {few}, with {MANY} {many}")
    assert [requests for requests, _ in few] == [requests for requests, _ in many]
    assert few[0][0] <= 4, "discovery of JobSet and of AppWrapper, JobSets, Jobs"
    for (_, before), (_, after) in zip(few, many, strict=True):
        assert abs(after - before) < 100, "but for the digits of resourceVersion"
