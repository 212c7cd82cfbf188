"""ResourceQuota: what a namespace uses, what a new object adds, and the refusal when that is too much.

Usage is computed from the objects themselves, so it is never out of step with them; `refresh` writes it to the
quotas' status, which is where clients look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from ..errors import NotFound, forbidden
from ..store import Store
from .quantities import decimal_text, quantity

Object = dict[str, Any]
QUOTAS = "resourcequotas"
_COUNTED = ("configmaps", "persistentvolumeclaims", "pods", QUOTAS, "secrets", "services")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")


def _is_live(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _request(pod: Object, kind: str, name: str) -> Decimal:
    """What a pod asks for: all its containers together, or its largest init container."""
    amounts = {"containers": [], "initContainers": []}  # type: dict[str, list[Decimal]]
    for key, found in amounts.items():
        for container in pod["spec"].get(key) or ():
            given = (container.get("resources") or {}).get(kind) or {}
            found.append(quantity(given.get(name, 0)))
    return max(sum(amounts["containers"], Decimal(0)), *amounts["initContainers"], Decimal(0))


def usage(key: str, resource: str, obj: Object) -> Decimal:
    """How much of one quota key an object takes."""
    if key == f"count/{resource}":
        return Decimal(1)
    if key == resource and resource in _COUNTED:
        return Decimal(1 if resource != "pods" or _is_live(obj) else 0)
    if resource != "pods" or not _is_live(obj):
        return Decimal(0)
    kind, dot, name = key.partition(".")
    if not dot and key in _COMPUTE:
        return _request(obj, "requests", key)
    return _request(obj, kind, name) if kind in ("requests", "limits") else Decimal(0)


def _resources_of(keys: Iterable[str]) -> set[str]:
    found = set()
    for key in keys:
        if key.startswith("count/"):
            found.add(key.removeprefix("count/"))
        elif key in _COUNTED:
            found.add(key)
        else:
            found.add("pods")
    return found


def used(store: Store, namespace: str, keys: Iterable[str]) -> dict[str, Decimal]:
    """What the objects of a namespace take of each key."""
    keys = list(keys)
    found = dict.fromkeys(keys, Decimal(0))
    for resource in _resources_of(keys):
        for obj in store.list(resource, namespace):
            for key in keys:
                found[key] += usage(key, resource, obj)
    return found


def check(store: Store, resource: str, obj: Object) -> None:
    """Refuse an object that one of its namespace's quotas has no room for."""
    namespace, name = obj["metadata"].get("namespace"), obj["metadata"].get("name", "")
    for quota in store.list(QUOTAS, namespace) if namespace else ():
        hard = quota["spec"].get("hard") or {}
        added = {key: amount for key in hard if (amount := usage(key, resource, obj)) > 0}
        if resource == "pods":
            _check_specified(quota, hard, obj)
        if not added:
            continue
        taken = used(store, namespace, added)
        over = sorted(key for key, amount in added.items() if taken[key] + amount > quantity(hard[key]))
        if over:
            parts = (("requested", added), ("used", taken), ("limited", {key: quantity(hard[key]) for key in over}))
            text = ", ".join(f"{label}: {_amounts(values, over)}" for label, values in parts)
            raise forbidden(resource, name, f"exceeded quota: {quota['metadata']['name']}, {text}")


def _check_specified(quota: Object, hard: Mapping[str, Any], pod: Object) -> None:
    """A quota on cpu or memory wants every container to say how much it takes."""
    missing: dict[str, list[str]] = {}
    for container in pod["spec"].get("containers") or ():
        resources = container.get("resources") or {}
        for key in hard:
            kind, dot, name = key.partition(".")
            kind, name = (kind, name) if dot else ("requests", key)
            if kind in ("requests", "limits") and name in _COMPUTE and name not in (resources.get(kind) or {}):
                missing.setdefault(key, []).append(container["name"])
    if missing:
        listed = "; ".join(f"{key} for: {','.join(sorted(missing[key]))}" for key in sorted(missing))
        text = f"failed quota: {quota['metadata']['name']}: must specify {listed}"
        raise forbidden("pods", pod["metadata"].get("name", ""), text)


def _amounts(values: Mapping[str, Decimal], keys: Iterable[str]) -> str:
    return ",".join(f"{key}={decimal_text(values[key])}" for key in keys)


def refresh(store: Store, namespace: str) -> None:
    """Write the present usage to the status of the namespace's quotas."""
    for quota in store.list(QUOTAS, namespace):
        hard = quota["spec"].get("hard") or {}
        taken = {key: decimal_text(amount) for key, amount in used(store, namespace, hard).items()}
        status = {"hard": hard, "used": taken}
        if quota.get("status") != status and not quota["metadata"].get("deletionTimestamp"):
            store.update(QUOTAS, {"metadata": quota["metadata"], "status": status}, status_only=True)


async def keep_quotas(store: Store) -> None:
    """Refresh quotas as objects come and go, until cancelled."""
    with store.subscribe() as changes:
        async for change in changes:
            namespace = change.object["metadata"].get("namespace")
            if namespace and store.list(QUOTAS, namespace):
                for later in changes.pending():
                    other = later.object["metadata"].get("namespace")
                    if other and other != namespace:
                        _refresh_present(store, other)
                _refresh_present(store, namespace)


def _refresh_present(store: Store, namespace: str) -> None:
    try:
        refresh(store, namespace)
    except NotFound:
        return
