"""AppWrappers of the Multi-Cluster App Dispatcher (MCAD; v1beta1): one pod per rank, dispatched when all that they ask for fits.

Source: project-codeflare/multi-cluster-app-dispatcher, pkg/apis/controller/v1beta1/{appwrapper,schedulingspec}.go and
pkg/controller/queuejob/queuejob_controller_ex.go.
"""

from __future__ import annotations

from ..spec import labels
from ..spec.gang import COSCHEDULING
from ..spec.launch import Group, LaunchSpec
from .bare_pods import bare_pods, service
from .manifest import Manifest, present
from .pod import metadata
from .pod_group import API_VERSIONS

API_VERSION = "workload.codeflare.dev/v1beta1"
FIRST_WAIT_SECONDS = 300  # MCAD's default: how long its pods may take to run before all are taken back; then twice that, ...


def mcad_appwrapper(spec: LaunchSpec, api_version: str = API_VERSION) -> Manifest:
    """The workload as GenericItems: PodGroups where the coscheduling plugin is to place them, the Service, a pod per rank.

    Left out on purpose: completionstatus (MCAD would call the wrapper complete once no pod runs, also when one has failed).
    """
    top = metadata(spec)
    annotations = {**top.get("annotations", {}), **_retries(spec)}
    return {
        "apiVersion": api_version,
        "kind": "AppWrapper",
        "metadata": {"name": spec.name, "namespace": spec.namespace, **top, **present(annotations=annotations)},
        "spec": present(
            priority=spec.priority, schedulingSpec=_scheduling(spec), resources={"GenericItems": _generic_items(spec)}
        ),
    }


def _retries(spec: LaunchSpec) -> dict[str, str]:
    """How often it may fail: said as in v1beta2, since `maxNumRequeuings` is also for pods that don't get to run."""
    return {f"{labels.APPWRAPPER}retryLimit": str(_limit(spec))} if _limit(spec) else {}


def _limit(spec: LaunchSpec) -> int:
    return spec.fault_tolerance.retry_limit if spec.fault_tolerance else 0


def _scheduling(spec: LaunchSpec) -> Manifest:
    """Nothing where nothing is to be tried again: MCAD takes a limit of 0 for none."""
    given, most = spec.fault_tolerance, _limit(spec) or spec.requeues
    if not most:
        return {}
    requeuing = present(
        timeInSeconds=(given.retry_pause if given else None) or FIRST_WAIT_SECONDS,
        maxTimeInSeconds=0,
        growthType="exponential",
        maxNumRequeuings=most,
        forcefulDeletionAfterSeconds=given.forceful_deletion_grace if given else None,
    )
    return {"minAvailable": spec.world_size, "requeuing": requeuing}


def _generic_items(spec: LaunchSpec) -> list[Manifest]:
    pods = bare_pods(spec)
    if spec.gang == COSCHEDULING:
        groups = [_pod_group(spec, group) for group in spec.groups]
        for pod in pods:
            told = pod["metadata"]["labels"]
            told[labels.COSCHEDULING_GROUP] = _group_name(spec, told[labels.GROUP])
    else:
        groups = []
    others = [{"replicas": 1, "generictemplate": one} for one in (*groups, service(spec))]
    return others + [{"replicas": 1, "generictemplate": pod, "custompodresources": _resources(pod)} for pod in pods]


def _group_name(spec: LaunchSpec, role: str) -> str:
    return f"{spec.name}-{role}"


def _pod_group(spec: LaunchSpec, group: Group) -> Manifest:
    """One for each role: that all roles start together is MCAD's own business."""
    return {
        "apiVersion": API_VERSIONS[COSCHEDULING],
        "kind": "PodGroup",
        "metadata": {
            "name": _group_name(spec, group.name),
            "namespace": spec.namespace,
            "labels": {labels.WORKLOAD: spec.name},
        },
        "spec": {"minMember": group.replicas},
    }


def _resources(pod: Manifest) -> list[Manifest]:
    """What MCAD counts, which adds them up: an entry for each container."""
    asked = [container.get("resources", {}) for container in pod["spec"]["containers"]]
    return [{"replicas": 1, "requests": one.get("requests", {}), **present(limits=one.get("limits"))} for one in asked]
