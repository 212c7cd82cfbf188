"""AppWrappers (workload.codeflare.dev/v1beta2): a JobSet or a Job in a wrapper that Kueue admits as one, and that starts it again.

Source: project-codeflare/appwrapper v1.2.0, api/v1beta2/appwrapper_types.go.
"""

from __future__ import annotations

from ..errors import InvalidSpec
from ..spec import labels
from ..spec.fault_tolerance import FaultTolerance
from ..spec.launch import LaunchSpec
from .manifest import Manifest, present
from .pod import metadata

API_VERSION = "workload.codeflare.dev/v1beta2"
MOST_TTL_SECONDS = 7 * 24 * 60 * 60  # the controller's ceiling


def appwrapper(spec: LaunchSpec, wrapped: Manifest, api_version: str = API_VERSION) -> Manifest:
    """The workload `wrapped` (a JobSet or a Job) in an AppWrapper of the same name, with every set of pods declared.

    What is for the outermost object alone (Kueue's labels, the time to live) moves to the wrapper.
    """
    pod_sets = _pod_sets(wrapped)
    body = {key: value for key, value in wrapped["spec"].items() if key != "ttlSecondsAfterFinished"}
    top = metadata(spec)
    inner = {**wrapped, "metadata": {"name": spec.name, "namespace": spec.namespace, **_inherited(top)}, "spec": body}
    annotations = {**top.get("annotations", {}), **_fault_tolerance(spec.fault_tolerance or FaultTolerance())}
    if spec.ttl_seconds is not None:
        annotations[f"{labels.APPWRAPPER}successTTLDuration"] = f"{min(spec.ttl_seconds, MOST_TTL_SECONDS)}s"
    return {
        "apiVersion": api_version,
        "kind": "AppWrapper",
        "metadata": {"name": spec.name, "namespace": spec.namespace, **top, "annotations": annotations},
        "spec": {"components": [{"podSets": pod_sets, "template": inner}]},
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


def _inherited(top: Manifest) -> Manifest:
    kept = {key: value for key, value in top.get("labels", {}).items() if key not in labels.TOP_OBJECT_ONLY}
    return present(labels=kept, annotations=top.get("annotations"))


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
