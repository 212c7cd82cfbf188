"""Server-side dry runs of a workload with all that controllers would make of it: what nobody may create is found before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..backends.base import Manifest
from ..backends.registry import backend_of
from ..cluster.protocol import JOBS, PODS, ClusterClient, Resource
from ..errors import ClusterError
from ..runtime.resources import resource_of
from ..status.reading import mapping, mappings, text


def parts(manifest: Manifest) -> Iterator[tuple[str, Resource, Manifest]]:
    """What an AppWrapper wraps, the Jobs of a JobSet and a pod of each Job: the server looks at them only when controllers
    create them."""
    name, namespace = text(manifest, "metadata", "name"), text(manifest, "metadata", "namespace")
    if manifest["kind"] == "AppWrapper":
        for component in mappings(manifest, "spec", "components"):
            wrapped = dict(mapping(component, "template"))
            backend = backend_of(text(wrapped, "apiVersion"), text(wrapped, "kind"))
            if backend is not None:
                yield f"the {backend.kind} in it", resource_of(backend), wrapped
                yield from parts(wrapped)
    elif manifest["kind"] == "JobSet":
        for entry in mappings(manifest, "spec", "replicatedJobs"):
            template = mapping(entry, "template")
            made = _object("batch/v1", "Job", f"{name}-{text(entry, 'name')}-0", namespace, template)
            yield f"Job {text(entry, 'name')}", JOBS, made
            yield f"a pod of {text(entry, 'name')}", PODS, _pod(made)
    else:
        yield "its pod", PODS, _pod(manifest)


def _pod(job: Manifest) -> Manifest:
    template = mapping(job, "spec", "template")
    return _object("v1", "Pod", f"{job['metadata']['name']}-0", job["metadata"]["namespace"], template)


def _object(api_version: str, kind: str, name: str, namespace: str, template: Mapping[str, Any]) -> Manifest:
    metadata = {**mapping(template, "metadata"), "name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": template["spec"]}


def refusal(client: ClusterClient, resource: Resource, manifest: Manifest) -> ClusterError | None:
    """Why the cluster would not take the object; None where it would."""
    try:
        client.create(resource, manifest["metadata"]["namespace"], manifest, dry_run=True, strict=True)
    except ClusterError as error:
        return error
    return None
