"""The PodGroup beside a workload: there before its pods, and the workload's own as soon as that is there, so that they end together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..cluster.protocol import ClusterClient, Resource
from ..errors import ClusterError, InvalidSpec
from ..manifests.manifest import Manifest
from ..manifests.pod_group import API_VERSIONS
from ..spec.gang import COSCHEDULING, NATIVE
from .clock import Clock
from .resources import kubectl_delete
from .submit import submit, withdraw

_ADVICE = {
    COSCHEDULING: "Install the scheduler plugins (https://scheduler-plugins.sigs.k8s.io), or choose another one.",
    NATIVE: "They are Kubernetes' own from 1.37 on, behind the feature gate GenericWorkload.",
}


def group_resource(group: Manifest) -> Resource:
    """Where the API server keeps such a PodGroup."""
    return _resource(group["apiVersion"])


def is_served(client: ClusterClient, gang: str) -> bool:
    """Whether the cluster has the PodGroups of `gang`, one of spec.gang.POD_GROUPS."""
    return client.serves(_resource(API_VERSIONS[gang]))


def require_served(client: ClusterClient, gang: str) -> None:
    """InvalidSpec, with what to do, where it is not."""
    if not is_served(client, gang):
        raise InvalidSpec(f"gang is {gang}, but the cluster does not serve {API_VERSIONS[gang]} PodGroups. {_ADVICE[gang]}")


def _resource(api_version: str) -> Resource:
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, "podgroups", "PodGroup")


class PodGroups:
    """Those of one submission. A workload that gives way to another name leaves a group under its first one."""

    def __init__(self, client: ClusterClient, clock: Clock, tell: Callable[[str], None]) -> None:
        self._client = client
        self._clock = clock
        self._tell = tell
        self._posted: list[Manifest] = []

    def post(self, group: Manifest) -> None:
        """Create it, as `submit` does. Raises ClusterError."""
        self._posted.append(group)
        namespace = group["metadata"]["namespace"]
        submit(self._client, group_resource(group), group, namespace=namespace, clock=self._clock)

    def adopt(self, owner: Mapping[str, Any]) -> None:
        """The group of its name is `owner`'s now; others are deleted. Tells what can't be done."""
        for group in self._posted:
            if group["metadata"]["name"] == owner["metadata"]["name"]:
                self._give(group, owner)
            else:
                self._withdraw(group)
        self._posted.clear()

    def withdraw(self) -> None:
        """Delete them all. Never fails: tells what can't be deleted."""
        for group in self._posted:
            self._withdraw(group)
        self._posted.clear()

    def _give(self, group: Manifest, owner: Mapping[str, Any]) -> None:
        name, namespace = group["metadata"]["name"], group["metadata"]["namespace"]
        resource = group_resource(group)
        reference = {
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        }  # fmt: skip
        try:
            self._client.patch(resource, namespace, name, {"metadata": {"ownerReferences": [reference]}})
        except ClusterError as error:
            command = kubectl_delete(resource, namespace, name)
            self._tell(f"PodGroup {name} will stay when {owner['kind']} {name} is gone: {error} Then run: {command}")

    def _withdraw(self, group: Manifest) -> None:
        name, namespace = group["metadata"]["name"], group["metadata"]["namespace"]
        resource = group_resource(group)
        try:
            withdraw(self._client, resource, group, namespace=namespace)
        except ClusterError as error:
            self._tell(f"PodGroup {name} stays: {error} When this is solved, run: {kubectl_delete(resource, namespace, name)}")
