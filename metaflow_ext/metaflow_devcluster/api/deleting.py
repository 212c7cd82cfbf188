"""DELETE of an object or a collection: options from body and query, warnings, and the two kinds of answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import errors
from ..errors import Cause, NotFound
from .context import Api, Reply, Request, success
from .decoding import options_body
from .definitions import DEFINITIONS
from .listing import list_page
from .reading import collection
from .requests import Target, dry_run_causes, is_true
from .schema import Schemas

Object = dict[str, Any]
_ANSWER_OBJECT = ("persistentvolumeclaims", "pods", "resourcequotas", "serviceaccounts", "services")
_PROTECTED = ("default", "kube-public", "kube-system")
_JOB_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


@dataclass(frozen=True, kw_only=True)
class DeleteOptions:
    propagation: str | None = None
    grace_seconds: int | None = None
    preconditions: Object | None = None
    dry_run: bool = False


def delete_options(schemas: Schemas, request: Request) -> DeleteOptions:
    """From the body, or from the query when the body is empty, as the server takes them."""
    body = options_body(schemas, request.body, request.content_type, "DeleteOptions")
    query = request.query
    dry_run = list(body.get("dryRun") or ()) or ([query["dryRun"]] if query.get("dryRun") else [])
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy")
    orphan = body.get("orphanDependents")
    if orphan is None and "orphanDependents" in query:
        orphan = is_true(query["orphanDependents"])
    causes = dry_run_causes(dry_run)
    if propagation not in (None, "Background", "Foreground", "Orphan"):
        listed = 'supported values: "Background", "Foreground", "Orphan"'
        text = f'Unsupported value: "{propagation}": {listed}'
        causes.append(Cause("propagationPolicy", text, "FieldValueNotSupported"))
    if causes:
        raise errors.invalid_options("DeleteOptions", causes)
    if propagation is None and orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    grace = body.get("gracePeriodSeconds")
    if grace is None and query.get("gracePeriodSeconds", "").lstrip("-").isdigit():
        grace = int(query["gracePeriodSeconds"])
    return DeleteOptions(
        propagation=propagation, grace_seconds=grace, preconditions=body.get("preconditions"), dry_run=bool(dry_run)
    )


def delete_object(api: Api, target: Target, request: Request) -> Reply:
    resource = target.resource
    options = delete_options(api.schemas, request)
    current = api.store.get(resource.name, target.namespace, target.name)
    if resource.name == "namespaces" and target.name in _PROTECTED:
        raise errors.forbidden("namespaces", target.name, "this namespace may not be deleted")
    left = delete(api, target, target.name, options)
    withdraw_definition(api, target, current)
    warns = resource.name == "jobs.batch" and options.propagation is None
    warnings = (_JOB_WARNING,) if warns else ()
    uid = current["metadata"]["uid"]
    if left is None and resource.name not in _ANSWER_OBJECT:
        return Reply(body=success(resource, target.name, uid), warnings=warnings)
    body = left if left is not None else current
    return Reply(body=api.shown(resource, body, request).body, warnings=warnings)


def delete(api: Api, target: Target, name: str, options: DeleteOptions) -> Object | None:
    """Delete one object; what is left of it, or None when it is gone."""
    resource = target.resource.name
    namespace = target.namespace
    if options.dry_run:
        current = api.store.get(resource, namespace, name)
        return api.store.marked(resource, current, propagation=options.propagation, grace_seconds=options.grace_seconds)
    api.store.delete(
        resource,
        namespace,
        name,
        propagation=options.propagation,
        grace_seconds=options.grace_seconds,
        preconditions=options.preconditions,
    )
    return api.store.find(resource, namespace, name)


def withdraw_definition(api: Api, target: Target, definition: Object) -> None:
    """After a definition was deleted: stop serving it."""
    if target.resource.name == DEFINITIONS and api.store.find(DEFINITIONS, None, target.name) is None:
        api.definitions.withdraw(definition)


def delete_collection(api: Api, target: Target, request: Request) -> Reply:
    options = delete_options(api.schemas, request)
    query = {key: value for key, value in request.query.items() if key in ("labelSelector", "fieldSelector", "limit")}
    page = list_page(api.store, target, query)
    deleted = []
    for obj in page.objects:
        meta = obj["metadata"]
        one = Target(resource=target.resource, namespace=meta.get("namespace"), name=meta["name"])
        try:
            left = delete(api, one, meta["name"], options)
        except NotFound:
            continue
        withdraw_definition(api, one, obj)
        deleted.append(obj if left is None else left)
    meta = {"resourceVersion": str(api.store.resource_version)}
    return Reply(body=collection(api, target.resource, deleted, meta, request))
