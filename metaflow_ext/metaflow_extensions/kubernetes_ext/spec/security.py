"""What a container's processes may do: Kubernetes' own rules (core/v1 SecurityContext, pkg/apis/core/validation), said before
anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InvalidSpec

_MOST_ID = 2**31 - 1


def require_security_context(context: Mapping[str, Any]) -> None:
    """InvalidSpec unless `context`, in camelCase, is one that Kubernetes takes."""
    _require_fields(context, _FIELDS, "security_context")
    if context.get("allowPrivilegeEscalation") is False:
        added = (context.get("capabilities") or {}).get("add") or ()
        if context.get("privileged") or "SYS_ADMIN" in added or "CAP_SYS_ADMIN" in added:
            raise InvalidSpec("security_context: allow_privilege_escalation can't be False with privileged or SYS_ADMIN.")
    if context.get("procMount") == "Unmasked":
        raise InvalidSpec("security_context: proc_mount can't be Unmasked in a pod with the node's user ids.")
    for name in ("seccompProfile", "appArmorProfile"):
        profile = context.get(name)
        if profile is not None and ("localhostProfile" in profile) != (profile.get("type") == "Localhost"):
            raise InvalidSpec(f"security_context: {name} has a localhostProfile if its type is Localhost, and only then.")


def _require_fields(value: Any, fields: Mapping[str, Callable[[Any], str]], where: str) -> None:
    """`fields` say of a value what it has to be, "" if that is what it is."""
    if not isinstance(value, Mapping):
        raise InvalidSpec(f"{where} is a dictionary, not {value!r}.")
    for name, found in value.items():
        if name not in fields:
            raise InvalidSpec(f"{where} has no field {name!r}; it has {', '.join(fields)}.")
        if wanted := fields[name](found):
            raise InvalidSpec(f"{where}: {name} is {wanted}, not {found!r}.")


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "True or False"


def _id(value: Any) -> str:
    is_one = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_ID
    return "" if is_one else f"a whole number from 0 to {_MOST_ID}"


def _text(value: Any) -> str:
    return "" if isinstance(value, str) else "a text"


def _texts(value: Any) -> str:
    return "" if isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value) else "a list of texts"


def _one_of(*choices: str) -> Callable[[Any], str]:
    return lambda value: "" if value in choices else "one of " + ", ".join(choices)


def _struct(name: str, fields: Mapping[str, Callable[[Any], str]], needs: str = "") -> Callable[[Any], str]:
    def check(value: Any) -> str:
        _require_fields(value, fields, f"security_context: {name}")
        return f"a dictionary with {needs!r}" if needs and needs not in value else ""

    return check


_PROFILE = {"type": _one_of("RuntimeDefault", "Localhost", "Unconfined"), "localhostProfile": _text}
_FIELDS: Mapping[str, Callable[[Any], str]] = {
    "allowPrivilegeEscalation": _flag,
    "appArmorProfile": _struct("appArmorProfile", _PROFILE, "type"),
    "capabilities": _struct("capabilities", {"add": _texts, "drop": _texts}),
    "privileged": _flag,
    "procMount": _one_of("Default", "Unmasked"),
    "readOnlyRootFilesystem": _flag,
    "runAsGroup": _id,
    "runAsNonRoot": _flag,
    "runAsUser": _id,
    "seLinuxOptions": _struct("seLinuxOptions", {"level": _text, "role": _text, "type": _text, "user": _text}),
    "seccompProfile": _struct("seccompProfile", _PROFILE, "type"),
    "windowsOptions": _struct(
        "windowsOptions",
        {"gmsaCredentialSpec": _text, "gmsaCredentialSpecName": _text, "hostProcess": _flag, "runAsUserName": _text},
    ),
}
