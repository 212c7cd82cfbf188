"""`kubernetes manifest`: the object of a workload, as it was posted or as it would be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from metaflow.exception import MetaflowException

from ..backends.base import Manifest
from ..cluster.client import KubernetesClient
from ..cluster.protocol import JOBS, PODS, ClusterClient, Resource
from ..decorators.host_errors import as_metaflow_error
from ..decorators.preflight import stand_in
from ..decorators.settings import read_settings
from ..errors import ClusterError, Forbidden
from ..runtime.resources import resource_of
from ..spec import labels
from ..status.reading import mapping, mappings, text
from .secrets import removed_before, without_secrets
from .step_command import backend_of
from .subjects import found
from .targets import parse

_OF_THE_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "finalizers")
_OF_THE_SUBMISSION = (labels.SUBMISSION, labels.CLIENT, labels.KILLED_BY)


def manifest_of_workload(obj: Any, text: str, as_json: bool) -> None:
    made: list[Manifest] = []
    removed: dict[str, None] = {}
    for one in found(obj.flow.name, parse(obj.flow.name, text)):
        if one.manifest:
            manifest, names = without_secrets(as_posted(one.manifest))
            made.append(manifest)
            removed |= dict.fromkeys([*names, *removed_before(manifest)])
    if not made:
        raise MetaflowException(
            f"The object of {text} was not kept: it was larger than what is kept, or of an earlier version."
        )
    print(json.dumps(made, indent=2) + "\n" if as_json else yaml.safe_dump_all(made, sort_keys=False), end="")
    if removed:
        obj.echo(
            f"Secret values are left out ({', '.join(removed)}). While the workload is in the cluster, `kubectl get -o yaml` has them.",
            err=True,
        )


def manifest_of_step(obj: Any, step: str, num_parallel: int | None, validate: bool, as_json: bool) -> None:
    if step not in obj.graph:
        raise MetaflowException(
            f"There is no step {step!r} in {obj.flow.name}; there are {', '.join(node.name for node in obj.graph)}."
        )
    deco = next((deco for deco in obj.graph[step].decorators if deco.name == "kubernetes"), None)
    if deco is None:
        raise MetaflowException(
            f"Step {step} is not for Kubernetes. Give it to it: python flow.py --with kubernetes kubernetes manifest ..."
        )
    is_gang = bool(getattr(deco, "is_parallel", False))
    if is_gang != (num_parallel is not None):
        raise MetaflowException(f"Step {step} is {'a gang: say how large with --num-parallel N' if is_gang else 'not a gang'}.")
    with as_metaflow_error(f"Step {step}: "):
        settings = read_settings(obj.flow_datastore.TYPE)
        task, spec = stand_in(obj.flow.name, step, deco, num_parallel, settings)
        backend = backend_of(task, settings)
        made = backend.build(spec)
        print(json.dumps(made, indent=2) + "\n" if as_json else yaml.safe_dump(made, sort_keys=False), end="")
        if validate:
            _validate(obj, resource_of(backend), made)


def as_posted(found: Mapping[str, Any]) -> Manifest:
    """Without what the server adds and what was about the process that posted it: it can be posted again, under another name."""
    metadata = {key: value for key, value in found["metadata"].items() if key not in _OF_THE_SERVER}
    annotations = {key: value for key, value in mapping(metadata, "annotations").items() if key not in _OF_THE_SUBMISSION}
    kept = {key: value for key, value in found.items() if key not in ("metadata", "status")}
    made: Manifest = {"apiVersion": kept.pop("apiVersion"), "kind": kept.pop("kind")}
    return {**made, "metadata": {**metadata, "annotations": annotations}, **kept}


def parts(manifest: Manifest) -> Iterator[tuple[str, Resource, Manifest]]:
    """The Jobs of a JobSet and a pod of each Job: what the server looks at only when controllers create them."""
    name, namespace = text(manifest, "metadata", "name"), text(manifest, "metadata", "namespace")
    if manifest["kind"] == "JobSet":
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


def _validate(obj: Any, resource: Resource, manifest: Manifest) -> None:
    """Server-side dry runs, strict. Raises MetaflowException if one is refused."""
    client = KubernetesClient()
    refused = 0
    try:
        for what, kind, made in [(manifest["kind"], resource, manifest), *parts(manifest)]:
            is_fine, answer = _dry_run(client, kind, made)
            refused += not is_fine
            obj.echo(f"{what}: {answer}", err=True)
    finally:
        client.close()
    if refused:
        raise MetaflowException("The cluster would refuse it.")


def _dry_run(client: ClusterClient, resource: Resource, manifest: Manifest) -> tuple[bool, str]:
    """Whether nothing speaks against it, and what to say. Running flows takes no right to create pods."""
    try:
        client.create(resource, manifest["metadata"]["namespace"], manifest, dry_run=True, strict=True)
    except Forbidden:
        return resource is PODS, f"not checked, since you may not create {resource.plural} here"
    except ClusterError as error:
        return False, str(error)
    return True, "ok"
