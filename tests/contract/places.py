"""The three clusters that must behave alike, as tests see them: a namespace, a client as a user has, and one that may do all.

`ON_ALL` and `ON_SERVERS` parametrise a test over them; the real one carries the marker `real` (see conftest.py).
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from metaflow_extensions.kubernetes_ext.backends.jobset import JobSetBackend
from metaflow_extensions.kubernetes_ext.cluster import auth
from metaflow_extensions.kubernetes_ext.cluster.access import Access
from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.protocol import JOBS, PODS, ClusterClient, Resource
from metaflow_extensions.kubernetes_ext.errors import Conflict
from metaflow_extensions.kubernetes_ext.runtime.resources import resource_of
from tests.contract.waiting import until
from tests.fakes import FakeCluster

JOBSETS = resource_of(JobSetBackend())
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False)
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")

_DOCS = Path(__file__).parents[2] / "docs"
RBAC = (_DOCS / "rbac.yaml",)
RBAC_WITH_APPWRAPPERS = (*RBAC, _DOCS / "rbac-appwrapper.yaml")
RBAC_WITH_ALL = (*RBAC_WITH_APPWRAPPERS, _DOCS / "rbac-podgroup.yaml")
CLUSTER = "METAFLOW_KUBERNETES_EXT_CLUSTER_"

_REAL = pytest.param("real", marks=pytest.mark.real)
ON_ALL = pytest.mark.parametrize("place", ["fake", "devcluster", _REAL], indirect=True)
ON_SERVERS = pytest.mark.parametrize("place", ["devcluster", _REAL], indirect=True)
ON_REAL = pytest.mark.parametrize("place", [_REAL], indirect=True)


@dataclass(frozen=True, kw_only=True)
class Place:
    """One namespace of one cluster. `client` has exactly the rights of docs/rbac.yaml where the cluster knows rights."""

    kind: str  # fake, devcluster, real
    namespace: str
    client: ClusterClient
    admin: ClusterClient
    load: Callable[[], Access] | None = None  # how `client` reaches the server; None: there is none
    kubeconfig: Path | None = None  # the same for other processes
    image: str = "python:3.11"
    missing_image: str = ""  # a name that no registry has

    @property
    def fake(self) -> FakeCluster:
        """The cluster itself, where it is the fake one."""
        assert isinstance(self.client, FakeCluster)
        return self.client

    @contextmanager
    def another_client(self, made: type[KubernetesClient] = KubernetesClient, **options: Any) -> Iterator[KubernetesClient]:
        """A client with other settings, closed at the end."""
        assert self.load is not None
        client = made(self.load, **options)
        try:
            yield client
        finally:
            client.close()

    def create(self, resource: Resource, body: Mapping[str, Any]) -> dict[str, Any]:
        return self.client.create(resource, self.namespace, body)

    def evict(self, pod: str) -> None:
        evict(self.admin, self.namespace, pod)

    def limit(self, hard: Mapping[str, str]) -> None:
        """A ResourceQuota that is in force."""
        body = {"metadata": {"name": "limit"}, "spec": {"hard": dict(hard)}}
        self.admin.create(QUOTAS, self.namespace, body)
        until(lambda: self.admin.get(QUOTAS, self.namespace, "limit").get("status", {}).get("hard"), "the quota is counted")

    def pods(self, selector: str = "") -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.client.list(PODS, self.namespace, label_selector=selector)["items"]
        return listed


def evict(client: ClusterClient, namespace: str, pod: str) -> None:
    """As a node drain does it: through the Eviction API."""
    eviction = Resource("", "v1", f"pods/{pod}/eviction", "Eviction")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
    client.create(eviction, namespace, body)


def fake_place() -> Place:
    cluster = FakeCluster(served=(JOBS, PODS, JOBSETS))
    return Place(kind="fake", namespace="default", client=cluster, admin=cluster)


@dataclass(frozen=True, kw_only=True)
class Server:
    """A cluster with an API server, before a test has its namespace there. Its clients live as long as the session."""

    kind: str
    client: KubernetesClient
    admin: KubernetesClient
    load: Callable[[], Access]
    kubeconfig: Path
    image: str
    missing_image: str
    user: str = ""  # whom to give the rights of docs/rbac*.yaml; "" where nobody needs any

    @contextmanager
    def place(self, without: Permission | None = None, roles: Sequence[Path] = RBAC) -> Iterator[Place]:
        """A namespace of its own, removed at the end without waiting; the user there has the rights of `roles` but `without`."""
        namespace = f"contract-{uuid.uuid4().hex[:10]}"
        self.admin.create(NAMESPACES, "", {"metadata": {"name": namespace}})
        try:
            if self.user:
                self._permit(namespace, [each for each in permissions(roles) if each != without])
            until(lambda: self.admin.list(SERVICE_ACCOUNTS, namespace)["items"], "the namespace has its service account")
            yield Place(
                kind=self.kind, namespace=namespace, client=self.client, admin=self.admin, load=self.load,
                kubeconfig=self.kubeconfig, image=self.image, missing_image=self.missing_image,
            )  # fmt: skip
        finally:
            with contextlib.suppress(Conflict):  # a test has begun it
                self.admin.delete(NAMESPACES, "", namespace)

    def _permit(self, namespace: str, given: Sequence[Permission]) -> None:
        self.admin.create(ROLES, namespace, {"metadata": {"name": "user"}, "rules": [rule(each) for each in given]})
        binding = {
            "metadata": {"name": "user"},
            "roleRef": {"apiGroup": ROLES.group, "kind": ROLES.kind, "name": "user"},
            "subjects": [{"kind": "User", "name": self.user, "apiGroup": ROLES.group}],
        }
        self.admin.create(ROLE_BINDINGS, namespace, binding)
        until(lambda: self._may(given[-1], namespace), "the user has the rights of docs/rbac.yaml")

    def _may(self, permission: Permission, namespace: str) -> bool:
        """The authorizer reads roles from a cache of its own."""
        plural, _, subresource = permission.resource.partition("/")
        attributes = {
            "namespace": namespace, "group": permission.group, "resource": plural, "subresource": subresource,
            "verb": permission.verb,
        }  # fmt: skip
        review = self.client.create(ACCESS_REVIEWS, "", {"spec": {"resourceAttributes": attributes}})
        return bool(review["status"]["allowed"])


@dataclass(frozen=True)
class Permission:
    """One verb on one resource."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


