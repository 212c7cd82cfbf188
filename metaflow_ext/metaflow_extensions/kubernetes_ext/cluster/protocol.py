"""What the rest of the package needs of a cluster, so that tests can bring their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from ..errors import ClusterError

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Resource:
    """A kind of object at the API server. `group` is "" for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


PODS = Resource("", "v1", "pods", "Pod")
EVENTS = Resource("", "v1", "events", "Event")
JOBS = Resource("batch", "v1", "jobs", "Job")


@dataclass(frozen=True)
class WatchEvent:
    """`type` is ADDED, MODIFIED, DELETED, or SYNCED.

    SYNCED brings the whole list at once: `object` is {"items": [...]}, all that exists now; what is not among them is gone.
    Every object has its kind, also where a server leaves it out of the items of a list.
    It comes first, and again after every re-list (410 Gone).
    """

    type: str
    object: dict[str, Any]


class Stream(Iterator[T_co], Protocol[T_co]):
    """An iterator that any thread may end."""

    def close(self) -> None:
        """The iteration stops, also where another thread is blocked in it."""


class LogLine(NamedTuple):
    """A line of the log `key`; `stamp` is RFC 3339, or "" where the node gave none."""

    key: str
    stamp: str
    text: str


class LogGap(NamedTuple):
    """Here lines may be missing (or come again, where the log's time runs backwards): between the lines at these times."""

    key: str
    after: str
    before: str


class LogEnd(NamedTuple):
    """The log is over: read to its end, or (`error`) can't be read any more."""

    key: str
    error: ClusterError | None = None


LogPiece = LogLine | LogGap | LogEnd


class Tails(Stream[LogPiece], Protocol):
    """Any number of followed logs as one stream, which one thread iterates and others may add to. It ends at `close()`.

    No line is lost or comes twice when connections break; where that can't be said, a `LogGap` stands in its place.
    """

    def add(self, key: str, pod: str, *, container: str = "", since: str = "", tail: int | None = None) -> None:
        """Follow this log too, under a key of one's own: all of it, what is younger than `since`, the last `tail` lines."""

    def finish(self, key: str) -> None:
        """The container has ended: its log is over once it has been read to the end after this."""


class ClusterClient(Protocol):
    """One request each, retried inside as far as that is safe; raises `errors.ClusterError` and nothing else."""

    def create(
        self, resource: Resource, namespace: str, body: Mapping[str, Any], *, dry_run: bool = False, strict: bool = False
    ) -> dict[str, Any]: ...

    def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]: ...

    def list(
        self, resource: Resource, namespace: str, *, label_selector: str = "", field_selector: str = ""
    ) -> dict[str, Any]: ...

    def delete(self, resource: Resource, namespace: str, name: str, *, propagation: str = "Background", uid: str = "") -> None:
        """Delete with its dependents; gone already is success. With `uid` only that very object."""

    def patch(self, resource: Resource, namespace: str, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """JSON merge patch."""

    def watch(
        self,
        resource: Resource,
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        on_trouble: Callable[[ClusterError | None], None] | None = None,
    ) -> Stream[WatchEvent]:
        """List, then watch for ever: resumes closed, broken and silent streams, re-lists after 410. Ends at `close()`.

        Raises Forbidden or NotFound (of the kind); outlives all that passes. `on_trouble` hears of every failed try to
        reach the server, from the iterating thread, and None when it works again.
        """

    def logs(
        self, namespace: str, pod: str, *, container: str = "", since: str = "", tail: int | None = None
    ) -> Stream[LogLine | LogGap]:
        """What a container's log holds now, of it those lines that are younger than the time stamp `since`. Goes on through
        broken connections, without losing or repeating a line. The pieces' key is the pod's name."""

    def tails(self, namespace: str) -> Tails:
        """Follow logs of pods; however many there are, they take one thread and a few helpers."""

    def serves(self, resource: Resource) -> bool:
        """Whether the cluster serves this kind (discovery)."""

    def close(self) -> None:
        """End all watches and log streams, also those blocked in another thread."""
