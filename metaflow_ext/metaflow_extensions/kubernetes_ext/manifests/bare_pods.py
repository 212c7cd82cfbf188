"""Ranks as pods without a Job above them, and the headless Service that gives them their names: for what wraps single objects.

A pod has the names, labels and variables that it would have in a JobSet, so that what runs in it can't tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..spec import labels
from ..spec.launch import Group, LaunchSpec
from .manifest import Manifest, present
from .pod import pod_template


def bare_pods(spec: LaunchSpec) -> list[Manifest]:
    """A core/v1 Pod for every rank, group by group."""
    return [_pod(spec, group, index) for group in spec.groups for index in range(group.replicas)]


def service(spec: LaunchSpec) -> Manifest:
    """Ranks find each other by name before they are ready."""
    told = present(labels={**labels.inherited(spec.labels), labels.WORKLOAD: spec.name}, annotations=dict(spec.annotations))
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": spec.name, "namespace": spec.namespace, **told},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {labels.WORKLOAD: spec.name}},
    }


def _pod(spec: LaunchSpec, group: Group, index: int) -> Manifest:
    template, name = pod_template(spec, group), f"{spec.name}-{group.name}-0-{index}"
    told = template.get("metadata", {})
    own = {labels.WORKLOAD: spec.name, labels.GROUP: group.name, labels.INDEX: str(index)}
    told = {**told, "name": name, "namespace": spec.namespace, "labels": {**told.get("labels", {}), **own}}
    body = {**template["spec"], "hostname": name, "subdomain": spec.name}
    known = _known(spec.name, index)
    for kind in ("initContainers", "containers"):
        if kind in body:
            body[kind] = [_told(container, known, index) for container in body[kind]]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": told, "spec": body}


def _known(workload: str, index: int) -> Mapping[str, str]:
    """What controllers would write into the pod, by its field path."""
    found = {labels.COMPLETION_INDEX: str(index), labels.JOBSET_NAME: workload, labels.JOBSET_RESTART_ATTEMPT: "0"}
    return {f"metadata.{where}['{key}']": value for key, value in found.items() for where in ("labels", "annotations")}


def _told(container: Mapping[str, Any], known: Mapping[str, str], index: int) -> Manifest:
    """The container with literals where its variables are of Jobs or JobSets, and the one that Jobs give to each."""
    given = [_literal(variable, known) for variable in container.get("env", ())]
    if not any(variable["name"] == "JOB_COMPLETION_INDEX" for variable in given):
        given.append({"name": "JOB_COMPLETION_INDEX", "value": str(index)})
    return {**container, "env": given}


def _literal(variable: Manifest, known: Mapping[str, str]) -> Manifest:
    path = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
    return {"name": variable["name"], "value": known[path]} if path in known else variable
