"""The table of served resources: what exists under which group, version and name, and how it behaves.

Resources are named as kubectl and error texts name them: `pods`, `jobs.batch`, `jobsets.jobset.x-k8s.io`.
The table is data; the store and the API read it, and custom resource definitions add to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
JOBSET_GROUP, JOBSET_VERSION = "jobset.x-k8s.io", "v1alpha2"


@dataclass(frozen=True, kw_only=True)
class Subresource:
    """A path below an object; `kind`, `group` and `version` are of its own body where that differs."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One served resource. `custom` ones are unstructured and follow the rules of CRDs."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    singular: str = ""
    list_kind: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    custom: bool = False
    has_generation: bool = False
    default_propagation: str = "Background"

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular_name(self) -> str:
        return self.singular or self.kind.lower()

    @property
    def collection_kind(self) -> str:
        return self.list_kind or f"{self.kind}List"

    @property
    def has_status(self) -> bool:
        return any(sub.name == "status" for sub in self.subresources)


def _status(kind: str) -> Subresource:
    return Subresource(name="status", kind=kind, verbs=("get", "patch", "update"))


_POD_SUBRESOURCES = (
    Subresource(name="binding", kind="Binding", verbs=("create",)),
    Subresource(name="eviction", kind="Eviction", verbs=("create",), group="policy", version="v1"),
    Subresource(name="exec", kind="PodExecOptions", verbs=("create", "get")),
    Subresource(name="log", kind="Pod", verbs=("get",)),
    _status("Pod"),
)
_TOKEN = Subresource(name="token", kind="TokenRequest", verbs=("create",), group="authentication.k8s.io", version="v1")
_FINALIZE = Subresource(name="finalize", kind="Namespace", verbs=("update",))

BUILT_IN: tuple[Resource, ...] = (
    Resource(plural="configmaps", kind="ConfigMap", short_names=("cm",)),
    Resource(plural="events", kind="Event", short_names=("ev",)),
    Resource(
        plural="namespaces",
        kind="Namespace",
        namespaced=False,
        short_names=("ns",),
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        subresources=(_FINALIZE, _status("Namespace")),
    ),
    Resource(plural="nodes", kind="Node", namespaced=False, short_names=("no",), subresources=(_status("Node"),)),
    Resource(
        plural="persistentvolumeclaims",
        kind="PersistentVolumeClaim",
        short_names=("pvc",),
        subresources=(_status("PersistentVolumeClaim"),),
    ),
    Resource(
        plural="pods",
        kind="Pod",
        short_names=("po",),
        categories=("all",),
        subresources=_POD_SUBRESOURCES,
        has_generation=True,
    ),
    Resource(
        plural="resourcequotas",
        kind="ResourceQuota",
        short_names=("quota",),
        subresources=(_status("ResourceQuota"),),
    ),
    Resource(plural="secrets", kind="Secret"),
    Resource(plural="serviceaccounts", kind="ServiceAccount", short_names=("sa",), subresources=(_TOKEN,)),
    Resource(
        plural="services",
        kind="Service",
        short_names=("svc",),
        categories=("all",),
        subresources=(_status("Service"),),
    ),
    Resource(
        plural="jobs",
        kind="Job",
        group="batch",
        categories=("all",),
        subresources=(_status("Job"),),
        has_generation=True,
        default_propagation="Orphan",
    ),
    Resource(plural="leases", kind="Lease", group="coordination.k8s.io"),
    Resource(
        plural="priorityclasses",
        kind="PriorityClass",
        group="scheduling.k8s.io",
        namespaced=False,
        short_names=("pc",),
        has_generation=True,
    ),
    Resource(
        plural="customresourcedefinitions",
        kind="CustomResourceDefinition",
        group="apiextensions.k8s.io",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=(_status("CustomResourceDefinition"),),
        has_generation=True,
    ),
    Resource(
        plural="selfsubjectaccessreviews",
        kind="SelfSubjectAccessReview",
        group="authorization.k8s.io",
        namespaced=False,
        verbs=("create",),
    ),
    Resource(
        plural="subjectaccessreviews",
        kind="SubjectAccessReview",
        group="authorization.k8s.io",
        namespaced=False,
        verbs=("create",),
    ),
)


def jobset_resource(group: str = JOBSET_GROUP, version: str = JOBSET_VERSION) -> Resource:
    """JobSet as its CRD declares it: a status subresource and no short name."""
    return Resource(
        plural="jobsets",
        kind="JobSet",
        group=group,
        version=version,
        subresources=(_status("JobSet"),),
        custom=True,
        has_generation=True,
    )


@dataclass
class Resources:
    """The mutable table: looked up by name or by path, extended and shrunk by CRDs."""

    _by_name: dict[str, Resource] = field(default_factory=dict)
    _by_path: dict[tuple[str, str, str], Resource] = field(default_factory=dict)

    def add(self, resource: Resource) -> None:
        self._by_name[resource.name] = resource
        self._by_path[resource.group, resource.version, resource.plural] = resource

    def discard(self, name: str) -> None:
        resource = self._by_name.pop(name, None)
        if resource:
            del self._by_path[resource.group, resource.version, resource.plural]

    def __getitem__(self, name: str) -> Resource:
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Resource]:
        return iter(tuple(self._by_name.values()))

    def at(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_path.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of an ownerReference or an involvedObject, in any served version of its group."""
        group = api_version.rpartition("/")[0]
        return next((r for r in self if r.group == group and r.kind == kind), None)

    def group_versions(self) -> list[tuple[str, str]]:
        """All (group, version) in the order of first appearance, the core group first."""
        found = dict.fromkeys((r.group, r.version) for r in self)
        return sorted(found, key=lambda gv: gv[0] != "")


def served_resources(*, jobset: Resource | None = None) -> Resources:
    """The built-in table; with `jobset=None` it is a cluster where JobSet is not installed."""
    table = Resources()
    for resource in BUILT_IN:
        table.add(resource)
    if jobset:
        table.add(jobset)
    return table
