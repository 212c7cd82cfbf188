"""`kubernetes list` and `kubernetes kill`: the workloads of this flow, found by their labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
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
from ..runtime.resources import resource_of
from ..spec import labels
from ..status.model import Observation, Phase
from .tables import seconds_since, short_age, table
from .targets import Target, identity, parse, selector, workloads

COLUMNS = ("NAME", "KIND", "RUN", "STEP", "TASK", "ATTEMPT", "RANKS", "STATUS", "AGE")


@dataclass(frozen=True)
class Row:
    """One workload. `age` in seconds."""

    name: str
    kind: str
    namespace: str
    run_id: str
    step: str
    task_id: str
    attempt: str
    ranks: str
    status: str
    age: int

    @property
    def is_finished(self) -> bool:
        return Phase(self.status).is_terminal


def row(workload: Mapping[str, Any], backend: Backend, now: datetime) -> Row:
    metadata = workload.get("metadata") or {}
    whose = identity(workload)
    whose.pop("flow")
    status = backend.reduce(Observation(at=now, workload=workload, was_seen=True))
    return Row(
        name=str(metadata.get("name")),
        kind=backend.kind,
        namespace=str(metadata.get("namespace")),
        status=str(status.phase),
        age=seconds_since(metadata.get("creationTimestamp"), now),
        **whose,
    )


def lines(rows: list[Row]) -> list[str]:
    cells = [(r.name, r.kind, r.run_id, r.step, r.task_id, r.attempt, r.ranks, r.status, short_age(r.age)) for r in rows]
    return table(COLUMNS, cells)


def list_workloads(
    obj: Any,
    run_id: str | None,
    user: str | None,
    my_runs: bool,
    as_json: bool,
    finished: bool = False,
    label_selector: str = "",
    all_runs: bool = False,
) -> None:
    flow = obj.flow.name
    if not all_runs:
        flow, run_id, user = parse_cli_options(flow, run_id, user, my_runs, obj.echo)
    now = datetime.now(timezone.utc)
    wanted = selector(flow, Target(run_id) if run_id else None, user, label_selector)
    with as_metaflow_error():
        client = KubernetesClient()
        try:
            found = [row(workload, backend, now) for backend, workload in workloads(client, wanted)]
        finally:
            client.close()
    shown = [one for one in found if finished or not one.is_finished]
    if as_json:
        print(json.dumps([asdict(one) for one in shown], indent=2))
    elif shown:
        print("\n".join(lines(shown)))
    else:
        obj.echo(f"No {'' if finished else 'unfinished '}Kubernetes tasks found.", err=True)


def kill_workloads(obj: Any, text: str | None, run_id: str | None, user: str | None, my_runs: bool) -> None:
    target = parse(obj.flow.name, text) if text else None
    if target is None:
        _, run_id, user = parse_cli_options(obj.flow.name, run_id, user, my_runs, obj.echo)
        target = Target(run_id) if run_id else None
    if (target and target.run_id.startswith("argo-")) or user == "argo-workflows":
        raise MetaflowException("Runs of Argo Workflows are ended with *argo-workflows terminate*.")
    now = datetime.now(timezone.utc)
    killed = 0
    with as_metaflow_error():
        client = KubernetesClient()
        try:
            for backend, workload in workloads(client, selector(obj.flow.name, target, user)):
                found = row(workload, backend, now)
                if not found.is_finished:
                    kill(client, backend, workload)
                    print(f"{found.kind} {found.name} of step {found.step} (task {found.task_id}) deleted with its pods.")
                    killed += 1
        finally:
            client.close()
    if not killed:
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
