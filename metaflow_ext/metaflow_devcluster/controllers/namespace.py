"""Namespaces: what a new one gets, and how one ends (everything in it first)."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..errors import ApiError
from ..store import Change, Store
from .manager import Key
from .objects import (
    Object,
    condition,
    finalizers_of,
    format_time,
    is_being_deleted,
    is_true,
    name_of,
    namespace_of,
)

ROOT_CA = "kube-root-ca.crt"
_HAS_FINALIZERS = "Some content in the namespace has finalizers remaining"
_NO_FINALIZERS = "All content-preserving finalizers finished"


def default_objects(namespace: str) -> list[tuple[str, Object]]:
    """The service account and the certificate that every namespace has."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}
    note = {"kubernetes.io/description": "The development cluster serves plain HTTP; there is no certificate."}
    certificate = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": ROOT_CA, "namespace": namespace, "annotations": note},
        "data": {"ca.crt": ""},
    }
    return [("serviceaccounts", account), ("configmaps", certificate)]


def ending_conditions(namespace: Object, remaining: Mapping[str, Sequence[Object]], now: datetime.datetime) -> list[Object]:
    """What still holds a namespace that is being deleted, in the real controller's words."""
    counts = {name: len(objects) for name, objects in sorted(remaining.items()) if objects}
    finalizers = Counter(entry for objects in remaining.values() for obj in objects for entry in finalizers_of(obj))
    resources = ", ".join(f"{_with_dot(name)} has {count} resource instances" for name, count in counts.items())
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    texts = [
        (
            "NamespaceDeletionDiscoveryFailure",
            False,
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            False,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            False,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ("NamespaceContentRemaining", True, "SomeResourcesRemain", f"Some resources are remaining: {resources}"),
        (
            ("NamespaceFinalizersRemaining", True, "SomeFinalizersRemain", f"{_HAS_FINALIZERS}: {held}")
            if held
            else ("NamespaceFinalizersRemaining", False, "ContentHasNoFinalizers", _NO_FINALIZERS)
        ),
    ]
    found = []
    for kind, value, reason, message in texts:
        known = condition(namespace, kind)
        is_same = known is not None and is_true(namespace, kind) == value
        stamp = known["lastTransitionTime"] if known is not None and is_same else format_time(now)
        entry = {"type": kind, "status": "True" if value else "False", "lastTransitionTime": stamp}
        found.append({**entry, "reason": reason, "message": message})
    return found


def _with_dot(resource: str) -> str:
    """The core group is empty: "pods." and "jobs.batch"."""
    return resource if "." in resource else f"{resource}."


class NamespaceController:
    """Keys are (namespace,)."""

    first_retry = 0.1

    def __init__(self, store: Store, now: Callable[[], datetime.datetime]) -> None:
        self._store, self._now = store, now
        self._ending: set[str] = set()

    def keys(self, change: Change) -> Iterable[tuple[Key, float]]:
        if change.resource == "namespaces":
            name = name_of(change.object)
            if change.type == "DELETED":
                self._ending.discard(name)
            else:
                yield (name,), 0.0
            return
        is_default = change.type == "DELETED" and change.resource in ("serviceaccounts", "configmaps")
        if is_default or namespace_of(change.object) in self._ending:
            yield (namespace_of(change.object),), 0.0

    def reconcile(self, key: Key) -> float | None:
        namespace = self._store.find("namespaces", None, key[0])
        if namespace is None:
            return None
        if is_being_deleted(namespace):
            self._ending.add(key[0])
            self._end(namespace)
            return None
        for resource, obj in default_objects(key[0]):
            if self._store.find(resource, key[0], name_of(obj)) is None:
                self._store.create(resource, obj)
        return None

    def _end(self, namespace: Object) -> None:
        name = name_of(namespace)
        for resource in self._store.resources:
            if resource.namespaced:
                for obj in self._store.list(resource.name, name):
                    if not is_being_deleted(obj):
                        self._delete(resource.name, name, name_of(obj))
        remaining = {r.name: self._store.list(r.name, name) for r in self._store.resources if r.namespaced}
        if any(remaining.values()):
            status = {"phase": "Terminating", "conditions": ending_conditions(namespace, remaining, self._now())}
            self._store.update("namespaces", {**namespace, "status": status}, status_only=True)
        else:
            self._ending.discard(name)
            spec = {key: value for key, value in (namespace.get("spec") or {}).items() if key != "finalizers"}
            self._store.update("namespaces", {**namespace, "spec": spec})

    def _delete(self, resource: str, namespace: str, name: str) -> None:
        try:
            self._store.delete(resource, namespace, name, propagation="Background")
        except ApiError:  # gone meanwhile
            return
