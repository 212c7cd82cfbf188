"""The environment of a container: what its pod asks for, and nothing of what the server's own environment holds.

Two things are rewritten, because a process on this machine can't have them: a value that is the host name of a pod
becomes that pod's address, and a value that lies under the path of a volume which could not be mounted becomes the
place where the volume really is. Values that merely contain such a text are left alone.
"""

from __future__ import annotations

import base64
import math
import os
import re
import site
import sys
from collections.abc import Callable, Mapping
from typing import Any

from ..api.quantities import quantity

Object = dict[str, Any]
_REFERENCE = re.compile(r"\$(?:\$|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SHARED_FILES = "METAFLOW_KUBERNETES_SHARED_FILES"


class ConfigError(Exception):
    """The container can't be made: reason CreateContainerConfigError with this text."""


Reader = Callable[[str, str], "Object | None"]
"""Finds an object: resource and name, in the pod's namespace."""


def base_environment(*, bin_directory: str, home: str, hostname: str, server: Mapping[str, str]) -> dict[str, str]:
    """What every container has: where programs are, and that files are shared with the client."""
    found = {
        "PATH": os.pathsep.join([bin_directory, os.path.dirname(sys.executable), _SYSTEM_PATH]),
        "HOME": home,
        "HOSTNAME": hostname,
        SHARED_FILES: "1",
    }
    for name in ("LANG", "LC_ALL", "TZ"):
        if name in server:
            found[name] = server[name]
    if site.ENABLE_USER_SITE and sys.prefix == sys.base_prefix:
        found["PYTHONUSERBASE"] = str(site.USER_BASE)  # HOME is another one, packages stay where they are
    return found


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` becomes the value where there is one, `$$` becomes `$`."""

    def one(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return "$"
        return variables.get(name, match.group(0))

    return _REFERENCE.sub(one, text)


def container_environment(
    pod: Object, container: Object, read: Reader, base: Mapping[str, str], rewrite: Callable[[str], str]
) -> dict[str, str]:
    """All variables of a container; ConfigError when a ConfigMap or Secret that must exist does not."""
    found = dict(base)
    for source in container.get("envFrom") or []:
        for name, value in _bulk(source, read).items():
            found[f"{source.get('prefix') or ''}{name}"] = value
    own: dict[str, str] = dict(found)
    for entry in container.get("env") or []:
        given = _value(pod, container, entry, read, own)
        if given is not None:
            own[entry["name"]] = given
    return {name: value if base.get(name) == value else rewrite(value) for name, value in own.items()}


def _value(pod: Object, container: Object, entry: Object, read: Reader, known: Mapping[str, str]) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return expand(entry.get("value") or "", known)
    if source.get("fieldRef"):
        return field_value(pod, source["fieldRef"]["fieldPath"])
    if source.get("resourceFieldRef"):
        return resource_value(pod, container, source["resourceFieldRef"])
    if source.get("configMapKeyRef"):
        return _keyed("configmaps", "ConfigMap", pod, source["configMapKeyRef"], read)
    if source.get("secretKeyRef"):
        return _keyed("secrets", "Secret", pod, source["secretKeyRef"], read)
    return None


def field_value(pod: Object, path: str) -> str:
    """The downward API's fields; an unknown one is empty."""
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript:
        return str((meta.get(subscript.group(1)) or {}).get(subscript.group(2), ""))
    simple = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.hostIP": status.get("hostIP", ""),
        "status.hostIPs": status.get("hostIP", ""),
        "status.podIP": status.get("podIP", ""),
        "status.podIPs": status.get("podIP", ""),
    }
    if path in ("metadata.labels", "metadata.annotations"):
        entries = meta.get(path.rpartition(".")[2]) or {}
        return "\n".join(f'{key}="{value}"' for key, value in sorted(entries.items()))
    return str(simple.get(path, ""))


def resource_value(pod: Object, container: Object, ref: Object) -> str:
    """A request or limit in units of the divisor, rounded up; without a limit the node's size counts elsewhere: 0."""
    named = ref.get("containerName")
    for other in pod["spec"]["containers"]:
        if named and other["name"] == named:
            container = other
    kind, _, name = ref["resource"].partition(".")
    resources = container.get("resources") or {}
    amount = (resources.get(kind) or {}).get(name) or (resources.get("limits") or {}).get(name) or "0"
    divisor = quantity(str(ref.get("divisor") or "1")) or 1
    return str(math.ceil(quantity(str(amount)) / divisor))


def object_data(resource: str, obj: Object) -> dict[str, bytes]:
    """The entries of a ConfigMap or Secret as bytes."""
    if resource == "configmaps":
        found = {key: str(value).encode() for key, value in (obj.get("data") or {}).items()}
        found.update({key: base64.b64decode(value) for key, value in (obj.get("binaryData") or {}).items()})
        return found
    return {key: base64.b64decode(value) for key, value in (obj.get("data") or {}).items()}


def _bulk(source: Object, read: Reader) -> dict[str, str]:
    for key, resource, word in (("configMapRef", "configmaps", "configmap"), ("secretRef", "secrets", "secret")):
        ref = source.get(key)
        if ref:
            obj = read(resource, ref["name"])
            if obj is None and not ref.get("optional"):
                raise ConfigError(f'{word} "{ref["name"]}" not found')
            return {name: value.decode(errors="replace") for name, value in object_data(resource, obj or {}).items()}
    return {}


def _keyed(resource: str, kind: str, pod: Object, ref: Object, read: Reader) -> str | None:
    obj = read(resource, ref["name"])
    data = object_data(resource, obj or {})
    if ref["key"] in data:
        return data[ref["key"]].decode(errors="replace")
    if ref.get("optional"):
        return None
    if obj is None:
        raise ConfigError(f'{kind.lower()} "{ref["name"]}" not found')
    raise ConfigError(f"couldn't find key {ref['key']} in {kind} {pod['metadata']['namespace']}/{ref['name']}")
