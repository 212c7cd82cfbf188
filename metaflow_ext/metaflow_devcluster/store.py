"""The objects of the cluster, their versions and their history: what etcd and the watch cache are elsewhere.

Everything in the process works on this one store. It knows identities, resource versions, generations,
finalizers and deletion, and nothing of schemas, defaults or HTTP. Returned dicts are shared: treat them as
immutable. Writers hand in fresh dicts, which become the store's.
"""

from __future__ import annotations

import asyncio
import datetime
import heapq
import random
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from . import errors
from .resources import Resource, Resources, served_resources

Object = dict[str, Any]
Objects = list[Object]
HISTORY = 10_000
_NAME_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"
_GARBAGE_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


@dataclass(frozen=True)
class Change:
    """One write: `type` is ADDED, MODIFIED or DELETED; `object` and `previous` are shared."""

    type: str
    resource: str
    object: Object
    previous: Object | None
    resource_version: int


def timestamp(moment: datetime.datetime | None = None) -> str:
    """RFC 3339 in UTC without fraction, as `metadata.creationTimestamp` has it."""
    moment = moment or datetime.datetime.now(datetime.timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def clone(value: Any) -> Any:
    """A deep copy of plain JSON data, several times faster than copy.deepcopy."""
    if isinstance(value, dict):
        return {key: clone(item) if isinstance(item, (dict, list)) else item for key, item in value.items()}
    return [clone(item) for item in value] if isinstance(value, list) else value


def name_suffix() -> str:
    """The five characters that complete a generateName."""
    return "".join(random.choices(_NAME_CHARACTERS, k=5))


class Subscription:
    """The changes from one moment on, as an async iterator; ends when closed, Expired when left too far behind."""

    def __init__(self, listeners: list[Subscription], backlog: Iterable[Change], after: int, limit: int) -> None:
        self._listeners = listeners
        self._after = after
        self._limit = limit
        self._changes: deque[Change] = deque(backlog)
        self._wake = asyncio.Event()
        self._closed = False

    def offer(self, change: Change) -> None:
        """Called by the store at every write; a resource version of the future waits until it has passed."""
        if change.resource_version > self._after:
            self._changes.append(change)
            self._wake.set()

    def pending(self) -> list[Change]:
        """Take what is there without waiting."""
        taken = list(self._changes)
        self._changes.clear()
        return taken

    async def __anext__(self) -> Change:
        while not self._changes:
            if self._closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        if len(self._changes) > self._limit:
            raise errors.expired(self._changes[0].resource_version, self._changes[-1].resource_version)
        return self._changes.popleft()

    def __aiter__(self) -> AsyncIterator[Change]:
        return self

    def close(self) -> None:
        """Leave; a waiting reader gets the end of the iteration."""
        if not self._closed:
            self._closed = True
            self._listeners.remove(self)
            self._wake.set()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class _Shelf:
    """The objects of one resource by namespace ("" when cluster-wide) and name, with their history."""

    floor: int
    objects: dict[str, dict[str, Object]] = field(default_factory=dict)
    history: deque[Change] = field(default_factory=deque)
    subscriptions: list[Subscription] = field(default_factory=list)

    def since(self, version: int) -> list[Change]:
        found = []
        for change in reversed(self.history):
            if change.resource_version <= version:
                break
            found.append(change)
        found.reverse()
        return found


class Store:
    """In-memory objects with one resource version for all kinds, and their history for watches."""

    def __init__(
        self,
        resources: Resources | None = None,
        *,
        first_resource_version: int = 1,
        history: int = HISTORY,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.timezone.utc),
    ) -> None:
        self.resources = resources if resources is not None else served_resources()
        self.resource_version = first_resource_version
        self._first = first_resource_version
        self._limit = history
        self._now = now
        self._shelves: dict[str, _Shelf] = {}
        self._everything: list[Subscription] = []

    # -- reading

    def find(self, resource: str, namespace: str | None, name: str) -> Object | None:
        shelf = self._shelves.get(resource)
        return shelf.objects.get(namespace or "", {}).get(name) if shelf else None

    def get(self, resource: str, namespace: str | None, name: str) -> Object:
        found = self.find(resource, namespace, name)
        if found is None:
            raise errors.not_found(resource, name)
        return found

    def list(self, resource: str, namespace: str | None = None, where: Callable[[Object], bool] | None = None) -> Objects:
        """Objects ordered by namespace and name; all namespaces when none is given."""
        shelf = self._shelves.get(resource)
        if not shelf:
            return []
        spaces = sorted(shelf.objects) if namespace is None else (namespace,)
        found = (shelf.objects[space][name] for space in spaces for name in sorted(shelf.objects.get(space, ())))
        return [obj for obj in found if where is None or where(obj)]

    def list_at(self, resource: str, version: int, namespace: str | None = None) -> Objects:
        """The list as it was at an earlier resource version; Expired when the history does not reach back."""
        shelf = self._shelf(resource)
        if version < shelf.floor:
            raise errors.expired(version, shelf.floor)
        state = {_identity(obj): obj for obj in self.list(resource, namespace)}
        for change in reversed(shelf.since(version)):
            identity = _identity(change.object)
            if namespace is not None and identity[0] != namespace:
                continue
            if change.previous is None:
                state.pop(identity, None)
            else:
                state[identity] = change.previous
        return [state[identity] for identity in sorted(state)]

    # -- writing

    def create(self, resource: str, obj: Object) -> Object:
        """Store a new object; completes generateName and sets uid, resourceVersion, creationTimestamp, generation."""
        obj = self.prepared(resource, obj)
        meta = obj["metadata"]
        space, name = _identity(obj)
        existing = self.find(resource, space, name)
        if existing is not None:
            being_deleted = bool(existing["metadata"].get("deletionTimestamp"))
            raise errors.already_exists(resource, name, being_deleted=being_deleted)
        self.resource_version += 1
        meta["resourceVersion"] = str(self.resource_version)
        self._shelf(resource).objects.setdefault(space, {})[name] = obj
        self._publish("ADDED", resource, obj, None)
        return obj

    def prepared(self, resource: str, obj: Object) -> Object:
        """The object as `create` would store it, but without a resourceVersion and without storing it."""
        kind = self.resources[resource]
        meta = dict(obj.get("metadata") or {})
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._free_name(resource, meta)
        for key in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
            meta.pop(key, None)
        meta["uid"] = meta.get("uid") or str(uuid.uuid4())
        if kind.has_generation:
            meta["generation"] = 1
        meta["creationTimestamp"] = timestamp(self._now())
        if not kind.namespaced:
            meta.pop("namespace", None)
        return {"kind": kind.kind, "apiVersion": kind.api_version, **obj, "metadata": meta}

    def update(self, resource: str, obj: Object, *, status_only: bool = False) -> Object:
        """Replace an object; with `status_only` only its status is taken. Equal content keeps the version."""
        space, name = _identity(obj)
        current = self.get(resource, space, name)
        updated = self.merged(resource, current, obj, status_only=status_only)
        if updated == current:
            return current
        if _is_finished(updated):
            return self.remove(resource, space, name, last=updated)
        return self._replace(resource, current, updated)

    def merged(self, resource: str, current: Object, obj: Object, *, status_only: bool = False) -> Object:
        """The object as `update` would store it, except for its new resourceVersion, without storing it."""
        given, meta = obj.get("metadata") or {}, current["metadata"]
        version = given.get("resourceVersion")
        if version and version != meta["resourceVersion"]:
            raise errors.stale(resource, meta["name"])
        if given.get("uid") and given["uid"] != meta["uid"]:
            text = f"Precondition failed: UID in precondition: {given['uid']}, UID in object meta: {meta['uid']}"
            raise errors.conflict(resource, meta["name"], text)
        if status_only:
            updated = {**current, "status": obj["status"]} if "status" in obj else dict(current)
            if "status" not in obj:
                updated.pop("status", None)
            return updated
        server_owned = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
        new_meta = {key: value for key, value in given.items() if key not in (*server_owned, "selfLink")}
        new_meta.update({key: meta[key] for key in (*server_owned, "namespace", "resourceVersion") if key in meta})
        if meta.get("generateName"):
            new_meta.setdefault("generateName", meta["generateName"])
        updated = {"kind": current["kind"], "apiVersion": current["apiVersion"], **obj, "metadata": new_meta}
        if self.resources[resource].has_generation and _is_new_generation(self.resources[resource], current, updated):
            new_meta["generation"] = meta.get("generation", 0) + 1
        return updated

    def modify(
        self,
        resource: str,
        namespace: str | None,
        name: str,
        change: Callable[[Object], None],
        *,
        status_only: bool = False,
    ) -> Object:
        """Read an object, let `change` alter a copy of it, write that."""
        obj = clone(self.get(resource, namespace, name))
        change(obj)
        return self.update(resource, obj, status_only=status_only)

    # -- deleting

    def delete(
        self,
        resource: str,
        namespace: str | None,
        name: str,
        *,
        propagation: str | None = None,
        grace_seconds: int | None = None,
        preconditions: Object | None = None,
    ) -> Object:
        """Delete an object, or mark it deleted while finalizers or, for a bound pod, its node hold it."""
        current = self.get(resource, namespace, name)
        _check_preconditions(resource, current, preconditions or {})
        marked = self.marked(resource, current, propagation=propagation, grace_seconds=grace_seconds)
        if marked is None or _is_finished(marked):
            return self.remove(resource, namespace, name)
        return current if marked == current else self._replace(resource, current, marked)

    def marked(
        self, resource: str, current: Object, *, propagation: str | None = None, grace_seconds: int | None = None
    ) -> Object | None:
        """The object as a deletion leaves it; None when nothing holds it back. Stores nothing."""
        meta = dict(current["metadata"])
        finalizers = _finalizers_after_delete(
            meta.get("finalizers") or [], propagation, self.resources[resource].default_propagation
        )
        grace = _grace_seconds(current, grace_seconds) if resource == "pods" else 0
        held = resource == "namespaces" and bool((current.get("spec") or {}).get("finalizers"))
        if not finalizers and grace == 0 and not held:
            return None
        meta["finalizers"] = finalizers
        if not finalizers:
            del meta["finalizers"]
        marked = {**current, "metadata": meta}
        earlier = meta.get("deletionGracePeriodSeconds")
        is_first = not meta.get("deletionTimestamp")
        if is_first or (earlier is not None and grace < earlier):
            moment = self._now() + datetime.timedelta(seconds=grace)
            meta["deletionTimestamp"] = timestamp(moment)
            if resource != "namespaces":
                meta["deletionGracePeriodSeconds"] = grace
            if is_first and meta.get("generation"):
                meta["generation"] += 1
        if resource == "namespaces":
            marked["status"] = {**(current.get("status") or {}), "phase": "Terminating"}
        return marked

    def remove(self, resource: str, namespace: str | None, name: str, *, last: Object | None = None) -> Object:
        """Drop an object finally, whatever holds it; returns its last state with the version of the removal."""
        current = self.get(resource, namespace, name)
        shelf = self._shelf(resource)
        space = namespace or ""
        del shelf.objects[space][name]
        if not shelf.objects[space]:
            del shelf.objects[space]
        self.resource_version += 1
        final = {**(last or current)}
        final["metadata"] = {**final["metadata"], "resourceVersion": str(self.resource_version)}
        self._publish("DELETED", resource, final, current)
        return final

    # -- watching

    def subscribe(self, resource: str | None = None, since: int | None = None) -> Subscription:
        """Changes of one resource, or of all; from now on, or after the resource version `since`."""
        after = self.resource_version if since is None else since
        if resource is None:
            floor = max((shelf.floor for shelf in self._shelves.values()), default=self._first)
            found = list(heapq.merge(*(shelf.since(after) for shelf in self._shelves.values()), key=_version))
            listeners = self._everything
        else:
            shelf = self._shelf(resource)
            floor, found, listeners = shelf.floor, shelf.since(after), shelf.subscriptions
        if after < floor:
            raise errors.expired(after, floor)
        subscription = Subscription(listeners, found, after, self._limit)
        listeners.append(subscription)
        return subscription

    def begin(self, resource: str) -> None:
        """A resource served from now on: resource versions before this moment are too old for it."""
        self._shelf(resource).floor = self.resource_version

    # -- inside

    def _shelf(self, resource: str) -> _Shelf:
        shelf = self._shelves.get(resource)
        if shelf is None:
            shelf = self._shelves[resource] = _Shelf(floor=self._first)
        return shelf

    def _free_name(self, resource: str, meta: Object) -> str:
        base = str(meta["generateName"])[:58]
        while True:
            name = base + name_suffix()
            if self.find(resource, meta.get("namespace"), name) is None:
                return name

    def _replace(self, resource: str, current: Object, updated: Object) -> Object:
        self.resource_version += 1
        stored = {**updated, "metadata": {**updated["metadata"], "resourceVersion": str(self.resource_version)}}
        space, name = _identity(stored)
        self._shelf(resource).objects[space][name] = stored
        self._publish("MODIFIED", resource, stored, current)
        return stored

    def _publish(self, kind: str, resource: str, obj: Object, previous: Object | None) -> None:
        change = Change(kind, resource, obj, previous, self.resource_version)
        shelf = self._shelf(resource)
        shelf.history.append(change)
        if len(shelf.history) > self._limit:
            shelf.floor = shelf.history.popleft().resource_version
        for subscription in (*shelf.subscriptions, *self._everything):
            subscription.offer(change)


