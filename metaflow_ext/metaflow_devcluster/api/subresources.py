"""Binding and eviction of pods, and finalizing of namespaces. `bind` and `evict` also serve the controllers."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..store import Store, timestamp
from .context import Api, Reply, Request
from .decoding import options_body
from .deleting import DeleteOptions
from .requests import Target, write_options

Object = dict[str, Any]
EVICTED_BY_API = ("EvictionByEvictionAPI", "Eviction API: evicting")


def _done() -> Object:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def set_condition(obj: Object, kind: str, status: str, *, reason: str = "", message: str = "") -> None:
    """Put a condition into an object that the caller owns; the transition time moves only with the status."""
    conditions = obj.setdefault("status", {}).setdefault("conditions", [])
    present = next((c for c in conditions if c["type"] == kind), None)
    since = present["lastTransitionTime"] if present and present["status"] == status else timestamp()
    entry: Object = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": since}
    entry |= {key: value for key, value in (("reason", reason), ("message", message)) if value}
    if present:
        conditions[conditions.index(present)] = entry
    else:
        conditions.append(entry)


def bind(store: Store, namespace: str, name: str, node: str, binding: Object | None = None) -> Object:
    """Assign a pod to a node; 409 when it has one already or is being deleted."""
    pod = store.get("pods", namespace, name)
    if pod["metadata"].get("deletionTimestamp"):
        raise errors.conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if pod["spec"].get("nodeName"):
        text = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        raise errors.conflict("pods/binding", name, text)
    if pod["spec"].get("schedulingGates"):
        raise errors.conflict("pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")

    def assign(obj: Object) -> None:
        obj["spec"]["nodeName"] = node
        for key in ("annotations", "labels"):
            given = ((binding or {}).get("metadata") or {}).get(key)
            if given:
                obj["metadata"][key] = {**(obj["metadata"].get(key) or {}), **given}
        set_condition(obj, "PodScheduled", "True")

    return store.modify("pods", namespace, name, assign)


def create_binding(api: Api, target: Target, request: Request) -> Reply:
    options = write_options(request.query, "CreateOptions")
    body = options_body(api.schemas, request.body, request.content_type, "Binding")
    node = (body.get("target") or {}).get("name")
    if not node:
        cause = errors.Cause("target.name", "Required value", "FieldValueRequired")
        raise errors.invalid("Binding", "", target.name, [cause])
    if not options.dry_run:
        bind(api.store, target.namespace or "", target.name, node, body)
    return Reply(code=201, body=_done())


def evict(store: Store, namespace: str, name: str, options: DeleteOptions | None = None) -> None:
    """Mark a pod as disrupted and delete it, as the Eviction API does."""
    options = options or DeleteOptions()
    reason, message = EVICTED_BY_API
    pod = store.get("pods", namespace, name)
    is_over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if not is_over and not pod["metadata"].get("deletionTimestamp"):
        store.modify(
            "pods",
            namespace,
            name,
            lambda obj: set_condition(obj, "DisruptionTarget", "True", reason=reason, message=message),
        )
    store.delete(
        "pods",
        namespace,
        name,
        propagation=options.propagation,
        grace_seconds=options.grace_seconds,
        preconditions=options.preconditions,
    )


def create_eviction(api: Api, target: Target, request: Request) -> Reply:
    body = options_body(api.schemas, request.body, request.content_type, "Eviction", "policy")
    name = (body.get("metadata") or {}).get("name") or target.name
    if name != target.name:
        raise errors.bad_request(f"name in URL does not match name in Eviction object: {target.name} != {name}")
    given = body.get("deleteOptions") or {}
    is_dry = bool(given.get("dryRun")) or write_options(request.query, "CreateOptions").dry_run
    api.store.get("pods", target.namespace, target.name)
    options = DeleteOptions(
        propagation=given.get("propagationPolicy"),
        grace_seconds=given.get("gracePeriodSeconds"),
        preconditions=given.get("preconditions"),
    )
    if not is_dry:
        evict(api.store, target.namespace or "", target.name, options)
    return Reply(code=201, body=_done())


def finalize(api: Api, target: Target, request: Request) -> Reply:
    """PUT namespaces/NAME/finalize: the namespace's own finalizers, which only go here."""
    body = options_body(api.schemas, request.body, request.content_type, "Namespace")
    finalizers = (body.get("spec") or {}).get("finalizers") or []

    def change(namespace: Object) -> None:
        namespace.setdefault("spec", {})["finalizers"] = finalizers
        if not finalizers:
            del namespace["spec"]["finalizers"]

    updated = api.store.modify("namespaces", None, target.name, change)
    return Reply(body=updated)
