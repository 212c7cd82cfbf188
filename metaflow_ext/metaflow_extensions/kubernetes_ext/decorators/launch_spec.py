"""From a step's attributes to the description of its workload. Pure: what Metaflow knows comes in as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..spec import environment, labels, names, quantities
from ..spec.command import bash
from ..spec.launch import CONTROL, WORKER, ContainerSpec, Group, LaunchSpec
from ..spec.placement import Placement, Topology
from ..spec.resources import Resources
from ..spec.storage import Storage
from . import container_script, gang_environment, hang_watch, policy_options
from .policy_options import camel_case
from .settings import Settings

# Downward API of every task; core's names, and ours.
POD_FIELDS = {
    "METAFLOW_KUBERNETES_NAMESPACE": "metadata.namespace",
    "METAFLOW_KUBERNETES_POD_NAMESPACE": "metadata.namespace",
    "METAFLOW_KUBERNETES_POD_NAME": "metadata.name",
    "METAFLOW_KUBERNETES_POD_ID": "metadata.uid",
    "METAFLOW_KUBERNETES_SERVICE_ACCOUNT_NAME": "spec.serviceAccountName",
    "METAFLOW_KUBERNETES_NODE_IP": "status.hostIP",
    "METAFLOW_KUBERNETES_NODE_NAME": "spec.nodeName",
    "METAFLOW_KUBERNETES_POD_IP": "status.podIP",
}
WORKER_FIELDS = {container_script.WORKER_INDEX: f"metadata.annotations['{labels.COMPLETION_INDEX}']"}
DEFAULT_TMPFS_SHARE = 2  # of the step's memory


@dataclass(frozen=True, kw_only=True)
class TaskRef:
    """Which task of which run; `num_parallel` is None for a plain step."""

    flow: str
    run_id: str
    step: str
    task_id: str
    attempt: int
    user: str
    num_parallel: int | None = None
    project: Mapping[str, str] = field(default_factory=dict)  # annotations of @project
    client: str = ""  # labels.CLIENT


@dataclass(frozen=True, kw_only=True)
class TaskCode:
    """What runs in the containers: the script's parts, and variables that the task needs (they win over the user's)."""

    script: container_script.TaskScript
    environment: Mapping[str, str]
    user_environment: Mapping[str, str] = field(default_factory=dict)


def launch_spec(
    task: TaskRef,
    options: Mapping[str, Any],
    code: TaskCode,
    settings: Settings,
    submission: str,
    name: str | None = None,
    restart: int = 0,
) -> LaunchSpec:
    """`options` are the attributes of @kubernetes in the forms of the command line (decorators.attributes). `restart` counts
    the workloads of this attempt before this one."""
    identity = (task.run_id, task.task_id, str(task.attempt), *([f"restart {restart}"] if restart else []))
    name = name or names.workload_name(task.flow, task.step, identity)
    return LaunchSpec(
        name=name,
        namespace=options["namespace"],
        groups=groups(name, task, options, code, settings, restart),
        labels={**_labels(task, options), **_queue_labels(options)},
        annotations={**_annotations(task, options, submission), **({labels.RESTART: str(restart)} if restart else {})},
        service_account=options.get("service_account") or None,
        # Tasks don't talk to Kubernetes. Who names a service account may want its token; the default one's is a risk for nothing.
        automount_service_account_token=None if options.get("service_account") else False,
        image_pull_secrets=tuple(options.get("image_pull_secrets") or ()),
        deadline_seconds=int(float(options["run_time_limit"])) if options.get("run_time_limit") else None,
        ttl_seconds=settings.ttl_seconds,
        grace_seconds=quantities.whole(_first(options.get("grace_period"), settings.grace_seconds), "grace_period"),
        fault_tolerance=policy_options.fault_tolerance(options.get("fault_tolerance")),
        gang=options.get("gang") or None,
    )


def groups(
    name: str, task: TaskRef, options: Mapping[str, Any], code: TaskCode, settings: Settings, restart: int = 0
) -> tuple[Group, ...]:
    """One group for a plain step; control and, from two ranks on, worker for a gang."""
    port = None if options.get("port") in (None, "") else quantities.whole(options["port"], "port", 1)

    def group(role: str, replicas: int, script: str, *layers: Sequence[environment.EnvVar]) -> Group:
        return Group(
            name=role,
            replicas=replicas,
            container=_container(task, options, settings, code, name, script, port, layers, restart),
            placement=_placement(options),
            claims=policy_options.resource_claims(options.get("resource_claims")),
            storage=_storage(options),
            overlays=policy_options.overlays(options.get("pod_overlay")),
        )

    if task.num_parallel is None:
        return (group("task", 1, container_script.plain_step(code.script)),)
    # By label, not by name: then the manifest can also be posted under another one.
    jobset = environment.fields({"METAFLOW_KUBERNETES_JOBSET_NAME": f"metadata.labels['{labels.JOBSET_NAME}']"})
    address = environment.EnvVar(
        "MF_MASTER_ADDR", template="$(METAFLOW_KUBERNETES_JOBSET_NAME)-control-0-0.$(METAFLOW_KUBERNETES_JOBSET_NAME)"
    )
    gang = (*jobset, address, *environment.literals(gang_environment.manifest_variables(task.task_id, task.num_parallel, port)))
    jobset_attempt = environment.fields({"JOBSET_RESTART_ATTEMPT": f"metadata.annotations['{labels.JOBSET_RESTART_ATTEMPT}']"})
    control = environment.literals({"MF_CONTROL_INDEX": "0", "UBF_CONTEXT": "ubf_control"})
    worker = (*environment.fields(WORKER_FIELDS), *environment.literals({"UBF_CONTEXT": "ubf_task"}))
    found = [group(CONTROL, 1, container_script.control(code.script), gang, jobset_attempt, control)]
    if task.num_parallel > 1:
        script = container_script.worker(code.script)
        found.append(group(WORKER, task.num_parallel - 1, script, gang, jobset_attempt, worker))
    return tuple(found)


def _container(
    task: TaskRef,
    options: Mapping[str, Any],
    settings: Settings,
    code: TaskCode,
    name: str,
    script: str,
    port: int | None,
    layers: Sequence[Sequence[environment.EnvVar]],
    restart: int,
) -> ContainerSpec:
    secrets = options.get("secrets") or ()
    own = {
        gang_environment.CONTRACT: gang_environment.CONTRACT_VERSION,
        "METAFLOW_KUBERNETES_WORKLOAD": "1",
        "METAFLOW_KUBERNETES_WORKLOAD_NAME": name,
        **({"METAFLOW_KUBERNETES_RESTART": str(restart)} if restart else {}),
        "METAFLOW_RUNTIME_ENVIRONMENT": "kubernetes",
        "METAFLOW_RUN_ID": task.run_id,
        hang_watch.LIMIT: str(stall_timeout(options, settings)),
        "METAFLOW_USER": task.user,
    }
    if _tmpfs_path(options) and options.get("tmpfs_tempdir"):
        own["METAFLOW_TEMPDIR"] = str(options["tmpfs_path"])
    return ContainerSpec(
        name=names.slug(task.step, names.MAX_LABEL) or "step",
        image=options["image"],
        command=bash(script),
        env=environment.merged(
            environment.literals(settings.task_environment),
            environment.literals(code.user_environment),
            environment.literals(own),
            environment.literals(code.environment),
            environment.fields(POD_FIELDS),
            *layers,
        ),
        env_from_secrets=tuple(dict.fromkeys((*([secrets] if isinstance(secrets, str) else secrets), *settings.secrets))),
        resources=_resources(options),
        ports=() if port is None else (port,),
        image_pull_policy=options.get("image_pull_policy") or None,
        security_context=camel_case(options.get("security_context") or {}) or None,
    )


def stall_timeout(options: Mapping[str, Any], settings: Settings) -> int:
    return quantities.whole(_first(options.get("stall_timeout"), settings.stall_timeout), "stall_timeout")


def _resources(options: Mapping[str, Any]) -> Resources:
    gpu = options.get("gpu")
    return Resources(
        cpu=quantities.count(options["cpu"], "cpu"),
        memory=quantities.megabytes(options["memory"], "memory"),
        disk=quantities.megabytes(options["disk"], "disk"),
        gpu=None if gpu in (None, "") else quantities.whole(gpu, "gpu"),
        gpu_vendor=(options.get("gpu_vendor") or "nvidia").lower(),
        extended={key: str(value) for key, value in (options.get("extended_resources") or {}).items()},
        limits_equal_requests=str(options.get("qos") or "").lower() == "guaranteed",
    )


def _queue_labels(options: Mapping[str, Any]) -> dict[str, str]:
    """Kueue's, which only it reads."""
    for name in ("queue", "workload_priority"):
        if options.get(name):
            names.require_dns_subdomain(options[name], name)
    found = {labels.KUEUE_QUEUE: options.get("queue"), labels.KUEUE_PRIORITY_CLASS: options.get("workload_priority")}
    return {key: name for key, name in found.items() if name}


