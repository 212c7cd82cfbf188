"""What a task tells Metaflow's metadata about where it runs: core's keys, and ours."""

from __future__ import annotations

import os
from typing import Any

from metaflow.metadata_provider import MetaDatum

# Core's keys and the variables (downward API) that hold their values.
POD_FIELDS = {
    "kubernetes-pod-name": "METAFLOW_KUBERNETES_POD_NAME",
    "kubernetes-pod-namespace": "METAFLOW_KUBERNETES_POD_NAMESPACE",
    "kubernetes-pod-id": "METAFLOW_KUBERNETES_POD_ID",
    "kubernetes-pod-service-account-name": "METAFLOW_KUBERNETES_SERVICE_ACCOUNT_NAME",
    "kubernetes-node-ip": "METAFLOW_KUBERNETES_NODE_IP",
    "kubernetes-jobset-name": "METAFLOW_KUBERNETES_JOBSET_NAME",
    "kubernetes-node-name": "METAFLOW_KUBERNETES_NODE_NAME",
    "kubernetes-workload-name": "METAFLOW_KUBERNETES_WORKLOAD_NAME",
    "kubernetes-restart": "METAFLOW_KUBERNETES_RESTART",
}

FAILURE = "kubernetes-failure"  # control's metadata: why an attempt failed, as JSON (status.record)


def of_pod() -> dict[str, str]:
    return {key: os.environ[name] for key, name in POD_FIELDS.items() if os.environ.get(name)}


def entries(values: dict[str, Any], attempt: int) -> list[MetaDatum]:
    """Metadata entries of one attempt; None leaves a value out."""
    return [
        MetaDatum(field=key, value=value, type=key, tags=[f"attempt_id:{attempt}"])
        for key, value in values.items()
        if value is not None
    ]
