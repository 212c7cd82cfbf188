"""What `kubernetes check` asks the API server: all that can be told without a pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import groupby
from typing import Any

from ..backends.base import Backend, Manifest
from ..cluster.client import KubernetesClient
from ..cluster.failures import unknown_fields
from ..cluster.protocol import JOBS, PODS, Resource
from ..decorators import preflight
from ..decorators.preflight import StandIn
from ..decorators.settings import jobset_resource
from ..errors import ClusterError, Forbidden, InvalidSpec, NotFound
from ..runtime.closer_look import kueue_resource
from ..runtime.resources import resource_of
from ..spec.rights import JOBSET, Right, rights_for
from . import check_rows
from .check_rows import BROKEN, OK, WARNING, Row
from .dry_run import parts, refusal

_AT_ONCE = 8
_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")


def rows(client: KubernetesClient, steps: Sequence[StandIn], warnings: list[str]) -> Iterator[Row]:
    """`warnings` is where the client puts what the server warns of. Raises ClusterError when the server goes away meanwhile."""
    client.serves(JOBS)
    yield Row(check="api server", state=OK, text=f"It answers ({client.access.source}).")
    gangs = [step.step for step in steps if step.needs_jobset]
    has_jobset = bool(gangs) and client.serves(jobset_resource())
    if gangs:
        yield _of_jobset(client, gangs, has_jobset)
    by_namespace = sorted(steps, key=lambda step: step.spec.namespace)
    for namespace, there in groupby(by_namespace, key=lambda step: step.spec.namespace):
        yield from _in_namespace(client, namespace, [*there], warnings, has_jobset)


def _of_jobset(client: KubernetesClient, gangs: list[str], is_served: bool) -> Row:
    resource = jobset_resource()
    if is_served:
        return Row(check="jobset", state=OK, text=f"{resource.group}/{resource.version} is served.")
    served = ", ".join(client.served_versions(resource.group))
    text = preflight.not_served(resource, gangs) + (f" Served there: {served}." if served else "")
    return Row(check="jobset", state=BROKEN, text=text)


def _in_namespace(
    client: KubernetesClient, namespace: str, steps: Sequence[StandIn], warnings: list[str], has_jobset: bool
) -> Iterator[Row]:
    names = tuple(step.step for step in steps)
    if isinstance(_got(client, _NAMESPACES, "", namespace), NotFound):
        yield check_rows.refused(f"There is no namespace {namespace}", names)
        return
    rights = rights_for(
        has_gangs=any(step.needs_jobset for step in steps), has_queue=any(step.queue for step in steps),
        has_appwrappers=any(step.backend.kind == "AppWrapper" for step in steps),
        gangs={step.spec.gang for step in steps if step.spec.gang and step.spec.world_size > 1},
    )  # fmt: skip
    allowed = _allowed(client, namespace, rights)
    yield from check_rows.of_rights(allowed, namespace)
    if not any(allowed.values()):
        return
    known: set[tuple[str, str]] = set()
    for alike in _alike(step for step in steps if has_jobset or not step.needs_jobset):
        for row in _dry_runs(client, alike, warnings):
            known |= {(row.check, name) for name in row.steps}
            yield row
    yield from (
        row for row in _named(client, namespace, steps) if not known.issuperset((row.check, name) for name in row.steps)
    )


def _allowed(client: KubernetesClient, namespace: str, rights: Sequence[Right]) -> dict[Right, bool]:
    jobset = jobset_resource().group

    def review(right: Right) -> bool:
        plural, _, subresource = right.resource.partition("/")
        attributes = {
            "namespace": namespace, "group": jobset if right.group == JOBSET else right.group, "resource": plural, "subresource": subresource, "verb": right.verb,
        }  # fmt: skip
        answer = client.create(_ACCESS_REVIEWS, "", {"spec": {"resourceAttributes": attributes}})
        return bool((answer.get("status") or {}).get("allowed"))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(rights, pool.map(review, rights), strict=True))


def _alike(steps: Iterable[StandIn]) -> list[list[StandIn]]:
    """Steps that differ in nothing but their names, together."""
    found: list[tuple[tuple[object, ...], list[StandIn]]] = []
    for step in steps:
        group = step.spec.groups[0]
        container = {**asdict(group.container), "name": "", "command": (), "env": ()}
        traits = (step.backend, step.spec.namespace, step.spec.service_account, step.spec.image_pull_secrets, step.queue)
        key = (*traits, container, group.placement, group.storage)
        known = next((others for other, others in found if other == key), None)
        if known is None:
            found.append((key, [step]))
        else:
            known.append(step)
    return [others for _, others in found]


def _dry_runs(client: KubernetesClient, steps: Sequence[StandIn], warnings: list[str]) -> Iterator[Row]:
    names, first = tuple(step.step for step in steps), steps[0]
    made = first.backend.build(first.spec)
    warnings.clear()
    is_fine = True
    posted = [(resource_of(first.backend), made), *((kind, part) for _, kind, part in parts(made))]
    for kind, manifest in posted:
        error = refusal(client, kind, manifest)
        if isinstance(error, Forbidden):  # the rows of permissions say it; running flows takes no right to create pods
            is_fine = is_fine and kind is PODS
        elif error is not None and not _is_older(error, first.backend, manifest):
            is_fine = False
            yield check_rows.refused(error, names)
            break
    if is_fine:
        yield Row(check="object", state=OK, text=f"The cluster would take the {made['kind']}.", steps=names)
        for text in dict.fromkeys(text for text in warnings if "PodSecurity" in text):
            yield check_rows.refused(text, names, state=WARNING)


def _is_older(error: ClusterError, backend: Backend, manifest: Manifest) -> bool:
    """Refused only for fields that an older JobSet doesn't know and that a run leaves out."""
    fields = unknown_fields(error)
    try:
        return bool(fields) and bool(backend.without_fields(manifest, fields))
    except InvalidSpec:
        return False


def _named(client: KubernetesClient, namespace: str, steps: Sequence[StandIn]) -> Iterator[Row]:
    """What steps name: queues, service accounts, volume claims. Who runs flows needs no right to read them, and often has it."""
    queues: dict[str, list[str]] = {}
    accounts: dict[str, list[str]] = {}
    claims: dict[str, list[str]] = {}
    for step in steps:
        if step.queue:
            queues.setdefault(step.queue, []).append(step.step)
        if step.spec.service_account:
            accounts.setdefault(step.spec.service_account, []).append(step.step)
        for claim in step.spec.groups[0].storage.claims:
            claims.setdefault(claim, []).append(step.step)
    local_queues = kueue_resource(client, "localqueues", "LocalQueue") if queues else None
    for queue, names in queues.items():
        found = _got(client, local_queues, namespace, queue) if local_queues else None
        yield check_rows.of_queue(queue, found, namespace, tuple(names))
    for check_name, resource, wanted in (("service account", _SERVICE_ACCOUNTS, accounts), ("volume claim", _CLAIMS, claims)):
        for name, names in wanted.items():
            row = check_rows.of_named(check_name, name, _got(client, resource, namespace, name), tuple(names))
            if row:
                yield row


def _got(client: KubernetesClient, resource: Resource, namespace: str, name: str) -> Mapping[str, Any] | ClusterError:
    try:
        return client.get(resource, namespace, name)
    except ClusterError as error:
        return error
