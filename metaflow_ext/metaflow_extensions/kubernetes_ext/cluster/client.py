"""The real `ClusterClient`: plain dicts in and out, `ClusterError` and nothing else.

What waits or repeats is decided elsewhere (retry, watch, logs). Any number of threads may use one client; `close()` ends
what they wait for.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeVar

from ..errors import ClusterError, Conflict, NotFound, Unavailable
from . import auth, discovery, failures, logs, requests, watch
from .access import Access, Login
from .closing import Closed, Closing
from .protocol import LogGap, LogLine, Resource, WatchEvent
from .requests import Request
from .retry import DEFAULT_BACKOFF, Backoff, Trouble, retrying
from .streams import Stream
from .tails import LogTails
from .transport import Pool, Transport

T = TypeVar("T")
_PAGE = 500


class KubernetesClient:
    """Made from the configuration of the environment (`auth.load`), or from any function that gives an `Access`.

    Times are seconds. `patience` is how long requests that are safe to repeat are repeated. `watch_seconds` is the life of
    one watch stream (up to a quarter more, at random); one that is silent for `slack_seconds` longer is given up as
    half-open. A log that is silent for `log_silence_seconds` is opened again, after the end of its container for
    `last_silence_seconds`. `on_trouble` hears of failed tries, `on_warning` what the server warns of in answers that are
    no errors.
    """

    def __init__(
        self,
        load: Callable[[], Access] = auth.load,
        *,
        patience: float = 30.0,
        read_seconds: float = 30.0,
        watch_seconds: float = 300.0,
        slack_seconds: float = 15.0,
        log_silence_seconds: float = 300.0,
        last_silence_seconds: float = 3.0,
        backoff: Backoff = DEFAULT_BACKOFF,
        monotonic: Callable[[], float] = time.monotonic,
        on_trouble: Trouble | None = None,
        on_warning: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._login = Login(load)
        self._transport = Transport(self._login, on_warning)
        self._closing = Closing()
        self._pool = Pool(self._closing)
        self._patience = patience
        self._read_seconds = read_seconds
        self._watch_seconds = watch_seconds
        self._slack_seconds = slack_seconds
        self._log_silence_seconds = log_silence_seconds
        self._last_silence_seconds = last_silence_seconds
        self._backoff = backoff
        self._monotonic = monotonic
        self._on_trouble = on_trouble

    @property
    def access(self) -> Access:
        """How the server is reached now; no I/O."""
        return self._login.access

    def create(
        self, resource: Resource, namespace: str, body: Mapping[str, Any], *, dry_run: bool = False, strict: bool = False
    ) -> dict[str, Any]:
        """Sent once, since an error does not tell whether the object exists: `runtime.submit` repeats it safely."""
        request = requests.create(resource, namespace, body, dry_run, strict)
        return self._again(request) if dry_run else self._open(lambda: self._once(request))

    def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        return self._again(requests.get(resource, namespace, name))

    def list(self, resource: Resource, namespace: str, *, label_selector: str = "", field_selector: str = "") -> dict[str, Any]:
        """All pages as one list; its resourceVersion is where a watch goes on."""
        return _listed(self._again, resource, namespace, _selectors(label_selector, field_selector))

    def delete(self, resource: Resource, namespace: str, name: str, *, propagation: str = "Background", uid: str = "") -> None:
        try:
            self._again(requests.delete(resource, namespace, name, propagation, uid))
        except NotFound as error:
            if failures.is_unknown_kind(error):
                raise
        except Conflict as error:
            if not uid:
                raise
            # Either it is another object of that name by now, so ours is gone, or somebody changed ours at the same time.
            if self._has(resource, namespace, name, uid):
                raise Unavailable(str(error), status=error.status, reason=error.reason, body=error.body) from error

    def _has(self, resource: Resource, namespace: str, name: str, uid: str) -> bool:
        try:
            return bool((self.get(resource, namespace, name).get("metadata") or {}).get("uid") == uid)
        except NotFound:
            return False

    def patch(self, resource: Resource, namespace: str, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._again(requests.patch(resource, namespace, name, body))

    def watch(
        self,
        resource: Resource,
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        on_trouble: Trouble | None = None,
    ) -> Stream[WatchEvent]:
        closing = Closing(self._closing)
        source = _Watched(self, resource, namespace, _selectors(label_selector, field_selector), Pool(closing))
        events = watch.events(
            source, sleep=closing.sleep, monotonic=self._monotonic, backoff=self._backoff, on_trouble=on_trouble
        )
        return Stream(events, closing)

    def logs(
        self, namespace: str, pod: str, *, container: str = "", since: str = "", tail: int | None = None
    ) -> Stream[LogLine | LogGap]:
        closing = Closing(self._closing)
        pool = Pool(closing)

        def open_at(start: str, lines: int | None) -> Generator[bytes, None, None]:
            request = requests.logs(namespace, pod, container, False, start, lines)
            return self._retried(lambda: self._transport.lines(request, pool, self._read_seconds))

        followed = logs.Followed(pod, since=since, tail=tail, backoff=self._backoff)
        return Stream(logs.read(followed, open_at), closing)

    def tails(self, namespace: str) -> LogTails:
        return LogTails(
            self._transport, namespace, Closing(self._closing), silence=self._log_silence_seconds, last_silence=self._last_silence_seconds,
            send_seconds=self._read_seconds, monotonic=self._monotonic, backoff=self._backoff,
        )  # fmt: skip

    def serves(self, resource: Resource) -> bool:
        try:
            return discovery.has_resource(self._again(requests.discovery(resource.group, resource.version)), resource)
        except NotFound:
            return False

    def served_versions(self, group: str) -> tuple[str, ...]:
        """The versions of an API group, the preferred one first; () where the cluster doesn't have the group."""
        try:
            return discovery.versions(self._again(requests.discovery(group)))
        except NotFound:
            return ()

    def close(self) -> None:
        self._closing.close()

    def _once(self, request: Request) -> dict[str, Any]:
        return self._transport.exchange(request, self._pool, self._read_seconds)

    def _again(self, request: Request) -> dict[str, Any]:
        return self._retried(lambda: self._once(request))

    def _retried(self, call: Callable[[], T]) -> T:
        return self._open(
            lambda: retrying(
                call,
                patience=self._patience,
                sleep=self._closing.sleep,
                monotonic=self._monotonic,
                backoff=self._backoff,
                on_trouble=self._on_trouble,
            )
        )

    @staticmethod
    def _open(call: Callable[[], T]) -> T:
        try:
            return call()
        except Closed:
            raise ClusterError("The connection to the cluster was closed during a request.", reason="Closed") from None


