"""Watches: which events a client sees, in which order, and when bookmarks come. No HTTP in here.

A selector turns leaving it into DELETED and entering it into ADDED, so a watcher always knows its set.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from .. import errors
from ..errors import Cause
from ..store import Change, Store, Subscription
from .listing import version_of
from .requests import Target, is_true, whole_number
from .selectors import Predicate, selector

Object = dict[str, Any]
Event = tuple[str, Object]
BOOKMARK_SECONDS = 60.0
_BOOKMARK_BEFORE_END = 2.0
_END_OF_INITIAL = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """What a watch request asks for; `since` None means: begin with the objects there are."""

    where: Predicate | None
    since: int | None
    seconds: float
    bookmarks: bool
    initial_events: bool


def watch_options(target: Target, query: Mapping[str, str]) -> WatchOptions:
    fields = query.get("fieldSelector", "")
    if target.name:
        fields = ",".join(filter(None, (fields, f"metadata.name={target.name}")))
    initial = query.get("sendInitialEvents")
    causes = _causes(initial, query.get("resourceVersionMatch", ""))
    if causes:
        raise errors.invalid_options("ListOptions", causes)
    version = version_of(query.get("resourceVersion", ""), code=500)
    wants_initial = is_true(initial)
    seconds = float(whole_number(query, "timeoutSeconds") or 0) or random.uniform(1800, 3600)
    return WatchOptions(
        where=selector(target.resource, query.get("labelSelector", ""), fields),
        since=None if wants_initial or (version == 0 and initial is None) else version,
        seconds=seconds,
        bookmarks=is_true(query.get("allowWatchBookmarks")),
        initial_events=wants_initial,
    )


def _causes(initial: str | None, match: str) -> list[Cause]:
    field = "resourceVersionMatch"
    if initial is None:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        return [Cause(field, f"Forbidden: {text}", "FieldValueForbidden")] if match else []
    if match == "NotOlderThan":
        return []
    if not match:
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        return [Cause(field, f"Forbidden: {text}", "FieldValueForbidden")]
    return [Cause(field, f'Unsupported value: "{match}": supported values: "NotOlderThan"', "FieldValueNotSupported")]


def event_of(change: Change, where: Predicate | None) -> Event | None:
    """What a change is to a watcher of the selected objects; None when it does not concern it."""
    if where is None:
        return change.type, change.object
    was = change.previous is not None and where(change.previous)
    if change.type == "DELETED":
        return ("DELETED", change.object) if was else None
    if where(change.object):
        return ("MODIFIED" if was else "ADDED"), change.object
    if not was or change.previous is None:
        return None
    meta = {**change.previous["metadata"], "resourceVersion": str(change.resource_version)}
    return "DELETED", {**change.previous, "metadata": meta}


def bookmark(target: Target, version: int, annotations: Object | None = None) -> Event:
    meta: Object = {"resourceVersion": str(version)}
    if annotations:
        meta["annotations"] = annotations
    resource = target.resource
    return "BOOKMARK", {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}


def begin(store: Store, target: Target, options: WatchOptions) -> tuple[list[Event], Subscription | None]:
    """The events to send at once and the subscription to go on with; None after an ERROR event."""
    name = target.resource.name
    if options.since is None:
        objects = store.list(name, target.namespace, options.where)
        events: list[Event] = [("ADDED", obj) for obj in objects]
        if options.initial_events and options.bookmarks:
            events.append(bookmark(target, store.resource_version, dict(_END_OF_INITIAL)))
        return events, store.subscribe(name)
    try:
        return [], store.subscribe(name, since=options.since)
    except errors.Expired as error:
        return [("ERROR", error.status())], None


async def events(
    store: Store, target: Target, options: WatchOptions, *, bookmark_seconds: float = BOOKMARK_SECONDS
) -> AsyncIterator[list[Event]]:
    """The events in batches until the time is over; a batch is what was there when the last one had been sent."""
    first, subscription = begin(store, target, options)
    loop = asyncio.get_running_loop()
    end = loop.time() + options.seconds
    marks = _Bookmarks(loop.time(), options, bookmark_seconds, store.resource_version)
    if subscription is None:
        yield first
        return
    try:
        yield first
        while (now := loop.time()) < end:
            until = min(end, marks.due) if options.bookmarks else end
            try:
                batch = await _next_batch(subscription, max(until - now, 0.0))
            except errors.Expired as error:
                yield [("ERROR", error.status())]
                return
            found = [event for change in batch if _is_in(target, change) if (event := event_of(change, options.where))]
            if options.bookmarks and loop.time() >= marks.due:
                version = marks.take(loop.time(), store.resource_version)
                if version:
                    found.append(bookmark(target, version))
            if found:
                yield found
    finally:
        subscription.close()


def _is_in(target: Target, change: Change) -> bool:
    return target.namespace is None or change.object["metadata"].get("namespace") == target.namespace


async def _next_batch(subscription: Subscription, seconds: float) -> list[Change]:
    try:
        first = await asyncio.wait_for(anext(subscription), seconds)
    except (TimeoutError, asyncio.TimeoutError, StopAsyncIteration):
        return []
    return [first, *subscription.pending()]


class _Bookmarks:
    """When the next bookmark is due: every so often, and once shortly before the end."""

    def __init__(self, now: float, options: WatchOptions, every: float, version: int) -> None:
        self._every = every
        self._last_chance = now + options.seconds - _BOOKMARK_BEFORE_END
        self._sent = options.since if options.since is not None else version
        self.due = min(now + every, self._last_chance) if options.seconds > _BOOKMARK_BEFORE_END else float("inf")

    def take(self, now: float, version: int) -> int:
        """The version to announce, 0 when nothing was written since the last one."""
        is_last = now >= self._last_chance
        self.due = float("inf") if is_last else min(now + self._every, self._last_chance)
        if version <= self._sent:
            return 0
        self._sent = version
        return version
