"""The one pod template of all kinds of workload.

Every literal reaches the program as it is in the spec: Kubernetes' own `$(VAR)` expansion is escaped here and nowhere else.
"""

from __future__ import annotations

import re

from ..spec import labels
from ..spec.claims import ResourceClaim
from ..spec.environment import EnvVar
from ..spec.launch import Group, LaunchSpec
from ..spec.overlay import laid_over
from ..spec.resources import Resources
from .manifest import Manifest, present
from .pod_group import field_of_pods, label_of_pods
from .volumes import volume_mounts, volumes

# What the kubelet's expansion would change: "$$", "$(" and, in releases that read bytes, "$" before a non-ASCII character.
_EXPANDED = re.compile(r"\$\$+|\$(?=\(|[^\x00-\x7f])")


def escaped(text: str) -> str:
    """`text` so that the kubelet's expansion of `$(VAR)` in env, command and args gives back `text` itself.

    Source: k8s.io/kubernetes/third_party/forked/golang/expansion, where "$$" stands for "$".
    """
    return _EXPANDED.sub(lambda match: match.group() * 2, text)


def metadata(spec: LaunchSpec, group: Group | None = None) -> Manifest:
    """Labels and annotations: of the top object, or of the Job and the pods of `group` (without `labels.TOP_OBJECT_ONLY`)."""
    if group is None:
        return present(labels=dict(spec.labels), annotations=dict(spec.annotations))
    return present(
        labels={**labels.inherited(spec.labels), **group.labels}, annotations={**spec.annotations, **group.annotations}
    )


def pod_template(spec: LaunchSpec, group: Group) -> Manifest:
    """A core/v1 PodTemplateSpec: the pod of every rank of `group`."""
    pod = present(
        restartPolicy="Never",  # a rank that ends has ended: retries are Metaflow's
        terminationGracePeriodSeconds=spec.grace_seconds,
        activeDeadlineSeconds=spec.deadline_seconds,  # on the pod: a Job's deadline deletes its pods, and the evidence
        serviceAccountName=spec.service_account,
        automountServiceAccountToken=spec.automount_service_account_token,
        imagePullSecrets=[{"name": secret} for secret in spec.image_pull_secrets],
        priorityClassName=group.placement.priority_class,
        schedulerName=group.placement.scheduler,
        nodeSelector=dict(group.placement.node_selector),
        tolerations=[dict(toleration) for toleration in group.placement.tolerations],
        affinity=dict(group.placement.affinity),
        schedulingGroup=field_of_pods(spec),
        runtimeClassName=group.placement.runtime_class,
        resourceClaims=[_claim(claim) for claim in group.claims],
        containers=[_container(group)],
        volumes=volumes(group.storage),
    )
    made: Manifest = {**present(metadata=_pod_metadata(spec, group)), "spec": pod}
    for overlay in group.overlays:
        made = laid_over(made, overlay)
    return made


def _pod_metadata(spec: LaunchSpec, group: Group) -> Manifest:
    """The group's, and what is asked of others by metadata. Kueue is to place control and workers as one (podset groups)."""
    found, topology = metadata(spec, group), group.placement.topology
    further: dict[str, str] = {}
    if topology is not None:
        further[labels.KUEUE_REQUIRED_TOPOLOGY if topology.is_required else labels.KUEUE_PREFERRED_TOPOLOGY] = topology.level
        if _can_be_placed_as_one(spec):
            further[labels.KUEUE_PODSET_GROUP] = spec.name
    if group.networks:
        further[labels.NETWORKS] = ",".join(group.networks)
    no_sidecars = {} if group.has_sidecars else {labels.ISTIO_INJECT: "false"}
    return present(
        labels={**found.get("labels", {}), **label_of_pods(spec), **no_sidecars},
        annotations={**found.get("annotations", {}), **further, **no_sidecars},
    )


def _can_be_placed_as_one(spec: LaunchSpec) -> bool:
    """Kueue's rule: two pod sets, one of them a single pod, with the same topology."""
    sizes = [group.replicas for group in spec.groups]
    return len(sizes) == 2 and 1 in sizes and len({group.placement.topology for group in spec.groups}) == 1


def _claim(claim: ResourceClaim) -> Manifest:
    return present(name=claim.name, resourceClaimTemplateName=claim.template, resourceClaimName=claim.claim)


def _container(group: Group) -> Manifest:
    container = group.container
    return present(
        name=container.name,
        image=container.image,
        imagePullPolicy=container.image_pull_policy,
        command=[escaped(word) for word in container.command],
        env=[_env(variable) for variable in container.env],
        envFrom=[{"secretRef": {"name": secret}} for secret in container.env_from_secrets],
        ports=[{"containerPort": port} for port in container.ports],
        resources={**_resources(container.resources), **_used(group.claims)},
        volumeMounts=volume_mounts(group.storage),
        securityContext={
            **(container.security_context or {}),
            **({"privileged": True} if group.storage.devices else {}),  # no other way to a device of the node
        },
        terminationMessagePolicy="FallbackToLogsOnError",
    )


def _used(claims: tuple[ResourceClaim, ...]) -> Manifest:
    return present(claims=[present(name=claim.name, request=claim.request) for claim in claims])


def _env(variable: EnvVar) -> Manifest:
    if variable.field_path is not None:
        return {"name": variable.name, "valueFrom": {"fieldRef": {"fieldPath": variable.field_path}}}
    if variable.template is not None:
        return {"name": variable.name, "value": variable.template}
    return {"name": variable.name, "value": escaped(variable.value or "")}


def _resources(resources: Resources) -> Manifest:
    """QoS Burstable has requests only, Guaranteed the same limits; devices are limits, extended resources both."""
    sizes = present(cpu=resources.available_cpu, memory=resources.available_memory)
    if resources.disk is not None:
        sizes["ephemeral-storage"] = resources.disk
    extended = {name: str(quantity) for name, quantity in resources.extended.items()}
    gpu = {} if resources.gpu is None else {resources.gpu_resource: str(resources.gpu)}
    limits = sizes if resources.limits_equal_requests else {}
    return present(requests={**sizes, **extended}, limits={**limits, **extended, **gpu})