def _placement(options: Mapping[str, Any]) -> Placement:
    topology = options.get("topology")
    return Placement(
        node_selector={key: str(value) for key, value in (options.get("node_selector") or {}).items()},
        tolerations=tuple(camel_case(toleration) for toleration in options.get("tolerations") or ()),
        priority_class=options.get("priority_class") or None,
        scheduler=options.get("scheduler") or None,
        affinity=policy_options.affinity(options.get("affinity"), options.get("instance_type")),
        runtime_class=options.get("runtime_class") or None,
        topology=Topology.parse(topology) if topology else None,
    )


def _storage(options: Mapping[str, Any]) -> Storage:
    shared_memory, tmpfs_size = options.get("shared_memory"), options.get("tmpfs_size")
    path = _tmpfs_path(options)
    size = None
    if path:
        size = quantities.megabytes(tmpfs_size or _half(options["memory"]), "tmpfs_size", "Mi")
    return Storage(
        shared_memory=quantities.megabytes(shared_memory, "shared_memory", "Mi") if shared_memory else None,
        tmpfs_path=path,
        tmpfs_size=size,
        claims=dict(options.get("persistent_volume_claims") or {}),
    )


def _tmpfs_path(options: Mapping[str, Any]) -> str | None:
    """Asking for a size is asking for it."""
    return str(options["tmpfs_path"]) if options.get("use_tmpfs") or options.get("tmpfs_size") else None