def _version(change: Change) -> int:
    return change.resource_version


def _identity(obj: Object) -> tuple[str, str]:
    meta = obj["metadata"]
    return str(meta.get("namespace") or ""), str(meta["name"])


def _is_new_generation(kind: Resource, current: Object, updated: Object) -> bool:
    """Built-ins count changes of the spec, custom resources all but metadata and status."""
    if not kind.custom:
        return bool(current.get("spec") != updated.get("spec"))
    beside = ("metadata", "status")
    return {k: v for k, v in current.items() if k not in beside} != {k: v for k, v in updated.items() if k not in beside}


def _is_finished(obj: Object) -> bool:
    """Whether nothing holds a deleted object any more: no finalizers, no grace left for a node to use."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return not (obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers"))


def _grace_seconds(pod: Object, wanted: int | None) -> int:
    """A pod without a node, or with nothing running, goes at once; else what is asked or what its spec says."""
    if not pod["spec"].get("nodeName") or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    grace = pod["spec"].get("terminationGracePeriodSeconds", 30) if wanted is None else wanted
    return max(int(grace), 0)


def _finalizers_after_delete(present: list[str], propagation: str | None, default: str) -> list[str]:
    """An explicit policy replaces the garbage collector's finalizers; without one those present, then the default."""
    garbage = set(_GARBAGE_FINALIZERS.values())
    if propagation is None and garbage.intersection(present):
        return present
    kept = [name for name in present if name not in garbage]
    wanted = _GARBAGE_FINALIZERS.get(propagation or default)
    return [*kept, wanted] if wanted else kept


def _check_preconditions(resource: str, current: Object, preconditions: Object) -> None:
    meta = current["metadata"]
    uid, version = preconditions.get("uid"), preconditions.get("resourceVersion")
    if uid and uid != meta["uid"]:
        text = f"the UID in the precondition ({uid}) does not match the UID in record ({meta['uid']}). "
    elif version and version != meta["resourceVersion"]:
        record = meta["resourceVersion"]
        text = f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
        text += f"({record}). "
    else:
        return
    raise errors.conflict(resource, meta["name"], text + "The object might have been deleted and then recreated")
