"""`kubernetes check`: before a run, looks for all that the steps of this flow need of the cluster, and says what is missing."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any

from metaflow.exception import MetaflowException

from ..cluster.client import KubernetesClient
from ..decorators import preflight
from ..decorators.host_errors import as_metaflow_error
from ..decorators.preflight import StandIn
from ..decorators.settings import Settings, read_settings
from ..errors import ClusterError
from ..runtime.clock import RealClock
from ..runtime.probes import Probes
from . import check_cluster, check_rows, probe_jobs
from .check_rows import BROKEN, OK, UNKNOWN, Row
from .interrupts import Interrupted, interruptible

_PATIENCE_SECONDS = 5.0


def check(obj: Any, is_probing: bool, probe_seconds: float, as_json: bool) -> None:
    """Ends the process with code 1 where something is broken."""
    with as_metaflow_error():
        settings = read_settings(obj.flow_datastore.TYPE)
    rows = check_rows.merged(_found(obj, steps_of(obj), settings, probe_seconds if is_probing else None))
    print(json.dumps([asdict(row) for row in rows], indent=2) if as_json else "\n".join(check_rows.lines(rows)))
    broken = sum(row.state == BROKEN for row in rows)
    if broken:
        obj.echo(f"{broken} of {len(rows)} {'is' if broken == 1 else 'are'} broken.", err=True)
        sys.exit(1)


def _found(obj: Any, steps: Sequence[StandIn], settings: Settings, probe_seconds: float | None) -> list[Row]:
    found: list[Row] = []
    warnings: list[str] = []
    try:
        with closing(KubernetesClient(patience=_PATIENCE_SECONDS, on_warning=warnings.append)) as client:
            for row in check_cluster.rows(client, steps, warnings):
                if probe_seconds is None or row.state != UNKNOWN:  # which the probes tell
                    found.append(row)
            found += _of_pods(obj, client, steps, settings, found, probe_seconds)
    except ClusterError as error:
        found.append(Row(check="api server", state=BROKEN, text=str(error)))
    return found


def steps_of(obj: Any) -> list[StandIn]:
    """Raises MetaflowException where there is none."""
    found = preflight.check_steps(obj.flow.name, obj.graph)
    if not found:
        raise MetaflowException(
            "No step of this flow is for Kubernetes. Give it all of them: python flow.py --with kubernetes kubernetes check"
        )
    return found


def _of_pods(
    obj: Any, client: KubernetesClient, steps: Sequence[StandIn], settings: Settings, rows: Sequence[Row], limit: float | None
) -> list[Row]:
    """What only a pod can tell. Steps that would be refused have none."""
    where = f"{obj.flow_datastore.TYPE} at {obj.flow_datastore.datastore_root}"
    if limit is None:
        text = f"Not looked at: images, their Python, nodes, secrets, and the datastore ({where}) as pods see it."
        return [Row(check="pod", state=UNKNOWN, text=text, advice="--probe starts a pod for it.")]
    refused = {name for row in rows if row.state == BROKEN and row.check != "jobset" for name in row.steps}
    wanted = [(step.step, step.deco, step.queue) for step in steps if step.step not in refused]
    try:
        package = probe_jobs.code_package(obj)
    except Exception as error:  # noqa: BLE001 - whatever the datastore's own library raises
        text = f"This machine can't write to the datastore, {where}: {str(error).strip() or type(error).__name__}"
        return [Row(check="datastore", state=BROKEN, text=text)]
    found = [Row(check="datastore", state=OK, text=f"This machine writes to it, {where}.")]
    jobs = probe_jobs.jobs(obj, wanted, settings, package, limit)
    obj.echo(f"Probing with {len(jobs)} pod{'' if len(jobs) == 1 else 's'}, for up to {limit:g} s ...", err=True)
    probes = Probes(client, RealClock(), limit)
    try:
        with interruptible():
            probes.run([job.manifest for job in jobs])
    except Interrupted as signal:
        raise MetaflowException(f"{signal}: the probes are deleted.") from None
    finally:
        for command in probes.left:
            obj.echo(f"A probe could not be deleted. Run: {command}", err=True)
    return found + [
        check_rows.of_probe(outcome, job.queue, job.steps) for job, outcome in zip(jobs, probes.outcomes, strict=True)
    ]
