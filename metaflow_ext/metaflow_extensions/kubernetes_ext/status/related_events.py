"""The Events that a report shows beside a failure: what the cluster said of the failed rank's pod and the summary does not say yet."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from .job_evidence import event_at, event_count
from .model import KubernetesObject
from .reading import text

MOST_EVENTS = 3
_TELLING = ("Preempted",)  # not marked as a warning


def related_events(
    events: Iterable[KubernetesObject], pod_uid: str, summary: str, since: datetime | None = None
) -> tuple[str, ...]:
    """ "Evicted: The node was low on resource: memory." for each warning about this pod, the last ones, in their order.

    `since`: when the rank began to run. What kept it from running before is over by then.
    """
    about = [
        (at, event)
        for event in events
        if pod_uid
        and text(event, "involvedObject", "uid") == pod_uid
        and (text(event, "type") == "Warning" or text(event, "reason") in _TELLING)
        and (at := event_at(event))
        and (since is None or at >= since)
    ]
    lines = [_line(event) for _, event in sorted(about, key=lambda pair: pair[0]) if not _is_said(event, summary)]
    return tuple(dict.fromkeys(lines))[-MOST_EVENTS:]


def _is_said(event: KubernetesObject, summary: str) -> bool:
    return " ".join(text(event, "message").split()).rstrip(".") in summary


def _line(event: KubernetesObject) -> str:
    count = event_count(event)
    message = " ".join(text(event, "message").split())
    return f"{text(event, 'reason')}: {message}" + (f" ({count} times)" if count > 1 else "")
