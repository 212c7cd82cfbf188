"""The defaults of the built-in kinds, as the API server's decoder fills them in.

Every function changes the given object, which is the caller's own copy. Defaults that need other objects
(service accounts, priority classes) are admission's business.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any

Object = dict[str, Any]
DEFAULT_MODE = 420
MAX_INT32 = 2**31 - 1


def apply_defaults(resource: str, obj: Object) -> None:
    """Fill in the defaults of one object of a built-in resource."""
    filler = _FILLERS.get(resource)
    if filler:
        filler(obj)


def pod_spec_defaults(spec: Object) -> None:
    """What a pod template and a pod have in common."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if spec.get("serviceAccountName") or spec.get("serviceAccount"):
        name = spec.get("serviceAccountName") or spec["serviceAccount"]
        spec["serviceAccountName"] = spec["serviceAccount"] = name
    for container in containers_of(spec):
        _container_defaults(container)
    for volume in spec.get("volumes") or ():
        _volume_defaults(volume)


def containers_of(spec: Object) -> Iterator[Object]:
    """All containers of a pod, init and ephemeral ones too."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(key) or ()


def _container_defaults(container: Object) -> None:
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container and container.get("image"):
        container["imagePullPolicy"] = "Always" if _is_latest(container["image"]) else "IfNotPresent"
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(key) is not None:
            _probe_defaults(container[key])


def _is_latest(image: str) -> bool:
    if "@" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in ("", "latest")


def _probe_defaults(probe: Object) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(key):
            probe[key] = value
    if probe.get("httpGet") is not None:
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")


def _volume_defaults(volume: Object) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for key in ("secret", "configMap", "downwardAPI", "projected"):
        source = volume.get(key)
        if source is not None:
            source.setdefault("defaultMode", DEFAULT_MODE)
            _downward_defaults(source.get("items") or () if key == "downwardAPI" else ())
    for source in (volume.get("projected") or {}).get("sources") or ():
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        _downward_defaults((source.get("downwardAPI") or {}).get("items") or ())
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")


def _downward_defaults(items: Any) -> None:
    for item in items:
        if item.get("fieldRef") is not None:
            item["fieldRef"].setdefault("apiVersion", "v1")


def _pod(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    pod_spec_defaults(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in containers_of(spec):
        limits = container["resources"].get("limits")
        if limits:
            container["resources"]["requests"] = {**limits, **(container["resources"].get("requests") or {})}
    pod.setdefault("status", {})


def _job(job: Object) -> None:
    spec = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", MAX_INT32 if spec.get("backoffLimitPerIndex") is not None else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    policy = spec.get("podFailurePolicy")
    spec.setdefault("podReplacementPolicy", "Failed" if policy else "TerminatingOrFailed")
    for rule in (policy or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern.setdefault("status", "True")
    template = spec.setdefault("template", {})
    pod_spec_defaults(template.setdefault("spec", {}))
    template.setdefault("metadata", {})
    job.setdefault("status", {})


def _service(service: Object) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    service.setdefault("status", {"loadBalancer": {}})


def _secret(secret: Object) -> None:
    secret.setdefault("type", "Opaque")
    for key, text in (secret.pop("stringData", None) or {}).items():
        secret.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


def _namespace(namespace: Object) -> None:
    name = namespace["metadata"].get("name")
    spec = namespace.setdefault("spec", {})
    spec["finalizers"] = spec.get("finalizers") or ["kubernetes"]
    if not (namespace.get("status") or {}).get("phase"):
        namespace["status"] = {**(namespace.get("status") or {}), "phase": "Active"}
    if name:
        labels = namespace["metadata"].get("labels") or {}
        namespace["metadata"]["labels"] = {**labels, "kubernetes.io/metadata.name": name}


def _claim(claim: Object) -> None:
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    if not (claim.get("status") or {}).get("phase"):
        claim["status"] = {**(claim.get("status") or {}), "phase": "Pending"}


def _event(event: Object) -> None:
    for key in ("eventTime", "firstTimestamp", "lastTimestamp"):
        event.setdefault(key, None)
    event.setdefault("source", {})
    event.setdefault("reportingComponent", "")
    event.setdefault("reportingInstance", "")


def _with(path: str, value: Any) -> Callable[[Object], None]:
    def fill(obj: Object) -> None:
        if not obj.get(path):
            obj[path] = dict(value) if isinstance(value, dict) else value

    return fill


def _crd(crd: Object) -> None:
    names = crd.setdefault("spec", {}).setdefault("names", {})
    kind = names.get("kind", "")
    names.setdefault("singular", kind.lower())
    names.setdefault("listKind", f"{kind}List")
    crd["spec"].setdefault("conversion", {"strategy": "None"})
    crd.setdefault("status", {})


_FILLERS: dict[str, Callable[[Object], None]] = {
    "pods": _pod,
    "jobs.batch": _job,
    "services": _service,
    "secrets": _secret,
    "namespaces": _namespace,
    "persistentvolumeclaims": _claim,
    "events": _event,
    "priorityclasses.scheduling.k8s.io": _with("preemptionPolicy", "PreemptLowerPriority"),
    "customresourcedefinitions.apiextensions.k8s.io": _crd,
    "leases.coordination.k8s.io": _with("spec", {}),
    "nodes": _with("spec", {}),
    "resourcequotas": _with("spec", {}),
}


def quality_of_service(spec: Object) -> str:
    """`status.qosClass` of a pod, from the cpu and memory of its containers."""
    requested = limited = False
    guaranteed = True
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        resources = container.get("resources") or {}
        limits = {k: v for k, v in (resources.get("limits") or {}).items() if k in ("cpu", "memory") and _some(v)}
        requests = {k: v for k, v in (resources.get("requests") or {}).items() if k in ("cpu", "memory") and _some(v)}
        requested, limited = requested or bool(requests), limited or bool(limits)
        guaranteed = guaranteed and len(limits) == 2 and (requests or limits) == limits
    if not requested and not limited:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _some(amount: Any) -> bool:
    return not re.fullmatch(r"0+[A-Za-z]*", str(amount))
