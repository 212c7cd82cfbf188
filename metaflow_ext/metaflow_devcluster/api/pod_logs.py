"""GET pods/NAME/log: which container, with which options, and the refusals before there is a log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from .. import errors
from ..errors import ApiError, Cause
from .agent import LogOptions
from .context import Api, Request
from .requests import Target, is_true, whole_number

Object = dict[str, Any]


def log_options(pod: Object, query: Mapping[str, str]) -> LogOptions:
    """The options with the container filled in; 400 for a wrong one, 422 for wrong numbers."""
    name = pod["metadata"]["name"]
    numbers = {key: whole_number(query, key) for key in ("tailLines", "sinceSeconds", "limitBytes")}
    causes = [
        Cause(key, f"Invalid value: {value}: must be greater than {'or equal to 0' if key == 'tailLines' else '0'}")
        for key, value in numbers.items()
        if value is not None and value < (0 if key == "tailLines" else 1)
    ]
    if numbers["sinceSeconds"] is not None and query.get("sinceTime"):
        causes.append(Cause("", "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"))
    if causes:
        raise errors.invalid("PodLogOptions", "", name, causes)
    return LogOptions(
        container=container_of(pod, query.get("container", "")),
        follow=is_true(query.get("follow")),
        previous=is_true(query.get("previous")),
        timestamps=is_true(query.get("timestamps")),
        tail_lines=numbers["tailLines"],
        since_seconds=numbers["sinceSeconds"],
        since_time=query.get("sinceTime") or None,
        limit_bytes=numbers["limitBytes"],
    )


def container_of(pod: Object, wanted: str) -> str:
    """The container a request means: the named one, or the only one."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    containers = [container["name"] for container in spec.get("containers") or ()]
    initial = [container["name"] for container in spec.get("initContainers") or ()]
    if wanted:
        if wanted not in (*containers, *initial):
            raise errors.bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(containers) == 1:
        return str(containers[0])
    listed = f"[{' '.join(containers)}]"
    if initial:
        listed += f" or one of the init containers: [{' '.join(initial)}]"
    text = f"a container name must be specified for pod {name}, choose one of: {listed}"
    raise errors.bad_request(text)


def status_of(pod: Object, container: str) -> Object | None:
    status = pod.get("status") or {}
    found = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return next((item for item in found if item["name"] == container), None)


def _check_started(pod: Object, options: LogOptions) -> None:
    name, status = pod["metadata"]["name"], status_of(pod, options.container) or {}
    state, restarts = status.get("state") or {}, status.get("restartCount", 0)
    if options.previous:
        if not (status.get("lastState") or {}).get("terminated"):
            text = f'previous terminated container "{options.container}" in pod "{name}" not found'
            raise errors.bad_request(text)
        return
    if "running" in state or "terminated" in state or (restarts and (status.get("lastState") or {})):
        return
    reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
    verb = "trying and failing to pull image" if reason in ("ErrImagePull", "ImagePullBackOff") else reason
    text = f'container "{options.container}" in pod "{name}" is waiting to start: {verb}'
    raise errors.bad_request(text)


def pod_log(api: Api, target: Target, request: Request) -> AsyncIterator[bytes]:
    """The log in pieces; a pod without a node has an empty one."""
    pod = api.store.get("pods", target.namespace, target.name)
    options = log_options(pod, request.query)
    if not pod["spec"].get("nodeName"):
        return _nothing()
    _check_started(pod, options)
    if api.agent is None:
        raise ApiError(500, "InternalError", f"no node agent answers for node {pod['spec']['nodeName']}")
    return api.agent.read_log(pod, options)


async def _nothing() -> AsyncIterator[bytes]:
    nothing: tuple[bytes, ...] = ()
    for piece in nothing:
        yield piece
