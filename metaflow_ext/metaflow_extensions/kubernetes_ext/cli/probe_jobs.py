"""The Jobs of `kubernetes check --probe`: a step's own pod with another command, so that whatever keeps tasks from running keeps
the probe from running, too."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from metaflow.package import MetaflowPackage
from metaflow.util import get_username

from ..backends.base import Manifest
from ..backends.job import JobBackend
from ..decorators import probe_script
from ..decorators.launch_spec import TaskCode, TaskRef, launch_spec
from ..decorators.package_commands import init_commands
from ..decorators.preflight import stand_in_script
from ..decorators.settings import Settings
from ..runtime.process import this_process
from ..spec import labels
from ..spec.command import bash
from ..spec.launch import LaunchSpec
from ..spec.names import workload_name
from .task_code import Package, shared_files_environment, user_environment

RUN = "check"  # stands where a run id does: `kubernetes list --run-id check` and `kubernetes kill check` find probes
_TTL_SECONDS, _GRACE_SECONDS = 60, 1


@dataclass(frozen=True, kw_only=True)
class ProbeJob:
    """One probe, for all steps whose pods are alike."""

    steps: tuple[str, ...]
    queue: str
    manifest: Manifest


def code_package(obj: Any) -> Package:
    """The flow's code in the datastore, as a run puts it there. Whatever the datastore raises."""
    made = MetaflowPackage(
        obj.flow, obj.environment, obj.echo, suffixes=obj.package_suffixes, flow_datastore=obj.flow_datastore
    )
    return Package(metadata=made.package_metadata, sha=made.package_sha(), url=made.package_url())


def jobs(obj: Any, steps: Sequence[tuple[str, Any, str]], settings: Settings, package: Package, limit: float) -> list[ProbeJob]:
    """`steps` are (name, @kubernetes, queue). Raises InvalidSpec."""
    alike: list[tuple[LaunchSpec, list[str], str]] = []
    for step, deco, queue in steps:
        spec = _spec(obj, obj.graph[step].decorators, deco, settings, package, limit)
        known = next((names for other, names, _ in alike if other == spec), None)
        if known is None:
            alike.append((spec, [step], queue))
        else:
            known.append(step)
    return [
        ProbeJob(steps=tuple(names), queue=queue, manifest=JobBackend().build(_of_its_own(spec)))
        for spec, names, queue in alike
    ]


def _of_its_own(spec: LaunchSpec) -> LaunchSpec:
    token = uuid.uuid4().hex
    annotations = {**spec.annotations, labels.SUBMISSION: token}
    return replace(spec, name=workload_name("", RUN, (token,)), annotations=annotations)


def _spec(obj: Any, decorators: Sequence[Any], deco: Any, settings: Settings, package: Package, limit: float) -> LaunchSpec:
    datastore, root = obj.flow_datastore.TYPE, obj.flow_datastore.datastore_root
    task = TaskRef(
        flow=obj.flow.name, run_id=RUN, step=RUN, task_id="probe", attempt=0, user=get_username() or "unknown",
        client=json.dumps(this_process().as_json()),
    )  # fmt: skip
    code = TaskCode(
        script=stand_in_script(),
        environment={
            probe_script.DATASTORE: datastore,
            probe_script.DATASTORE_ROOT: root,
            probe_script.PATH: f"{obj.flow.name}/kubernetes-check",
            **(shared_files_environment(root) if datastore == "local" else {}),
        },
        user_environment=user_environment(decorators),
    )
    spec = launch_spec(task, deco.launch_options(), code, settings, submission="", name=RUN)
    commands = init_commands(obj.environment, package.url, package.metadata, datastore)
    group = spec.groups[0]
    container = replace(group.container, command=bash(probe_script.text(commands)))
    return replace(
        spec,
        groups=(replace(group, container=container),),
        deadline_seconds=int(limit) + 60,  # should this process be killed before it can delete the Job
        ttl_seconds=_TTL_SECONDS,
        grace_seconds=_GRACE_SECONDS,
    )
