"""Creates an object exactly once over a network that loses answers.

An error does not tell whether the object was made. So every object carries a random annotation of its submission
(`labels.SUBMISSION`): one that is found with ours is ours, one without is somebody else's and never touched.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ..backends.base import Backend, Manifest
from ..cluster.failures import unknown_fields
from ..cluster.protocol import ClusterClient, Resource
from ..cluster.retry import DEFAULT_BACKOFF, Backoff, Trouble, pause
from ..errors import ClusterError, Conflict, Forbidden, NotFound, Rejected, Unavailable
from ..spec import labels
from .clock import Clock
from .resources import kubectl_delete, resource_of

_MOST_NAMES = 5


def stamped(manifest: Mapping[str, Any]) -> Manifest:
    """The manifest with an annotation of its submission; one that has it is returned as it is."""
    metadata = manifest.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if annotations.get(labels.SUBMISSION):
        return dict(manifest)
    annotations = {**annotations, labels.SUBMISSION: uuid.uuid4().hex}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def is_ours(found: Mapping[str, Any], manifest: Mapping[str, Any]) -> bool:
    """Whether `found` was made by this submission of `manifest`."""
    ours, theirs = ((obj.get("metadata") or {}).get("annotations") or {} for obj in (manifest, found))
    return bool(ours.get(labels.SUBMISSION)) and ours.get(labels.SUBMISSION) == theirs.get(labels.SUBMISSION)


def submit(
    client: ClusterClient,
    kind: Backend | Resource,
    manifest: Mapping[str, Any],
    *,
    namespace: str,
    clock: Clock,
    patience: float = 300.0,
    rename: Callable[[Manifest], Manifest] | None = None,
    without: Callable[[Manifest, Collection[str]], Manifest] | None = None,
    backoff: Backoff = DEFAULT_BACKOFF,
    on_trouble: Trouble | None = None,
) -> dict[str, Any]:
    """Creates `manifest` and returns the object as the server has it.

    What passes (no answer, 429, 5xx, an object of that name that is being deleted) is retried for `patience` seconds; then
    Unavailable or Conflict. A name that somebody else uses is changed by `rename`; without it: Conflict. Fields that the server
    refuses because it doesn't know them are taken out by `without` (`Backend.without_fields`). What cannot heal
    (400, 403, 404, 422) is raised at once: Rejected, Forbidden, NotFound. `on_trouble` hears of failed tries.
    """
    resource = kind if isinstance(kind, Resource) else resource_of(kind)
    return _Submission(client, resource, stamped(manifest), namespace, clock, rename, without, on_trouble).run(
        patience, backoff
    )


def withdraw(client: ClusterClient, kind: Backend | Resource, manifest: Mapping[str, Any], *, namespace: str) -> bool:
    """Delete what an interrupted `submit` of `manifest` may have created; never somebody else's object. Raises ClusterError.

    Whether there was something to delete. Name and annotation of the submission are all that is read of `manifest`.
    """
    resource = kind if isinstance(kind, Resource) else resource_of(kind)
    name = str(manifest["metadata"]["name"])
    try:
        found = client.get(resource, namespace, name)
    except NotFound:
        return False
    if not is_ours(found, manifest):
        return False
    client.delete(resource, namespace, name, propagation="Background", uid=str(found["metadata"].get("uid") or ""))
    return True


class _Passing(Exception):
    """A conflict that time heals. Its argument is the ClusterError to raise if it does not in time."""


class _Submission:
    def __init__(
        self,
        client: ClusterClient,
        resource: Resource,
        manifest: Manifest,
        namespace: str,
        clock: Clock,
        rename: Callable[[Manifest], Manifest] | None,
        without: Callable[[Manifest, Collection[str]], Manifest] | None,
        on_trouble: Trouble | None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._manifest = manifest
        self._namespace = namespace
        self._clock = clock
        self._rename = rename
        self._without = without
        self._is_strict = without is not None
        self._tell = on_trouble or (lambda error: None)
        self._names = 1
        self._may_exist = False  # a try under this name had no clear answer

    @property
    def _name(self) -> str:
        return str(self._manifest["metadata"]["name"])

    def run(self, patience: float, backoff: Backoff) -> dict[str, Any]:
        give_up_at = self._clock.monotonic() + patience
        in_trouble = False
        for delay in backoff.delays():
            try:
                created = self._attempt()
            except (Unavailable, _Passing) as caught:
                error = caught if isinstance(caught, Unavailable) else caught.args[0]
                in_trouble = True
                self._tell(error)
                wait = pause(delay, error)
                if self._clock.monotonic() + wait > give_up_at:
                    raise self._last_word(error) from error
                self._clock.sleep(wait)
            else:
                if in_trouble:
                    self._tell(None)
                return created
        raise AssertionError("delays never end")

    def _attempt(self) -> dict[str, Any]:
        """One try. Unavailable and _Passing are worth another, other errors are final."""
        try:
            if self._may_exist:
                found = self._find()
                if found is not None and is_ours(found, self._manifest):
                    return found
            return self._client.create(self._resource, self._namespace, self._manifest, strict=self._is_strict)
        except Unavailable:
            self._may_exist = True
            raise
        except Conflict as error:
            if error.reason != "AlreadyExists":
                raise _Passing(error) from error  # such as a quota that two requests change at once
            return self._resolve(error)
        except (Rejected, Forbidden, NotFound) as error:
            unknown = unknown_fields(error)
            if unknown and self._without is not None:
                self._manifest, self._without = self._without(self._manifest, unknown), None
                return self._attempt()
            # The lost try may have used up the very quota that this one is refused for.
            found = self._find() if self._may_exist else None
            if found is None or not is_ours(found, self._manifest):
                raise
            return found

    def _resolve(self, error: Conflict) -> dict[str, Any]:
        """What to do about an object of our name: take ours, wait for one that goes, give way to somebody else's."""
        found = self._find()
        if found is None:
            raise _Passing(error) from error  # gone meanwhile
        if is_ours(found, self._manifest):
            return found
        what = f"{self._resource.kind} {self._name} in namespace {self._namespace}"
        if (found.get("metadata") or {}).get("deletionTimestamp"):
            raise _Passing(Conflict(f"An earlier {what} is still being deleted.", status=409, reason=error.reason))
        if self._rename is None or self._names >= _MOST_NAMES:
            advice = f"`{kubectl_delete(self._resource, self._namespace, self._name)}` removes it, if it is not needed."
            raise Conflict(f"{what} exists already and is not of this run. {advice}", status=409, reason=error.reason)
        self._manifest = self._rename(self._manifest)
        self._names += 1
        self._may_exist = False
        return self._attempt()

    def _find(self) -> dict[str, Any] | None:
        try:
            return self._client.get(self._resource, self._namespace, self._name)
        except NotFound:
            return None

    def _last_word(self, error: ClusterError) -> ClusterError:
        if not self._may_exist:
            return error
        command = kubectl_delete(self._resource, self._namespace, self._name)
        return type(error)(
            f"{error} It is unknown whether {self._resource.kind} {self._name} was created; `{command}` removes it.",
            status=error.status,
            reason=error.reason,
            body=error.body,
            retry_after=error.retry_after,
        )