class _Watched:
    """`watch.Source` over HTTP: one stream's own connection for its lists and watches."""

    def __init__(
        self, client: KubernetesClient, resource: Resource, namespace: str, selectors: Mapping[str, str], pool: Pool
    ) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._selectors = selectors
        self._pool = pool

    def list(self) -> dict[str, Any]:
        client = self._client

        def send(request: Request) -> dict[str, Any]:
            return client._transport.exchange(request, self._pool, client._read_seconds)

        return _listed(send, self._resource, self._namespace, self._selectors)

    def stream(self, resource_version: str) -> Generator[dict[str, Any], None, None]:
        client = self._client
        seconds = client._watch_seconds * (1 + client._backoff.draw() / 4)
        request = requests.watch(self._resource, self._namespace, self._selectors, resource_version, round(seconds))
        lines = client._transport.lines(request, self._pool, seconds + client._slack_seconds)
        return _changes(lines, request, client.access.source)


def _changes(lines: Generator[bytes, None, None], request: Request, source: str) -> Generator[dict[str, Any], None, None]:
    with contextlib.closing(lines):
        for line in lines:
            yield _change(line, request, source)


def _change(line: bytes, request: Request, source: str) -> dict[str, Any]:
    """A line of a watch stream; ERROR is raised."""
    try:
        change = json.loads(line)
    except ValueError as error:
        raise Unavailable(f"The watch of {request.resource.plural} was cut in the middle of an event.") from error
    if change.get("type") == "ERROR":
        raise failures.of_status(request, change.get("object") or {}, source)
    return dict(change)


def _listed(
    send: Callable[[Request], dict[str, Any]], resource: Resource, namespace: str, selectors: Mapping[str, str]
) -> dict[str, Any]:
    """Page by page; where the pages expire meanwhile (410), all at once. Servers leave the kind out of the items of their own
    kinds; here all have it."""
    query = {**selectors, "limit": str(_PAGE)}
    answer = send(requests.listing(resource, namespace, query))
    items = [*(answer.get("items") or ())]
    while token := (answer.get("metadata") or {}).get("continue"):
        try:
            answer = send(requests.listing(resource, namespace, {**query, "continue": token}))
            items += answer.get("items") or ()
        except ClusterError as error:
            if error.status != 410:
                raise
            answer = send(requests.listing(resource, namespace, selectors))
            items = [*(answer.get("items") or ())]
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**answer, "items": [{**kind, **item} for item in items]}


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    return {"labelSelector": label_selector, "fieldSelector": field_selector}
