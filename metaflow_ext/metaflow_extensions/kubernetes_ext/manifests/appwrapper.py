"""AppWrappers (workload.codeflare.dev/v1beta2): a JobSet, a Job or pods in a wrapper that Kueue admits as one, and that starts it again.

Source: project-codeflare/appwrapper v1.2.0, api/v1beta2/appwrapper_types.go.
"""

from __future__ import annotations

from ..errors import InvalidSpec
from ..spec import labels
from ..spec.fault_tolerance import FaultTolerance
from ..spec.launch import LaunchSpec
from .bare_pods import bare_pods, service
from .manifest import Manifest, present
from .pod import metadata

API_VERSION = "workload.codeflare.dev/v1beta2"
MOST_PODS = 8  # sets of pods: Kueue's limit, which the controller's webhook has, too
MOST_TTL_SECONDS = 7 * 24 * 60 * 60  # the controller's ceiling


def appwrapper(spec: LaunchSpec, wrapped: Manifest, api_version: str = API_VERSION) -> Manifest:
    """The workload `wrapped` (a JobSet or a Job) in an AppWrapper of the same name, with every set of pods declared.

    What is for the outermost object alone (Kueue's labels, the time to live) moves to the wrapper.
    """
    body = {key: value for key, value in wrapped["spec"].items() if key != "ttlSecondsAfterFinished"}
    told = present(labels=labels.inherited(spec.labels), annotations=dict(spec.annotations))
    inner = {**wrapped, "metadata": {"name": spec.name, "namespace": spec.namespace, **told}, "spec": body}
    return _around(spec, [{"podSets": _pod_sets(wrapped), "template": inner}], api_version)


def appwrapper_of_pods(spec: LaunchSpec, api_version: str = API_VERSION) -> Manifest:
    """The ranks themselves in an AppWrapper, for clusters without JobSet. InvalidSpec for more than `MOST_PODS`."""
    if spec.world_size > MOST_PODS:
        raise InvalidSpec(
            f"An AppWrapper has at most {MOST_PODS} sets of pods, so without JobSet it holds no gang of {spec.world_size}. "
            "Install JobSet (https://jobset.sigs.k8s.io)."
        )
    pods = [{"podSets": [{"replicas": 1, "path": "template"}], "template": pod} for pod in bare_pods(spec)]
    return _around(spec, [{"template": service(spec)}, *pods], api_version)


def _around(spec: LaunchSpec, components: list[Manifest], api_version: str) -> Manifest:
    top = metadata(spec)
    annotations = {**top.get("annotations", {}), **_fault_tolerance(spec.fault_tolerance or FaultTolerance())}
    if spec.ttl_seconds is not None:
        annotations[f"{labels.APPWRAPPER}successTTLDuration"] = f"{min(spec.ttl_seconds, MOST_TTL_SECONDS)}s"
    return {
        "apiVersion": api_version,
        "kind": "AppWrapper",
        "metadata": {"name": spec.name, "namespace": spec.namespace, **top, "annotations": annotations},
        "spec": {"components": components},
    }


def _pod_sets(wrapped: Manifest) -> list[Manifest]:
    body = wrapped["spec"]
    if wrapped["kind"] == "Job":
        return [{"replicas": body["parallelism"], "path": "template.spec.template"}]
    if wrapped["kind"] == "JobSet":
        return [
            {
                "replicas": one["replicas"] * one["template"]["spec"]["parallelism"],
                "path": f"template.spec.replicatedJobs[{number}].template.spec.template",
            }
            for number, one in enumerate(body["replicatedJobs"])
        ]
    raise InvalidSpec(f"An AppWrapper of ours wraps a JobSet or a Job, not a {wrapped['kind']}.")


def _fault_tolerance(given: FaultTolerance) -> dict[str, str]:
    periods = {
        "retryPausePeriodDuration": given.retry_pause,
        "failureGracePeriodDuration": given.failure_grace,
        "warmupGracePeriodDuration": given.warmup_grace,
        "admissionGracePeriodDuration": given.admission_grace,
        "forcefulDeletionGracePeriodDuration": given.forceful_deletion_grace,
        "deletionOnFailureGracePeriodDuration": given.deletion_on_failure_grace,
    }
    codes = {"terminalExitCodes": given.terminal_exit_codes, "retryableExitCodes": given.retryable_exit_codes}
    found = {
        "retryLimit": str(given.retry_limit),
        **{name: f"{seconds}s" for name, seconds in periods.items() if seconds is not None},
        **{name: ",".join(map(str, numbers)) for name, numbers in codes.items() if numbers},
    }
    return {labels.APPWRAPPER + name: value for name, value in found.items()}
