"""Namespaces: what a new one gets, and how one ends (everything in it first)."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import ApiError
from ..store import Change, Store
from .manager import Key
from .objects import Object, is_being_deleted, name_of, namespace_of

ROOT_CA = "kube-root-ca.crt"


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


class NamespaceController:
    """Keys are (namespace,)."""

    first_retry = 0.1

    def __init__(self, store: Store) -> None:
        self._store = store
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
        is_empty = not any(self._store.list(r.name, name) for r in self._store.resources if r.namespaced)
        if is_empty:
            self._ending.discard(name)
            spec = {key: value for key, value in (namespace.get("spec") or {}).items() if key != "finalizers"}
            self._store.update("namespaces", {**namespace, "spec": spec})

    def _delete(self, resource: str, namespace: str, name: str) -> None:
        try:
            self._store.delete(resource, namespace, name, propagation="Background")
        except ApiError:  # gone meanwhile
            return
