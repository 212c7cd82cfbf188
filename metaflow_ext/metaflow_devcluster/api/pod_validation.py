"""The rules of pod templates and pods. They apply to a pod and, through its template, to a Job at its creation."""

from __future__ import annotations

import json
from typing import Any

from ..errors import Cause
from . import names
from .defaults import containers_of
from .quantities import quantity

Object = dict[str, Any]
_RESTART = ("Always", "Never", "OnFailure")
_DNS = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_PULL = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_OPERATORS = ("Equal", "Exists")
_EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
MAX_INT32 = 2**31 - 1
_MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def template_causes(template: Object, path: str) -> list[Cause]:
    """Broken rules of a pod template; its labels are at `<path>.labels`, as the server says."""
    meta = template.get("metadata") or {}
    found = names.label_causes(meta.get("labels") or {}, f"{path}.labels")
    found += names.annotation_causes(meta.get("annotations") or {}, f"{path}.annotations")
    return found + pod_spec_causes(template.get("spec") or {}, f"{path}.spec")


def pod_spec_causes(spec: Object, path: str) -> list[Cause]:
    volumes, found = _volume_causes(spec, f"{path}.volumes")
    if not spec.get("containers"):
        found.append(names.required(f"{path}.containers"))
    seen: set[str] = set()
    for key in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            found += _container_causes(container, f"{path}.{key}[{index}]", volumes, seen)
    if spec.get("restartPolicy") not in _RESTART:
        found.append(names.unsupported(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART))
    if spec.get("dnsPolicy") not in _DNS:
        found.append(names.unsupported(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS))
    found += names.label_causes(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    for key, rule in (("hostname", names.dns_label), ("subdomain", names.dns_label)):
        if spec.get(key):
            found += names.each_text(f"{path}.{key}", spec[key], rule(spec[key]))
    if spec.get("serviceAccountName"):
        account = spec["serviceAccountName"]
        found += names.each_text(f"{path}.serviceAccountName", account, names.dns_subdomain(account))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        text = f"must be between 1 and {MAX_INT32}, inclusive"
        found.append(names.wrong(f"{path}.activeDeadlineSeconds", deadline, text))
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        found.append(names.wrong(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0"))
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        found += _toleration_causes(toleration, f"{path}.tolerations[{index}]")
    return found


def _volume_causes(spec: Object, path: str) -> tuple[set[str], list[Cause]]:
    seen: set[str] = set()
    found: list[Cause] = []
    for index, volume in enumerate(spec.get("volumes") or ()):
        at, name = f"{path}[{index}]", volume.get("name") or ""
        if not name:
            found.append(names.required(f"{at}.name"))
        found += names.each_text(f"{at}.name", name, names.dns_label(name)) if name else []
        if name in seen:
            found.append(names.duplicate(f"{at}.name", name))
        seen.add(name)
        if len(volume) > 2:
            second = sorted(set(volume) - {"name"})[1]
            found.append(names.banned(f"{at}.{second}", "may not specify more than 1 volume type"))
        if "persistentVolumeClaim" in volume and not volume["persistentVolumeClaim"].get("claimName"):
            found.append(names.required(f"{at}.persistentVolumeClaim.claimName"))
        if "secret" in volume and not volume["secret"].get("secretName"):
            found.append(names.required(f"{at}.secret.secretName"))
        if "hostPath" in volume and not volume["hostPath"].get("path"):
            found.append(names.required(f"{at}.hostPath.path"))
    return seen, found


def _container_causes(container: Object, path: str, volumes: set[str], seen: set[str]) -> list[Cause]:
    found: list[Cause] = []
    name = container.get("name") or ""
    if not name:
        found.append(names.required(f"{path}.name"))
    else:
        found += names.each_text(f"{path}.name", name, names.dns_label(name))
    if name in seen:
        found.append(names.duplicate(f"{path}.name", name))
    seen.add(name)
    image = container.get("image") or ""
    if not image:
        found.append(names.required(f"{path}.image"))
    elif image != image.strip():
        found.append(names.wrong(f"{path}.image", image, "must not have leading or trailing whitespace"))
    if container.get("imagePullPolicy") not in (*_PULL, None):
        found.append(names.unsupported(f"{path}.imagePullPolicy", container["imagePullPolicy"], _PULL))
    found += _env_causes(container, path)
    found += _mount_causes(container, path, volumes)
    found += _port_causes(container, path)
    return found + _resource_causes(container.get("resources") or {}, f"{path}.resources")


def _env_causes(container: Object, path: str) -> list[Cause]:
    found = []
    for index, variable in enumerate(container.get("env") or ()):
        at, name = f"{path}.env[{index}]", variable.get("name") or ""
        if not name:
            found.append(names.required(f"{at}.name"))
        else:
            found += names.each_text(f"{at}.name", name, names.env_name(name))
        source = variable.get("valueFrom")
        if source is None:
            continue
        if variable.get("value"):
            found.append(names.wrong(f"{at}.valueFrom", "", "may not be specified when `value` is not empty"))
        if not source:
            kinds = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef`, or `fileKeyRef`"
            found.append(names.wrong(f"{at}.valueFrom", "", f"must specify one of: {kinds}"))
        for key in ("configMapKeyRef", "secretKeyRef"):
            if source.get(key) is not None and not source[key].get("key"):
                found.append(names.required(f"{at}.valueFrom.{key}.key"))
    return found


def _mount_causes(container: Object, path: str, volumes: set[str]) -> list[Cause]:
    found = []
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        at = f"{path}.volumeMounts[{index}]"
        if not mount.get("name"):
            found.append(names.required(f"{at}.name"))
        elif mount["name"] not in volumes:
            found.append(names.missing(f"{at}.name", mount["name"]))
        where = mount.get("mountPath") or ""
        if not where:
            found.append(names.required(f"{at}.mountPath"))
        elif where in seen:
            found.append(names.wrong(f"{at}.mountPath", where, "must be unique"))
        seen.add(where)
    return found


def _port_causes(container: Object, path: str) -> list[Cause]:
    found = []
    for index, port in enumerate(container.get("ports") or ()):
        at, number = f"{path}.ports[{index}]", port.get("containerPort")
        if not number:
            found.append(names.required(f"{at}.containerPort"))
        elif not 1 <= number <= 65535:
            found.append(names.wrong(f"{at}.containerPort", number, "must be between 1 and 65535, inclusive"))
        if port.get("protocol") not in _PROTOCOLS:
            found.append(names.unsupported(f"{at}.protocol", port.get("protocol"), _PROTOCOLS))
    return found


def _resource_causes(resources: Object, path: str) -> list[Cause]:
    found = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for key, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            at = f"{path}.{key}"
            if quantity(amount) < 0:
                found.append(names.wrong(f"{at}[{name}]", amount, "must be greater than or equal to 0"))
            found += names.each_text(f"{at}[{name}]", name, names.qualified_name(name))
            if "/" not in name and name not in ("cpu", "memory", "ephemeral-storage") and "hugepages-" not in name:
                found.append(names.wrong(f"{at}[{name}]", name, "must be a standard resource type or fully qualified"))
                found.append(names.wrong(f"{at}[{name}]", name, "must be a standard resource for containers"))
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is not None and quantity(amount) > quantity(limit):
            text = f"must be less than or equal to {name} limit of {limit}"
            found.append(names.wrong(f"{path}.requests", amount, text))
    return found


def _toleration_causes(toleration: Object, path: str) -> list[Cause]:
    found = []
    operator = toleration.get("operator")
    if operator not in (*_OPERATORS, None, ""):
        found.append(names.unsupported(f"{path}.operator", operator, _OPERATORS))
    if not toleration.get("key") and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(names.wrong(f"{path}.operator", operator or "", text))
    if operator == "Exists" and toleration.get("value"):
        found.append(names.wrong(f"{path}.operator", toleration, "value must be empty when `operator` is 'Exists'"))
    if toleration.get("effect") not in (*_EFFECTS, None, ""):
        found.append(names.unsupported(f"{path}.effect", toleration["effect"], _EFFECTS))
    return found


def pod_update_causes(new: Object, old: Object) -> list[Cause]:
    """A pod's spec is fixed but for images, a shorter deadline, more tolerations, and gates being lifted."""
    found = pod_spec_causes(new["spec"], "spec")
    for key in ("containers", "initContainers"):
        if len(new["spec"].get(key) or ()) != len(old["spec"].get(key) or ()):
            found.append(names.banned(f"spec.{key}", "pod updates may not add or remove containers"))
            return found
    if _comparable(new, old) != _comparable(old, old):
        found.append(names.banned("spec", f"{_MUTABLE}\n{_difference(old['spec'], new['spec'])}"))
    return found


def _comparable(pod: Object, old: Object) -> Object:
    spec = json.loads(json.dumps(pod["spec"]))
    for container in containers_of(spec):
        container.pop("image", None)
        container.pop("imagePullPolicy", None)
    spec.pop("activeDeadlineSeconds", None)
    if old["spec"].get("schedulingGates"):
        for key in ("schedulingGates", "nodeSelector", "affinity"):
            spec.pop(key, None)
    before = old["spec"].get("tolerations") or []
    if all(toleration in (spec.get("tolerations") or ()) for toleration in before):
        spec.pop("tolerations", None)
    return spec  # type: ignore[no-any-return]


def _difference(old: Object, new: Object) -> str:
    lines = []
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            lines += [f"- \t{key}: {names.go_value(old.get(key))},", f"+ \t{key}: {names.go_value(new.get(key))},"]
    return "\n".join(("  core.PodSpec{", *lines, "  }"))
