"""Before a run: can its steps be workloads, is there a cluster, and does it know what this flow needs? Said before anything
is uploaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..backends.appwrapper import AppWrapperBackend
from ..backends.base import Backend, Wrapping
from ..cluster.protocol import JOBS, ClusterClient
from ..errors import InvalidSpec
from ..runtime.closer_look import kueue_resource
from ..runtime.pod_groups import require_served
from ..runtime.resources import resource_of
from ..spec import labels
from ..spec.gang import POD_GROUPS
from ..spec.launch import LaunchSpec
from .backend_choice import backend_of
from .container_script import TaskScript
from .host_errors import as_metaflow_error
from .launch_spec import TaskCode, TaskRef, launch_spec
from .settings import Settings, jobset_resource


@dataclass(frozen=True)
class StandIn:
    """A step with the workload that it would be: with stand-ins for run, task, user and code, of two ranks where it is a gang."""

    step: str
    deco: Any  # its @kubernetes
    task: TaskRef
    spec: LaunchSpec
    backend: Backend

    @property
    def needs_jobset(self) -> bool:
        made = self.backend.wrapped if isinstance(self.backend, Wrapping) else self.backend
        return made.kind == "JobSet"

    @property
    def queue(self) -> str:
        return self.spec.labels.get(labels.KUEUE_QUEUE, "")


def check_steps(flow: str, graph: Any) -> list[StandIn]:
    """The steps for Kubernetes. Raises one clear Metaflow error for the first that can't be a workload."""
    settings, found = Settings(), []
    for node in graph:
        for deco in node.decorators:
            if deco.name == "kubernetes":
                with as_metaflow_error(f"Step *{node.name}*: "):
                    ranks = 2 if getattr(deco, "is_parallel", False) else None
                    found.append(stand_in(flow, node.name, deco, ranks, settings))
    return found


def stand_in(
    flow: str, step: str, deco: Any, num_parallel: int | None, settings: Settings, others: Mapping[str, Any] | None = None
) -> StandIn:
    """`others` are attributes in place of those that the step has. Raises InvalidSpec, or Metaflow's error for an attribute."""
    task = TaskRef(flow=flow, run_id="0", step=step, task_id="0", attempt=0, user="user", num_parallel=num_parallel)
    options = {**deco.launch_options(), **(others or {})}
    spec = launch_spec(task, options, TaskCode(script=stand_in_script(), environment={}), settings, submission="0")
    return StandIn(step, deco, task, spec, backend_of(num_parallel, options, settings))


def stand_in_script() -> TaskScript:
    """One that runs nothing."""
    return TaskScript(
        pathspec="flow/run/step/task", attempt=0, datastore="", datastore_root="", init_commands=(), bootstrap_commands=(),
        step_words=("step",),
    )  # fmt: skip


def check_cluster(steps: Sequence[StandIn]) -> None:
    """Raise one clear Metaflow error when the cluster can't be reached or doesn't serve what a step needs."""
    from ..cluster.client import KubernetesClient

    with as_metaflow_error():
        client = KubernetesClient(patience=5.0)
        try:
            require_apis(client, steps)
        finally:
            client.close()


def require_apis(client: ClusterClient, steps: Sequence[StandIn]) -> None:
    """Raises InvalidSpec for the first API that is missing; ClusterError where nobody answers."""
    jobset = jobset_resource()
    gangs = [one.step for one in steps if one.needs_jobset]
    resource = jobset if gangs else JOBS
    if not client.serves(resource):
        raise InvalidSpec(not_served(resource, gangs))
    require_appwrapper(client, [one.step for one in steps if one.backend.kind == "AppWrapper"])
    for gang in sorted({one.spec.gang for one in steps if one.spec.gang in POD_GROUPS and one.spec.world_size > 1}, key=str):
        require_served(client, str(gang))
    require_kueue(client, [one.step for one in steps if one.queue or _is_placed_by_kueue(one.spec)])


def require_appwrapper(client: ClusterClient, steps: Sequence[str]) -> None:
    resource = resource_of(AppWrapperBackend())
    if steps and not client.serves(resource):
        raise InvalidSpec(
            f"The cluster does not serve {resource.plural}.{resource.group}/{resource.version}, which {_steps(steps, 'ask')} for: "
            "AppWrapper is not installed there. Install it (https://project-codeflare.github.io/appwrapper), or leave "
            "`backend` out."
        )


def require_kueue(client: ClusterClient, steps: Sequence[str]) -> None:
    """A label that nobody reads would let a step run past its queue."""
    if steps and kueue_resource(client, "localqueues", "LocalQueue") is None:
        raise InvalidSpec(
            f"The cluster does not serve Kueue (kueue.x-k8s.io), whose queue or topology {_steps(steps, 'ask')} for. "
            "Install it (https://kueue.sigs.k8s.io), or leave `queue` and `topology` out."
        )


def _is_placed_by_kueue(spec: LaunchSpec) -> bool:
    return any(group.placement.topology for group in spec.groups)


def _steps(names: Sequence[str], verb: str) -> str:
    several = len(names) > 1
    return f"step{'s' if several else ''} *{', '.join(names)}* {verb}{'' if several else 's'}"


def not_served(resource: Any, gangs: list[str]) -> str:
    return (
        f"The cluster does not serve {resource.plural}.{resource.group}/{resource.version}, which "
        f"{_steps(gangs or ['?'], 'need')}: JobSet is not "
        "installed there, or in another version. Install it (https://jobset.sigs.k8s.io), or set "
        "METAFLOW_KUBERNETES_JOBSET_GROUP and METAFLOW_KUBERNETES_JOBSET_VERSION to what is served."
    )
