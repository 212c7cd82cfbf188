"""Before a run: can its steps be workloads, is there a cluster, and does it know what this flow needs? Said before anything
is uploaded."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidSpec
from .host_errors import as_metaflow_error


def gang_steps(graph: Any) -> list[str]:
    """Names of the steps that will be gangs on Kubernetes."""
    return [
        node.name
        for node in graph
        if any(deco.name == "kubernetes" for deco in node.decorators)
        and any(getattr(deco, "IS_PARALLEL", False) for deco in node.decorators)
    ]


def check_steps(flow: str, graph: Any) -> None:
    """Make every step's workload with stand-ins for what is not known yet, so that what can't be is refused at once."""
    from .settings import Settings

    for node in graph:
        for deco in node.decorators:
            if deco.name == "kubernetes":
                with as_metaflow_error(f"Step *{node.name}*: "):
                    stand_in(flow, node.name, deco, 2 if getattr(deco, "is_parallel", False) else None, Settings())


def stand_in(flow: str, step: str, deco: Any, num_parallel: int | None, settings: Any) -> tuple[Any, Any]:
    """(TaskRef, LaunchSpec) of a step before its run: with stand-ins for run, task, user and code. Raises InvalidSpec."""
    from .launch_spec import TaskCode, TaskRef, launch_spec

    task = TaskRef(flow=flow, run_id="0", step=step, task_id="0", attempt=0, user="user", num_parallel=num_parallel)
    return task, launch_spec(
        task, deco.launch_options(), TaskCode(script=stand_in_script(), environment={}), settings, submission="0"
    )


def stand_in_script() -> Any:
    """A TaskScript that runs nothing."""
    from .container_script import TaskScript

    return TaskScript(
        pathspec="flow/run/step/task", attempt=0, datastore="", datastore_root="", init_commands=(), bootstrap_commands=(),
        step_words=("step",),
    )  # fmt: skip


def check_cluster(graph: Any) -> None:
    """Raise one clear Metaflow error when the cluster can't be reached or doesn't serve JobSet although a gang needs it."""
    from ..cluster.client import KubernetesClient
    from ..cluster.protocol import JOBS
    from .settings import jobset_resource

    with as_metaflow_error():
        client = KubernetesClient(patience=5.0)
        try:
            gangs = gang_steps(graph)
            resource = jobset_resource() if gangs else JOBS
            if not client.serves(resource):
                raise InvalidSpec(not_served(resource, gangs))
            require_kueue(client, queued_steps(graph))
        finally:
            client.close()


def queued_steps(graph: Any) -> list[str]:
    """Names of the steps that ask for a queue."""
    from metaflow.metaflow_config import KUBERNETES_QUEUE

    return [
        node.name
        for node in graph
        for deco in node.decorators
        if deco.name == "kubernetes" and (deco.attributes["queue"] or KUBERNETES_QUEUE)
    ]


def require_kueue(client: Any, steps: list[str]) -> None:
    """A label that nobody reads would let a step run past its queue."""
    from ..runtime.closer_look import kueue_resource

    if steps and kueue_resource(client, "localqueues", "LocalQueue") is None:
        raise InvalidSpec(
            f"The cluster does not serve Kueue (kueue.x-k8s.io), whose queue step{'s' if len(steps) > 1 else ''} "
            f"*{', '.join(steps)}* ask{'' if len(steps) > 1 else 's'} for. Install it (https://kueue.sigs.k8s.io), or leave "
            "`queue` out."
        )


def not_served(resource: Any, gangs: list[str]) -> str:
    return (
        f"The cluster does not serve {resource.plural}.{resource.group}/{resource.version}, which "
        f"step{'s' if len(gangs) > 1 else ''} *{', '.join(gangs) or '?'}* need{'' if len(gangs) > 1 else 's'}: JobSet is not "
        "installed there, or in another version. Install it (https://jobset.sigs.k8s.io), or set "
        "METAFLOW_KUBERNETES_JOBSET_GROUP and METAFLOW_KUBERNETES_JOBSET_VERSION to what is served."
    )