def _half(memory: Any) -> str:
    half = quantities.amount(quantities.megabytes(memory, "memory")) / DEFAULT_TMPFS_SHARE
    return f"{max(int(half) // 2**20, 1)}Mi"


def _labels(task: TaskRef, options: Mapping[str, Any]) -> dict[str, str]:
    ours = {
        labels.FLOW: task.flow,
        labels.RUN_ID: task.run_id,
        labels.STEP: task.step,
        labels.TASK_ID: task.task_id,
        labels.ATTEMPT: str(task.attempt),
        labels.USER: task.user,
        labels.APP_NAME: "metaflow-task",
        labels.APP_PART_OF: "metaflow",
        labels.APP_INSTANCE: f"{task.flow}-{task.run_id}",
        labels.APP_COMPONENT: task.step,
        labels.APP_MANAGED_BY: labels.MANAGED_BY,
    }
    users = {key: "" if value is None else str(value) for key, value in (options.get("labels") or {}).items()}
    return {**users, **{key: names.label_value(value) for key, value in ours.items()}}


def _annotations(task: TaskRef, options: Mapping[str, Any], submission: str) -> dict[str, str]:
    """The full values of the labels, and core's annotations, which its `kubernetes list` and other tools read."""
    full = {"flow": task.flow, "run-id": task.run_id, "step": task.step, "task-id": task.task_id, "user": task.user}
    core = {
        "metaflow/flow_name": task.flow,
        "metaflow/run_id": task.run_id,
        "metaflow/step_name": task.step,
        "metaflow/control-task-id" if task.num_parallel else "metaflow/task_id": task.task_id,
        "metaflow/attempt": str(task.attempt),
        "metaflow/user": task.user,
    }
    users = {key: str(value) for key, value in (options.get("annotations") or {}).items()}
    ours = {labels.PREFIX + key: value for key, value in full.items()}
    ours.update(
        {labels.ATTEMPT: str(task.attempt), labels.SUBMISSION: submission, labels.WORLD_SIZE: str(task.num_parallel or 1)}
    )
    if task.client:
        ours[labels.CLIENT] = task.client
    return {**users, **core, **{key: str(value) for key, value in task.project.items()}, **ours}


def _first(*values: Any) -> Any:
    return next((value for value in values if value not in (None, "")), None)
