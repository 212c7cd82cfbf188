"""Every manifest of the matrix is taken by the real API server: strictly, with all that controllers will make of it."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.backends.registry import backend_of
from metaflow_extensions.kubernetes_ext.cli import dry_run
from metaflow_extensions.kubernetes_ext.cluster.protocol import Resource
from metaflow_extensions.kubernetes_ext.runtime.pod_groups import group_resource
from metaflow_extensions.kubernetes_ext.runtime.resources import resource_of
from tests.contract.places import ON_REAL, Place
from tests.manifest_matrix import Cell, cells

CLASSES = {
    "high": Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False),
    "nvidia": Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False),
}


@pytest.fixture
def with_classes(place: Place) -> Place:
    """Pods with a PriorityClass or RuntimeClass that is not there are refused."""
    for name, resource in CLASSES.items():
        if not any(one["metadata"]["name"] == name for one in place.admin.list(resource, "")["items"]):
            further = {"value": 1} if name == "high" else {"handler": "runc"}
            place.admin.create(resource, "", {"metadata": {"name": name}, **further})
    return place


@ON_REAL
@pytest.mark.parametrize("backend", ["job", "jobset", "appwrapper-job", "appwrapper-jobset"])
def test_the_server_takes_it_with_its_parts(with_classes: Place, backend: str) -> None:
    refused = [text for cell in cells() if cell.backend == backend for text in refusals(with_classes, cell)]
    assert refused == []


def refusals(place: Place, cell: Cell) -> list[str]:
    found = []
    for manifest in cell.objects():
        kind = backend_of(manifest["apiVersion"], manifest["kind"])
        resource = resource_of(kind) if kind else group_resource(manifest)
        body = {**manifest, "metadata": {**manifest["metadata"], "namespace": place.namespace}}
        parts = [] if kind is None else dry_run.parts(body)
        for what, of, part in [(manifest["kind"], resource, body), *parts]:
            metadata = {**part["metadata"], "namespace": place.namespace}
            error = dry_run.refusal(place.admin, of, {**part, "metadata": metadata})
            if error is not None and not is_known(cell, what, str(error)):
                found.append(f"{cell}: {what}: {error}")
    return found


def is_known(cell: Cell, what: str, text: str) -> bool:
    """JobSet has no place for a pod's PodGroup yet, which `gang` finds out (cli/gang_choice.py)."""
    return cell.gang == "native" and "schedulingGroup" in text and what in ("JobSet", "the JobSet in it")
