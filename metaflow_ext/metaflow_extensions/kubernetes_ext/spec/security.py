"""What a container's processes may do: Kubernetes' own rules (core/v1 SecurityContext, pkg/apis/core/validation), said before
anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidSpec
from .fields import Rule, flag, one_of, require, struct, text, texts, whole


def require_security_context(context: Mapping[str, Any]) -> None:
    """InvalidSpec unless `context`, in camelCase, is one that Kubernetes takes."""
    require(context, _FIELDS, "security_context")
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


_ID = whole(0)
_PROFILE = {"type": one_of("RuntimeDefault", "Localhost", "Unconfined"), "localhostProfile": text}
_FIELDS: Mapping[str, Rule] = {
    "allowPrivilegeEscalation": flag,
    "appArmorProfile": struct(_PROFILE, "type"),
    "capabilities": struct({"add": texts, "drop": texts}),
    "privileged": flag,
    "procMount": one_of("Default", "Unmasked"),
    "readOnlyRootFilesystem": flag,
    "runAsGroup": _ID,
    "runAsNonRoot": flag,
    "runAsUser": _ID,
    "seLinuxOptions": struct({"level": text, "role": text, "type": text, "user": text}),
    "seccompProfile": struct(_PROFILE, "type"),
    "windowsOptions": struct(
        {"gmsaCredentialSpec": text, "gmsaCredentialSpecName": text, "hostProcess": flag, "runAsUserName": text}
    ),
}
