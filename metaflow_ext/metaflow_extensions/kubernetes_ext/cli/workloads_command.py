"""`kubernetes list` and `kubernetes kill`: the workloads of this flow, found by their labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from metaflow.exception import MetaflowException
from metaflow.plugins.kubernetes.kube_utils import parse_cli_options
from metaflow.util import get_username

from ..backends.base import Backend
from ..cluster.client import KubernetesClient
from ..cluster.protocol import ClusterClient
from ..decorators.host_errors import as_metaflow_error
from ..errors import ClusterError
from ..runtime.process import GONE, UNKNOWN, Client, of_json, started, state, this_process
from ..runtime.resources import resource_of
from ..spec import labels
from ..status.model import Observation, Phase
from ..status.reading import text
from .tables import seconds_since, short_age, table
from .targets import Target, identity, parse, selector, workloads

COLUMNS = ("NAME", "KIND", "RUN", "STEP", "TASK", "ATTEMPT", "RANKS", "STATUS", "CLIENT", "AGE")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to list. Without any choice: the latest run's, as core does it."""

    run_id: str | None = None
    user: str | None = None
    is_mine: bool = False
    is_all: bool = False
    with_finished: bool = False
    only_orphans: bool = False
    selector: str = ""

    @property
    def has_choice(self) -> bool:
        return bool(self.run_id or self.user or self.is_mine)


@dataclass(frozen=True)
class Row:
    """One workload. `age` in seconds. `client` is the state of the process that follows it (runtime.process), on `client_host`."""

    name: str
    kind: str
    namespace: str
    run_id: str
    step: str
    task_id: str
    attempt: str
    ranks: str
    status: str
    client: str
    client_host: str
    age: int
    stalled_since: str = ""  # RFC 3339, while no rank makes progress

    @property
    def is_finished(self) -> bool:
        return Phase(self.status).is_terminal


def client_of(workload: Mapping[str, Any]) -> Client | None:
    try:
        return of_json(json.loads(text(workload, "metadata", "annotations", labels.CLIENT) or "null"))
    except ValueError:
        return None


def row(
    workload: Mapping[str, Any], backend: Backend, now: datetime, client: str = "", wrapped: Mapping[str, Any] | None = None
) -> Row:
    metadata = workload.get("metadata") or {}
    whose = identity(workload)
    whose.pop("flow")
    status = backend.reduce(Observation(at=now, workload=workload, was_seen=True, wrapped=wrapped))
    follower = client_of(workload)
    return Row(
        name=str(metadata.get("name")),
        kind=backend.kind,
        namespace=str(metadata.get("namespace")),
        status=str(status.phase),
        client="" if status.is_terminal else client,
        client_host=follower.host if follower else "",
        age=seconds_since(metadata.get("creationTimestamp"), now),
        stalled_since=status.stalled.since.isoformat() if status.stalled else "",
        **whose,
    )


def lines(rows: list[Row]) -> list[str]:
    cells = [
        (
            r.name,
            r.kind,
            r.run_id,
            r.step,
            r.task_id,
            r.attempt,
            r.ranks,
            "Stalled" if r.stalled_since else r.status,
            r.client,
            short_age(r.age),
        )
        for r in rows
    ]
    return table(COLUMNS, cells)


def list_workloads(obj: Any, wanted: Wanted, as_json: bool) -> None:
    rows = _rows(_selector(obj, wanted))
    shown = [one for one in rows if wanted.with_finished or not one.is_finished]
    unknown = sorted({one.client_host or "an unknown host" for one in shown if one.client == UNKNOWN})
    if wanted.only_orphans:
        shown = [one for one in shown if one.client == GONE]
    if as_json:
        print(json.dumps([asdict(one) for one in shown], indent=2))
    elif shown:
        print("\n".join(lines(shown)))
    else:
        what = "orphaned" if wanted.only_orphans else "" if wanted.with_finished else "unfinished"
        obj.echo(f"No {f'{what} ' if what else ''}Kubernetes tasks found.", err=True)
    if wanted.only_orphans and unknown:
        obj.echo(f"Not looked at, since their step processes are not on this machine: those of {', '.join(unknown)}.", err=True)


def _selector(obj: Any, wanted: Wanted) -> str:
    run_id, user = wanted.run_id, wanted.user
    if wanted.has_choice or not (wanted.is_all or wanted.only_orphans):
        _, run_id, user = parse_cli_options(obj.flow.name, run_id, user, wanted.is_mine, obj.echo)
    return selector(obj.flow.name, Target(run_id) if run_id else None, user, wanted.selector)


def follower_state(workload: Mapping[str, Any]) -> str:
    """Whether the process that follows it is still there: RUNNING, GONE or UNKNOWN of runtime.process."""
    follower, here = client_of(workload), this_process()
    return state(follower, here, started(follower.pid) if follower and follower.host == here.host else "")


def _rows(label_selector: str) -> list[Row]:
    now = datetime.now(timezone.utc)
    with as_metaflow_error(), closing(KubernetesClient()) as client:
        return [
            row(workload, backend, now, follower_state(workload), wrapped)
            for backend, workload, wrapped in workloads(client, label_selector)
        ]


def kill_workloads(
    obj: Any, target_text: str | None, run_id: str | None, user: str | None, my_runs: bool, as_json: bool = False
) -> None:
    for name, given in (("--run-id", run_id), ("--user", user)):
        if given == "":  # a script's variable that is not set must not end other workloads
            raise MetaflowException(f"{name} is empty: say whose workloads are to be killed.")
    target = parse(obj.flow.name, target_text) if target_text is not None else None
    if target is None:
        _, run_id, user = parse_cli_options(obj.flow.name, run_id, user, my_runs, obj.echo)
        target = Target(run_id) if run_id else None
    if (target and target.run_id.startswith("argo-")) or user == "argo-workflows":
        raise MetaflowException("Runs of Argo Workflows are ended with *argo-workflows terminate*.")
    now = datetime.now(timezone.utc)
    killed: list[Row] = []
    with as_metaflow_error(), closing(KubernetesClient()) as client:
        for backend, workload, wrapped in workloads(client, selector(obj.flow.name, target, user)):
            found = row(workload, backend, now, wrapped=wrapped)
            if not found.is_finished:
                kill(client, backend, workload)
                killed.append(found)
                if not as_json:
                    print(f"{found.kind} {found.name} of step {found.step} (task {found.task_id}) deleted with its pods.")
    if as_json:
        print(json.dumps([asdict(one) for one in killed], indent=2))
    elif not killed:
        obj.echo("No unfinished Kubernetes tasks found.", err=True)


def kill(client: ClusterClient, backend: Backend, workload: Mapping[str, Any]) -> None:
    """Delete it, and leave word of who did for the step process that follows it."""
    metadata, resource = workload["metadata"], resource_of(backend)
    word = {"metadata": {"annotations": {labels.KILLED_BY: get_username() or "an unknown user"}}}
    with suppress(ClusterError):  # a user who may not patch may delete all the same
        client.patch(resource, metadata["namespace"], metadata["name"], word)
    client.delete(
        resource, metadata["namespace"], metadata["name"], propagation="Background", uid=str(metadata.get("uid") or "")
    )
