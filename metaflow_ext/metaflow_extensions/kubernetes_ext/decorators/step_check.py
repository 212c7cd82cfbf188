"""What a @kubernetes step must be before anything is launched. Values core accepts are left exactly as core leaves them;
beyond that quantities ("4Gi", "500m") and numbers as text are understood."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from metaflow.plugins.resources_decorator import ResourcesDecorator

from ..errors import InvalidSpec
from ..spec import names, quantities
from .attributes import is_same, is_true
from .host_errors import KubernetesError

REMOTE_DATASTORES = ("s3", "azure", "gs")
QOS_CLASSES = ("guaranteed", "burstable")
GPU_VENDORS = ("amd", "nvidia")


def require_datastore(datastore: str, is_shared: bool) -> None:
    if datastore in REMOTE_DATASTORES or (datastore == "local" and is_shared):
        return
    raise KubernetesError(
        f"@kubernetes needs a datastore that the pods can reach: --datastore=s3, azure or gs (this one is {datastore}). On one "
        "machine run the flow in the development cluster, which shares its files: metaflow-devcluster run -- python "
        "flow.py run --with kubernetes"
    )


def require_one_engine(step: str, decos: Iterable[Any]) -> None:
    if any(deco.name == "batch" for deco in decos):
        raise KubernetesError(f"Step *{step}* is marked for both AWS Batch and Kubernetes. Use one of @batch and @kubernetes.")


def require_run_time_limit(step: str, seconds: int) -> None:
    if seconds < 60:
        raise KubernetesError("The @timeout of step *%s* is %d s; on Kubernetes it must be at least 60 s." % (step, seconds))


def merge_resources(attributes: dict[str, Any], defaults: dict[str, Any], decos: Iterable[Any]) -> frozenset[str]:
    """Take over @resources: the larger of both values; gpu and shared_memory override. Core's rule, for quantities too.

    The names of the attributes whose value is now another one.
    """
    before = dict(attributes)
    for deco in decos:
        if not isinstance(deco, ResourcesDecorator):
            continue
        for key, value in deco.attributes.items():
            if key in ("gpu", "shared_memory") and value is not None:
                attributes[key] = value
            if key not in attributes or defaults[key] is None:
                continue
            mine = attributes.get(key)
            if not (mine is None and value is None):
                attributes[key] = larger(mine, value, key)
    return frozenset(key for key, value in attributes.items() if not is_same(value, before.get(key)))


def larger(mine: Any, other: Any, what: str) -> str:
    """Core writes the maximum of two plain numbers as a float ("4096.0"), which the Argo compiler then shows."""
    try:
        return str(max(float(mine or 0), float(other or 0)))
    except (TypeError, ValueError):
        pass
    quantity = quantities.count if what == "cpu" else quantities.megabytes
    try:
        given = [quantity(value, what) for value in (mine, other) if value not in (None, "")]
        return max(given, key=quantities.amount)
    except InvalidSpec as error:
        raise KubernetesError(str(error)) from error


def check_attributes(step: str, attributes: dict[str, Any]) -> None:
    """Refuse wrong values, naming the step, the attribute and what it may be."""
    try:
        _check_sizes(attributes)
        _check_choices(attributes)
        _check_structures(attributes)
    except InvalidSpec as error:
        raise KubernetesError(f"Step *{step}*: {error}") from error


def _check_sizes(attributes: dict[str, Any]) -> None:
    quantities.count(attributes["cpu"], "cpu")
    for name in ("memory", "disk"):
        quantities.megabytes(attributes[name], name)
    for name in ("shared_memory", "tmpfs_size"):
        if attributes[name]:
            quantities.megabytes(attributes[name], name, "Mi")
    if attributes["gpu"] is not None:
        whole_number(attributes["gpu"], "gpu", least=0)
    if attributes["port"] is not None:
        whole_number(attributes["port"], "port", least=1, most=65535)
    for name in ("grace_period", "launch_timeout", "image_pull_timeout", "stall_timeout", "max_restarts"):
        if attributes[name] is not None:
            whole_number(attributes[name], name, least=0)
    whole_number(attributes["hostname_resolution_timeout"], "hostname_resolution_timeout", least=1)


def whole_number(value: Any, what: str, least: int, most: int = 2**31) -> int:
    """`value` as an int: 1, "1", 1.0. InvalidSpec otherwise, or outside of [least, most]."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(value, bool) or not number.is_integer() or not least <= number <= most:
        limits = "of at least %d" % least if most == 2**31 else "from %d to %d" % (least, most)
        raise InvalidSpec(f"{what} is a whole number {limits}, not {value!r}.")
    return int(number)


def _check_choices(attributes: dict[str, Any]) -> None:
    for name, choices in (("qos", QOS_CLASSES), ("gpu_vendor", GPU_VENDORS)):
        value = attributes.get(name)  # older Metaflow has fewer
        if value is not None and str(value).lower() not in choices:
            raise InvalidSpec("{} is one of {}, not {!r}.".format(name, ", ".join(choices), value))
    logs = attributes["logs"]
    if logs is not None:
        parse_logs(logs)


def parse_logs(value: Any) -> Any:
    """ "control", "all", "none", or a tuple of ranks from "0,3" or [0, 3]."""
    text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value).strip()
    if text in ("control", "all", "none"):
        return text
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise InvalidSpec(f"logs is control, all, none or ranks such as 0,3, not {value!r}.")
    return tuple(int(part) for part in parts)


def _check_structures(attributes: dict[str, Any]) -> None:
    for name in (
        "persistent_volume_claims",
        "labels",
        "annotations",
        "extended_resources",
        "security_context",
        "node_selector",
    ):
        value = attributes.get(name)  # older Metaflow has fewer
        if value is not None and not isinstance(value, dict):
            raise InvalidSpec(f"{name} is a dictionary, not {json.dumps(value, default=str)}.")
    for name in (
        "image",
        "image_pull_policy",
        "service_account",
        "namespace",
        "tmpfs_path",
        "executable",
        "queue",
        "workload_priority",
        "priority_class",
        "scheduler",
        "runtime_class",
        "topology",
        "backend",
        "gang",
    ):
        value = attributes.get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidSpec(f"{name} is a text, not {value!r}.")
    secrets = attributes["secrets"]
    if secrets and not isinstance(secrets, (str, list, tuple)):
        raise InvalidSpec(f"secrets is a list of names, or names with commas between them, not {secrets!r}.")
    for name, kinds, words in (
        ("affinity", (dict, str), "a dictionary, or YAML"),
        ("pod_overlay", (dict, list, str), "a dictionary, or YAML"),
        ("fault_tolerance", (dict, str), "a dictionary, or YAML"),
        ("resource_claims", (dict, list, str), "a list of ResourceClaimTemplates, or a dictionary"),
        ("instance_type", (list, tuple, str), "a name or a list of names"),
    ):
        value = attributes[name]
        if value is not None and not isinstance(value, kinds):
            raise InvalidSpec(f"{name} is {words}, not {value!r}.")
    for name in ("tolerations", "image_pull_secrets"):
        value = attributes.get(name)  # older Metaflow has fewer
        if value is not None and not isinstance(value, (list, tuple)):
            raise InvalidSpec(f"{name} is a list, not {json.dumps(value, default=str)}.")
    for key, value in (attributes["labels"] or {}).items():
        names.require_label(key, "" if value is None else str(value), "@kubernetes(labels=...)")
    is_true(attributes["use_tmpfs"])
