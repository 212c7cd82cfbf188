"""PodGroups: the object by which a scheduler knows that pods start together or not at all.

Sources: kubernetes-sigs/scheduler-plugins, apis/scheduling/v1alpha1/types.go (PodGroupSpec); k8s.io/api v0.37.2,
scheduling/v1beta1/types.go (PodGroupSpec) and core/v1 PodSchedulingGroup.
"""

from __future__ import annotations

from ..spec import labels
from ..spec.gang import COSCHEDULING, NATIVE, POD_GROUPS
from ..spec.launch import LaunchSpec
from .manifest import Manifest, present

API_VERSIONS = {COSCHEDULING: "scheduling.x-k8s.io/v1alpha1", NATIVE: "scheduling.k8s.io/v1beta1"}


def pod_group(spec: LaunchSpec) -> Manifest | None:
    """The group of all ranks of a workload, under its name; None where there is none."""
    if spec.gang not in POD_GROUPS:
        return None
    return {
        "apiVersion": API_VERSIONS[spec.gang],
        "kind": "PodGroup",
        "metadata": {
            "name": spec.name,
            "namespace": spec.namespace,
            **present(labels=labels.inherited(spec.labels), annotations=dict(spec.annotations)),
        },
        "spec": {"minMember": spec.world_size} if spec.gang == COSCHEDULING else _native(spec),
    }


def _native(spec: LaunchSpec) -> Manifest:
    classes = {group.placement.priority_class for group in spec.groups}
    return present(
        schedulingPolicy={"gang": {"minCount": spec.world_size}},
        disruptionMode={"all": {}},  # a gang that has lost a rank is of no use
        priorityClassName=classes.pop() if len(classes) == 1 else None,
    )


def label_of_pods(spec: LaunchSpec) -> dict[str, str]:
    return {labels.COSCHEDULING_GROUP: spec.name} if spec.gang == COSCHEDULING else {}


def field_of_pods(spec: LaunchSpec) -> Manifest | None:
    """core/v1 PodSchedulingGroup."""
    return {"podGroupName": spec.name} if spec.gang == NATIVE else None
