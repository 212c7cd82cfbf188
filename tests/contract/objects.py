"""Objects that no controller touches, for what is about the API alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LAYER = "contract.example.com/layer"


def job(name: str, labels: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """A Job that is managed by nobody, so that it stays as it is written."""
    containers = [{"name": "main", "image": "python:3.11", "command": ["true"]}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": dict(labels or {}), **metadata},
        "spec": {
            "managedBy": "contract.example.com/nobody",
            "template": {"spec": {"restartPolicy": "Never", "containers": containers}},
        },
    }


def jobset(name: str, groups: tuple[str, ...] = ("control", "worker"), **spec: Any) -> dict[str, Any]:
    """A JobSet of suspended one-pod Jobs."""
    template = {"spec": {"completions": 1, "parallelism": 1, "template": job("x")["spec"]["template"]}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {
            "suspend": True,
            "replicatedJobs": [{"name": group, "replicas": 1, "template": template} for group in groups],
            **spec,
        },
    }
