"""The attributes of @kubernetes: core's, in core's meaning, and ours, which all default to None.

One row an attribute says how it travels on the command line of `kubernetes step`; nothing else lists them.
"""

from __future__ import annotations

from typing import Any

# How an attribute travels: as text, as JSON, as repeated key=value pairs, repeated, or as a bare flag.
TEXT, JSON, PAIRS, REPEATED, FLAG = "text", "json", "pairs", "repeated", "flag"

CORE: dict[str, str] = {
    "cpu": TEXT,
    "memory": TEXT,
    "disk": TEXT,
    "image": TEXT,
    "image_pull_policy": TEXT,
    "image_pull_secrets": JSON,
    "service_account": TEXT,
    "secrets": REPEATED,
    "node_selector": PAIRS,
    "namespace": TEXT,
    "gpu": TEXT,
    "gpu_vendor": TEXT,
    "tolerations": JSON,
    "labels": JSON,
    "annotations": JSON,
    "use_tmpfs": FLAG,
    "tmpfs_tempdir": FLAG,
    "tmpfs_size": TEXT,
    "tmpfs_path": TEXT,
    "persistent_volume_claims": JSON,
    "shared_memory": TEXT,
    "port": TEXT,
    "executable": TEXT,
    "qos": TEXT,
    "extended_resources": JSON,
    "security_context": JSON,
}

OURS: dict[str, str] = {
    "logs": TEXT,
    "grace_period": TEXT,
    "launch_timeout": TEXT,
    "image_pull_timeout": TEXT,
    "stall_timeout": TEXT,
    "max_restarts": TEXT,
    "queue": TEXT,
    "workload_priority": TEXT,
    "priority_class": TEXT,
    "scheduler": TEXT,
    "topology": TEXT,
    "affinity": JSON,
    "instance_type": JSON,
    "runtime_class": TEXT,
    "resource_claims": JSON,
    "pod_overlay": JSON,
    "backend": TEXT,
    "fault_tolerance": JSON,
    "gang": TEXT,
}

_SETTINGS = {"grace_period": "KUBERNETES_GRACE_PERIOD_SECONDS"}

# On the command line --namespace is Metaflow's own.
OPTION_NAMES = {"namespace": "k8s_namespace"}


def defaults(core_defaults: dict[str, Any]) -> dict[str, Any]:
    """Core's defaults and ours."""
    return dict(core_defaults, **dict.fromkeys(OURS))


def option_name(attribute: str) -> str:
    return OPTION_NAMES.get(attribute, attribute)


def setting(attribute: str) -> str:
    """The setting of an attribute of ours, without METAFLOW_."""
    return _SETTINGS.get(attribute, f"KUBERNETES_{attribute.upper()}")


def command_options(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes as options of `kubernetes step`, in the forms core's runtime writes on a command line."""
    import json

    options: dict[str, Any] = {}
    for name, form in {**CORE, **OURS}.items():
        if name not in attributes:
            continue
        value = attributes[name]
        if form == JSON:
            value = None if value is None else json.dumps(value)
        elif form == PAIRS and value:
            value = ["=".join([key, str(text)]) if text else key for key, text in value.items()]
        elif form == REPEATED and isinstance(value, str):
            value = [part for part in value.split(",") if part]
        elif form == FLAG:
            value = is_true(value)
        options[option_name(name)] = value
    return options


def is_same(one: Any, other: Any) -> bool:
    """Whether two values of an attribute mean the same: "1" is 1.0 (core writes such numbers), and nothing is nothing."""
    nothing: tuple[Any, ...] = (None, "", {}, [], ())
    try:
        return one == other or (one in nothing and other in nothing) or float(one) == float(other)
    except (TypeError, ValueError):
        return False


def is_true(value: Any) -> bool:
    """`--with kubernetes:use_tmpfs=false` arrives as text."""
    return value.strip().lower() not in ("", "0", "false", "no", "none") if isinstance(value, str) else bool(value)