def permissions(roles: Sequence[Path] = RBAC) -> list[Permission]:
    """All that these files give."""
    return [
        Permission(group, resource, verb)
        for path in roles
        for each in yaml.safe_load(path.read_text(encoding="utf-8"))["rules"]
        for group in each["apiGroups"]
        for resource in each["resources"]
        for verb in each["verbs"]
    ]


def rule(permission: Permission) -> dict[str, list[str]]:
    return {"apiGroups": [permission.group], "resources": [permission.resource], "verbs": [permission.verb]}


def from_kubeconfig(path: Path) -> Callable[[], Access]:
    return lambda: auth.load({"KUBECONFIG": str(path)})


@contextmanager
def server(
    kind: str, user_config: Path, admin_config: Path, *, image: str, missing_image: str, user: str = ""
) -> Iterator[Server]:
    client, admin = KubernetesClient(from_kubeconfig(user_config)), KubernetesClient(from_kubeconfig(admin_config))
    try:
        yield Server(
            kind=kind, client=client, admin=admin, load=from_kubeconfig(user_config), kubeconfig=user_config, image=image,
            missing_image=missing_image, user=user,
        )  # fmt: skip
    finally:
        client.close()
        admin.close()


@contextmanager
def real_server() -> Iterator[Server]:
    """What tests/cluster/run tells of the cluster that this process runs in."""
    state = Path(os.environ[f"{CLUSTER}STATE"])
    user, image = os.environ[f"{CLUSTER}USER"], os.environ[f"{CLUSTER}IMAGE"]
    missing = f"{image.rpartition('/')[0]}/does-not-exist:1"
    configs = (state / "kubeconfig" / user, Path(os.environ[f"{CLUSTER}ADMIN_KUBECONFIG"]))
    with server("real", *configs, image=image, missing_image=missing, user=user) as found:
        yield found
