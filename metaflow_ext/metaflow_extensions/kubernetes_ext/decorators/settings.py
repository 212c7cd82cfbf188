"""Metaflow's configuration, read once, as one value. Nothing else of the client reads `metaflow_config`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..cluster.protocol import Resource
from ..spec import quantities


@dataclass(frozen=True, kw_only=True)
class Settings:
    """`task_environment` is what core hands to every task: METAFLOW_* variables, without those that are not set."""

    jobset_group: str = "jobset.x-k8s.io"
    jobset_version: str = "v1alpha2"
    ttl_seconds: int | None = None
    secrets: tuple[str, ...] = ()
    logs: str = "control"
    grace_seconds: int = 30
    launch_timeout: int = 24 * 60 * 60
    image_pull_timeout: int = 20 * 60
    stall_timeout: int = 10 * 60
    max_restarts: int = 3
    task_environment: Mapping[str, str] = field(default_factory=dict)


def read_settings(datastore_type: str) -> Settings:
    """The settings in force for a task with this kind of datastore. Raises InvalidSpec."""
    from metaflow import metaflow_config as config

    ttl = config.KUBERNETES_JOB_TTL_SECONDS_AFTER_FINISHED
    return Settings(
        jobset_group=config.KUBERNETES_JOBSET_GROUP,
        jobset_version=config.KUBERNETES_JOBSET_VERSION,
        ttl_seconds=None if ttl in (None, "") else quantities.whole(ttl, "METAFLOW_KUBERNETES_JOB_TTL_SECONDS_AFTER_FINISHED"),
        secrets=tuple(name.strip() for name in (config.KUBERNETES_SECRETS or "").split(",") if name.strip()),
        logs=config.KUBERNETES_LOGS,
        grace_seconds=quantities.whole(config.KUBERNETES_GRACE_PERIOD_SECONDS, "METAFLOW_KUBERNETES_GRACE_PERIOD_SECONDS"),
        launch_timeout=quantities.whole(config.KUBERNETES_LAUNCH_TIMEOUT, "METAFLOW_KUBERNETES_LAUNCH_TIMEOUT"),
        image_pull_timeout=quantities.whole(config.KUBERNETES_IMAGE_PULL_TIMEOUT, "METAFLOW_KUBERNETES_IMAGE_PULL_TIMEOUT"),
        stall_timeout=quantities.whole(config.KUBERNETES_STALL_TIMEOUT, "METAFLOW_KUBERNETES_STALL_TIMEOUT"),
        max_restarts=quantities.whole(config.KUBERNETES_MAX_RESTARTS, "METAFLOW_KUBERNETES_MAX_RESTARTS"),
        task_environment=task_environment(datastore_type),
    )


# Variables of the task and the settings they carry on, as core's create_job_object does.
_CARRIED = {
    "METAFLOW_SERVICE_URL": "SERVICE_INTERNAL_URL",
    "METAFLOW_DATASTORE_SYSROOT_S3": "DATASTORE_SYSROOT_S3",
    "METAFLOW_DATATOOLS_S3ROOT": "DATATOOLS_S3ROOT",
    "METAFLOW_DEFAULT_METADATA": "DEFAULT_METADATA",
    "METAFLOW_KUBERNETES_FETCH_EC2_METADATA": "KUBERNETES_FETCH_EC2_METADATA",
    "METAFLOW_DEFAULT_SECRETS_BACKEND_TYPE": "DEFAULT_SECRETS_BACKEND_TYPE",
    "METAFLOW_CARD_S3ROOT": "CARD_S3ROOT",
    "METAFLOW_DEFAULT_AWS_CLIENT_PROVIDER": "DEFAULT_AWS_CLIENT_PROVIDER",
    "METAFLOW_DEFAULT_GCP_CLIENT_PROVIDER": "DEFAULT_GCP_CLIENT_PROVIDER",
    "METAFLOW_AWS_SECRETS_MANAGER_DEFAULT_REGION": "AWS_SECRETS_MANAGER_DEFAULT_REGION",
    "METAFLOW_GCP_SECRET_MANAGER_PREFIX": "GCP_SECRET_MANAGER_PREFIX",
    "METAFLOW_AZURE_KEY_VAULT_PREFIX": "AZURE_KEY_VAULT_PREFIX",
    "METAFLOW_S3_ENDPOINT_URL": "S3_ENDPOINT_URL",
    "METAFLOW_S3_SERVER_SIDE_ENCRYPTION": "S3_SERVER_SIDE_ENCRYPTION",
    "METAFLOW_AZURE_STORAGE_BLOB_SERVICE_ENDPOINT": "AZURE_STORAGE_BLOB_SERVICE_ENDPOINT",
    "METAFLOW_DATASTORE_SYSROOT_AZURE": "DATASTORE_SYSROOT_AZURE",
    "METAFLOW_CARD_AZUREROOT": "CARD_AZUREROOT",
    "METAFLOW_DATASTORE_SYSROOT_GS": "DATASTORE_SYSROOT_GS",
    "METAFLOW_CARD_GSROOT": "CARD_GSROOT",
    "METAFLOW_INIT_SCRIPT": "KUBERNETES_SANDBOX_INIT_SCRIPT",
    "METAFLOW_KUBERNETES_SANDBOX_INIT_SCRIPT": "KUBERNETES_SANDBOX_INIT_SCRIPT",
    "METAFLOW_ARGO_WORKFLOWS_KUBERNETES_SECRETS": "ARGO_WORKFLOWS_KUBERNETES_SECRETS",
    "METAFLOW_ARGO_WORKFLOWS_ENV_VARS_TO_SKIP": "ARGO_WORKFLOWS_ENV_VARS_TO_SKIP",
    "METAFLOW_OTEL_ENDPOINT": "OTEL_ENDPOINT",
    "METAFLOW_OTEL_SERVICE_NAME": "OTEL_SERVICE_NAME",
    "METAFLOW_ARGO_EVENTS_WEBHOOK_URL": "ARGO_EVENTS_INTERNAL_WEBHOOK_URL",
    "METAFLOW_ARGO_EVENTS_EVENT": "ARGO_EVENTS_EVENT",
    "METAFLOW_ARGO_EVENTS_EVENT_BUS": "ARGO_EVENTS_EVENT_BUS",
    "METAFLOW_ARGO_EVENTS_EVENT_SOURCE": "ARGO_EVENTS_EVENT_SOURCE",
    "METAFLOW_ARGO_EVENTS_SERVICE_ACCOUNT": "ARGO_EVENTS_SERVICE_ACCOUNT",
    "METAFLOW_ARGO_EVENTS_WEBHOOK_AUTH": "ARGO_EVENTS_WEBHOOK_AUTH",
}


def task_environment(datastore_type: str) -> dict[str, str]:
    """The METAFLOW_* variables that core hands to every task on Kubernetes."""
    from metaflow import metaflow_config as config
    from metaflow.metaflow_config_funcs import config_values, from_conf
    from metaflow.tracing import inject_tracing_vars

    values: dict[str, object] = {name: getattr(config, setting, None) for name, setting in _CARRIED.items()}
    values["METAFLOW_SERVICE_HEADERS"] = json.dumps(config.SERVICE_HEADERS)
    values["METAFLOW_DEFAULT_DATASTORE"] = datastore_type
    values["METAFLOW_SKIP_INSTALL_DEPENDENCIES"] = from_conf("SKIP_INSTALL_DEPENDENCIES")  # core has it in the image alone
    values.update((name, value) for name, value in config_values() if name.startswith(("METAFLOW_CONDA_", "METAFLOW_DEBUG_")))
    values.update(inject_tracing_vars({}))
    return {name: str(value) for name, value in values.items() if value is not None}


def jobset_resource() -> Resource:
    """The JobSet API that is configured."""
    from metaflow import metaflow_config as config

    return Resource(config.KUBERNETES_JOBSET_GROUP, config.KUBERNETES_JOBSET_VERSION, "jobsets", "JobSet")
