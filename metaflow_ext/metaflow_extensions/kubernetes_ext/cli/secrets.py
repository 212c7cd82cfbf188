"""Takes out of an object what must not be printed or kept: values of variables whose names say that they are secret. Pure.

Secrets of Kubernetes are only referred to in a workload; core Metaflow, though, hands the service's key to its tasks as a plain
variable, and users do so with @environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

REMOVED = "<removed>"
_TELLING = re.compile(
    r"(^|_)(PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|KEY|APIKEY|CREDENTIALS?|AUTH)(_|$)|^METAFLOW_SERVICE_HEADERS$", re.I
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # repeats the whole object
_EMPTY = ("", "{}", "[]", "null")


def removed_before(value: Any) -> list[str]:
    """The names of the variables whose values had been removed when the object was kept."""
    if isinstance(value, Mapping):
        if value.get("value") == REMOVED and isinstance(value.get("name"), str):
            return [value["name"]]
        return [name for item in value.values() for name in removed_before(item)]
    return [name for item in value for name in removed_before(item)] if isinstance(value, list) else []


def without_secrets(value: Any) -> tuple[Any, list[str]]:
    """The object, at any depth of it, and the names of the variables whose values were removed."""
    removed: dict[str, None] = {}

    def walk(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {
                key: [variable(one) for one in item] if key == "env" and isinstance(item, list) else walk(item)
                for key, item in value.items()
                if key != _LAST_APPLIED
            }
        return [walk(one) for one in value] if isinstance(value, list) else value

    def variable(one: Any) -> Any:
        name = one.get("name") if isinstance(one, Mapping) else None
        if isinstance(name, str) and _TELLING.search(name) and str(one.get("value") or "") not in _EMPTY:
            removed[name] = None
            return {**one, "value": REMOVED}
        return one

    return walk(value), [*removed]
