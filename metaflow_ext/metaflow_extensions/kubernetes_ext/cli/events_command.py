"""`kubernetes events`: what Kubernetes has noted about a workload, its Jobs and its pods, also after they are gone.

Each object is asked for by its name: Events carry no labels, and the namespace's others are nobody's business here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timezone
from typing import Any

from metaflow.metaflow_config import KUBERNETES_NAMESPACE

from ..cluster.client import KubernetesClient
from ..cluster.protocol import EVENTS, ClusterClient
from ..decorators.host_errors import as_metaflow_error
from ..status.job_evidence import event_at, event_count
from ..status.reading import integer, mappings, name, text
from .subjects import Subject, found
from .tables import short_age, table
from .targets import Target, parse

COLUMNS = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
_AT_ONCE = 8
_NEVER = datetime.min.replace(tzinfo=timezone.utc)


def events(obj: Any, target_text: str, as_json: bool) -> None:
    target = parse(obj.flow.name, target_text)
    subjects = found(obj.flow.name, target)
    with as_metaflow_error(), closing(KubernetesClient()) as client:
        rows = sorted_rows(event for one in subjects for event in _read(client, one, target))
    if as_json:
        print(json.dumps(rows, indent=2))
    elif rows:
        print("\n".join(lines(rows, datetime.now(timezone.utc))))
    else:
        obj.echo(f"No events of {target}. A cluster keeps them for an hour, if it isn't told otherwise.", err=True)


def objects(one: Subject, target: Target) -> list[tuple[str, str]]:
    """(kind, name) of all that there may be Events about; only the pod where the target is a rank."""
    pods = {rank.rank: ("Pod", rank.pod) for rank in one.status.ranks if rank.pod}
    if target.rank is not None:
        return [pods[target.rank]] if target.rank in pods else []
    wanted = [(text(one.manifest, "kind"), name(one.manifest)), *_jobs(one.manifest), *pods.values()]
    if one.observation is not None:
        wanted += [("Job", name(job)) for job in one.observation.jobs]
        wanted += [("Pod", name(pod.object)) for pod in one.observation.pods]
        wanted += [("Workload", name(one.observation.admission))]
    return [pair for pair in dict.fromkeys(wanted) if all(pair)]


def _jobs(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for entry in mappings(manifest, "spec", "replicatedJobs"):
        replicas = integer(entry, "replicas")
        for index in range(1 if replicas is None else replicas):
            yield "Job", f"{name(manifest)}-{text(entry, 'name')}-{index}"


def _read(client: ClusterClient, one: Subject, target: Target) -> list[Mapping[str, Any]]:
    namespace = text(one.manifest, "metadata", "namespace") or KUBERNETES_NAMESPACE

    def about(pair: tuple[str, str]) -> list[Mapping[str, Any]]:
        kind, wanted = pair
        field_selector = f"involvedObject.kind={kind},involvedObject.name={wanted}"
        return [*(client.list(EVENTS, namespace, field_selector=field_selector).get("items") or ())]

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [event for each in pool.map(about, objects(one, target)) for event in each]


def sorted_rows(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The oldest first, as JSON-able values."""
    return [
        {
            "last_seen": at.isoformat() if at else None,
            "count": event_count(event),
            "type": text(event, "type"),
            "reason": text(event, "reason"),
            "object": {"kind": text(event, "involvedObject", "kind"), "name": text(event, "involvedObject", "name")},
            "message": text(event, "message"),
        }
        for at, event in sorted(((event_at(event), event) for event in events), key=lambda pair: pair[0] or _NEVER)
    ]


def lines(rows: list[dict[str, Any]], now: datetime) -> list[str]:
    cells = [
        (
            _last_seen(row, now), row["type"], row["reason"], f"{row['object']['kind'].lower()}/{row['object']['name']}",
            " ".join(row["message"].split()),
        )
        for row in rows
    ]  # fmt: skip
    return table(COLUMNS, cells)


def _last_seen(row: Mapping[str, Any], now: datetime) -> str:
    """As kubectl: "12s", and "12s (x4)" of what was seen several times."""
    if row["last_seen"] is None:
        return ""
    age = short_age(max(0, int((now - datetime.fromisoformat(row["last_seen"])).total_seconds())))
    return f"{age} (x{row['count']})" if row["count"] > 1 else age
