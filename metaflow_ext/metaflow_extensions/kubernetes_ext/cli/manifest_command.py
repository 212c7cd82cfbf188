"""`kubernetes manifest`: the object of a workload, as it was posted or as it would be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml
from metaflow.exception import MetaflowException

from ..backends.base import Manifest
from ..cluster.client import KubernetesClient
from ..cluster.protocol import PODS, Resource
from ..decorators.host_errors import as_metaflow_error
from ..decorators.preflight import stand_in
from ..decorators.settings import read_settings
from ..errors import Forbidden
from ..runtime.resources import resource_of
from ..spec import labels
from ..status.reading import mapping
from .dry_run import parts, refusal
from .explain import explained
from .secrets import removed_before, without_secrets
from .subjects import found
from .tables import table
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


def manifest_of_step(obj: Any, step: str, num_parallel: int | None, validate: bool, explain: bool, as_json: bool) -> None:
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
        planned = stand_in(obj.flow.name, step, deco, num_parallel, settings)
        if explain:

            def build(others: Mapping[str, Any]) -> Manifest:
                other = stand_in(obj.flow.name, step, deco, num_parallel, settings, others)
                return other.backend.build(other.spec)

            _explain(obj, explained(build, deco.effective(), deco.defaults), as_json)
            return
        made = planned.backend.build(planned.spec)
        group = planned.backend.pod_group(planned.spec)
        _print([group, made] if group else [made], as_json)
        if validate:
            _validate(obj, resource_of(planned.backend), made)


def _print(objects: list[Manifest], as_json: bool) -> None:
    """As `kubectl create -f` takes them."""
    if as_json:
        several = {"apiVersion": "v1", "kind": "List", "items": objects}
        print(json.dumps(objects[0] if len(objects) == 1 else several, indent=2))
    else:
        print(yaml.safe_dump_all(objects, sort_keys=False), end="")


def _explain(obj: Any, rows: list[tuple[str, str, str]], as_json: bool) -> None:
    if as_json:
        print(json.dumps([{"field": field, "attribute": name, "from": origin} for field, name, origin in rows], indent=2))
        return
    print("\n".join(table(("FIELD", "ATTRIBUTE", "FROM"), rows)))
    obj.echo("All other fields are of this extension itself; `-` is an attribute that is in no field.", err=True)


def as_posted(found: Mapping[str, Any]) -> Manifest:
    """Without what the server adds and what was about the process that posted it: it can be posted again, under another name."""
    metadata = {key: value for key, value in found["metadata"].items() if key not in _OF_THE_SERVER}
    annotations = {key: value for key, value in mapping(metadata, "annotations").items() if key not in _OF_THE_SUBMISSION}
    kept = {key: value for key, value in found.items() if key not in ("metadata", "status")}
    made: Manifest = {"apiVersion": kept.pop("apiVersion"), "kind": kept.pop("kind")}
    return {**made, "metadata": {**metadata, "annotations": annotations}, **kept}


def _validate(obj: Any, resource: Resource, manifest: Manifest) -> None:
    """Server-side dry runs, strict. Raises MetaflowException if one is refused."""
    client = KubernetesClient()
    refused = 0
    try:
        for what, kind, made in [(manifest["kind"], resource, manifest), *parts(manifest)]:
            error = refusal(client, kind, made)
            is_denied = isinstance(error, Forbidden)  # running flows takes no right to create pods
            refused += error is not None and not (is_denied and kind is PODS)
            answer = f"not checked, since you may not create {kind.plural} here" if is_denied else error or "ok"
            obj.echo(f"{what}: {answer}", err=True)
    finally:
        client.close()
    if refused:
        raise MetaflowException("The cluster would refuse it.")
