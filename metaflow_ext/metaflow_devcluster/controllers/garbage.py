"""The garbage collector: what an owner's deletion means for its dependents.

Background: dependents go after the owner. Foreground: the owner waits, marked by a finalizer, for the dependents
that block it. Orphan: the dependents lose their reference and stay.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import NotFound
from ..store import Change, Store
from .manager import Key
from .objects import Object, finalizers_of, is_being_deleted, meta, name_of, namespace_of, owners_of, uid_of

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


@dataclass(frozen=True)
class Fate:
    """What becomes of a dependent: it goes with its owners, or drops the references to those that are gone."""

    is_deleted: bool
    lost_owners: frozenset[str] = frozenset()


def fate(dependent: Object, existing_uids: set[str]) -> Fate:
    """Decided by which of its owners still exist."""
    owners = {ref["uid"] for ref in owners_of(dependent)}
    lost = frozenset(owners - existing_uids)
    return Fate(is_deleted=bool(owners) and lost == owners, lost_owners=lost)


def without_owners(obj: Object, uids: Iterable[str]) -> Object:
    """The object without its references to these owners."""
    gone = set(uids)
    found = copy.copy(obj)
    found["metadata"] = {key: value for key, value in meta(obj).items() if key != "ownerReferences"}
    kept = [ref for ref in owners_of(obj) if ref["uid"] not in gone]
    if kept:
        found["metadata"]["ownerReferences"] = kept
    return found


def without_finalizer(obj: Object, finalizer: str) -> Object:
    found = copy.copy(obj)
    found["metadata"] = {key: value for key, value in meta(obj).items() if key != "finalizers"}
    kept = [entry for entry in finalizers_of(obj) if entry != finalizer]
    if kept:
        found["metadata"]["finalizers"] = kept
    return found


class GarbageCollector:
    """Keys are (resource, namespace, name): of dependents to judge and of owners that wait."""

    first_retry = 0.1

    def __init__(self, store: Store) -> None:
        self._store = store
        self._dependents: dict[str, set[Key]] = {}
        self._owners: dict[Key, set[str]] = {}
        self._waiting: dict[str, Key] = {}

    def keys(self, change: Change) -> Iterable[tuple[Key, float]]:
        if change.resource == "events":
            return
        obj = change.object
        key = (change.resource, namespace_of(obj), name_of(obj))
        uids = {ref["uid"] for ref in owners_of(obj)} if change.type != "DELETED" else set()
        before = self._owners.get(key, set())
        self._index(key, before, uids)
        if change.type == "DELETED":
            self._waiting.pop(uid_of(obj), None)
            for dependent in sorted(self._dependents.get(uid_of(obj), ())):
                yield dependent, 0.0
        elif uids or finalizers_of(obj):
            yield key, 0.0
        for uid in before | uids:
            if uid in self._waiting:
                yield self._waiting[uid], 0.0

    def reconcile(self, key: Key) -> float | None:
        resource, namespace, name = key
        obj = self._store.find(resource, namespace, name)
        if obj is None:
            return None
        if is_being_deleted(obj) and ORPHAN in finalizers_of(obj):
            self._orphan(resource, obj)
        elif is_being_deleted(obj) and FOREGROUND in finalizers_of(obj):
            self._delete_dependents(resource, obj, key)
        elif owners_of(obj) and not is_being_deleted(obj):
            self._judge(resource, obj)
        return None

    def _index(self, key: Key, before: set[str], uids: set[str]) -> None:
        for uid in before - uids:
            self._dependents[uid].discard(key)
            if not self._dependents[uid]:
                del self._dependents[uid]
        for uid in uids - before:
            self._dependents.setdefault(uid, set()).add(key)
        if uids:
            self._owners[key] = uids
        else:
            self._owners.pop(key, None)

    def _dependents_of(self, obj: Object) -> list[tuple[str, Object]]:
        found = []
        for resource, namespace, name in sorted(self._dependents.get(uid_of(obj), ())):
            dependent = self._store.find(resource, namespace, name)
            if dependent is not None and any(ref["uid"] == uid_of(obj) for ref in owners_of(dependent)):
                found.append((resource, dependent))
        return found

    def _orphan(self, resource: str, obj: Object) -> None:
        for kind, dependent in self._dependents_of(obj):
            self._store.update(kind, without_owners(dependent, [uid_of(obj)]))
        self._store.update(resource, without_finalizer(obj, ORPHAN))

    def _delete_dependents(self, resource: str, obj: Object, key: Key) -> None:
        dependents = self._dependents_of(obj)
        blocking = [entry for entry in dependents if self._blocks(entry[1], uid_of(obj))]
        if not blocking:
            self._waiting.pop(uid_of(obj), None)
            self._store.update(resource, without_finalizer(obj, FOREGROUND))
            return
        self._waiting[uid_of(obj)] = key
        for kind, dependent in dependents:
            if not is_being_deleted(dependent):
                has_blocking = any(self._blocks(below, uid_of(dependent)) for _, below in self._dependents_of(dependent))
                self._delete(kind, dependent, "Foreground" if has_blocking else "Background")

    def _blocks(self, dependent: Object, owner_uid: str) -> bool:
        return any(ref["uid"] == owner_uid and ref.get("blockOwnerDeletion") for ref in owners_of(dependent))

    def _judge(self, resource: str, obj: Object) -> None:
        existing = {ref["uid"] for ref in owners_of(obj) if self._exists(obj, ref)}
        found = fate(obj, existing)
        if found.is_deleted:
            self._delete(resource, obj, "Background")
        elif found.lost_owners:
            self._store.update(resource, without_owners(obj, found.lost_owners))

    def _exists(self, dependent: Object, ref: Object) -> bool:
        resource = self._store.resources.of_kind(ref["apiVersion"], ref["kind"])
        if resource is None:
            return False
        namespace = namespace_of(dependent) if resource.namespaced else None
        owner = self._store.find(resource.name, namespace, ref["name"])
        return owner is not None and uid_of(owner) == ref["uid"]

    def _delete(self, resource: str, obj: Object, propagation: str) -> None:
        try:
            self._store.delete(
                resource,
                namespace_of(obj),
                name_of(obj),
                propagation=propagation,
                preconditions={"uid": uid_of(obj)},
            )
        except NotFound:
            return
