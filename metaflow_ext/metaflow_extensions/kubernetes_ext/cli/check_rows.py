"""What `kubernetes check` has found, as rows: from the cluster's answers to words. Pure.

`check` is one of a few stable names, for programs: api server, namespace, jobset, permission, object, pod security, quota, limit
range, service account, queue, volume claim, secret, datastore, image, python, node, network, webhook, pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..decorators import probe_script
from ..errors import ClusterError, Forbidden, NotFound
from ..spec.rights import ROLE_FILES, Right
from ..status.describe import sentence
from ..status.model import Category, Failure, Phase, WorkloadStatus
from ..status.reading import false_condition, text

OK, BROKEN, WARNING, UNKNOWN = "ok", "broken", "warning", "unknown"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One finding: a sentence, and what to do. `steps` are those that it is about; () for all."""

    check: str
    state: str
    text: str
    advice: str = ""
    steps: tuple[str, ...] = ()


def merged(rows: Iterable[Row]) -> list[Row]:
    """What is the same for several steps is told once."""
    found: dict[Row, list[str]] = {}
    for row in rows:
        found.setdefault(replace(row, steps=()), []).extend(row.steps)
    return [replace(row, steps=tuple(steps)) for row, steps in found.items()]


def lines(rows: Iterable[Row]) -> list[str]:
    return [f"{row.state:<8} {_subject(row)}: {' '.join(filter(None, (row.text, row.advice)))}" for row in rows]


def _subject(row: Row) -> str:
    return f"{row.check} of {', '.join(row.steps)}" if row.steps else row.check


# What a refusal or a reason for waiting is about, by words in its text, and what to do about it. The first that fits.
_ABOUT: Sequence[tuple[str, Collection[str], str]] = (
    (
        "namespace",
        ("There is no namespace", "is being terminated"),
        "Have it made, or choose another: @kubernetes(namespace=...), METAFLOW_KUBERNETES_NAMESPACE.",
    ),
    (
        "pod security",
        ("PodSecurity",),
        "Give the step what the level asks for with @kubernetes(security_context=...), or have the namespace's label "
        "pod-security.kubernetes.io/enforce changed.",
    ),
    (
        "quota",
        ("failed quota",),
        'The quota wants limits: @kubernetes(qos="guaranteed") sets them, or a LimitRange with defaults does.',
    ),
    ("quota", ("exceeded quota",), "Ask for less with @resources, or have the ResourceQuota raised."),
    (
        "limit range",
        ("usage per", "LimitRange", "limit to request ratio", "must be less than or equal to"),
        "Ask for a size that the LimitRange of the namespace allows, with @resources, or have it changed.",
    ),
    (
        "service account",
        ("service account", "serviceaccount"),
        "Have it made, or name another: @kubernetes(service_account=...), METAFLOW_KUBERNETES_SERVICE_ACCOUNT.",
    ),
    (
        "webhook",
        ("failed calling webhook",),
        "Its controller does not run, or can't be reached: ask the cluster's administrator.",
    ),
    ("volume claim", ("persistentvolumeclaim",), "Have it made, or name another: @kubernetes(persistent_volume_claims=...)."),
    ("secret", ("secret",), "Have it made, or correct @kubernetes(secrets=...) or METAFLOW_KUBERNETES_SECRETS."),
)


def refused(
    error: ClusterError | str, steps: tuple[str, ...], check: str = "object", state: str = BROKEN, advice: str = ""
) -> Row:
    """What the cluster does not accept, or what a pod waits for. `check` and `advice` where the text tells nothing better."""
    words = str(error)
    for about, signs, what_to_do in _ABOUT:
        if any(sign in words for sign in signs):
            return Row(check=about, state=state, text=sentence(words), advice=what_to_do, steps=steps)
    return Row(check=check, state=state, text=sentence(words), advice=advice, steps=steps)


def of_rights(allowed: Mapping[Right, bool], namespace: str) -> list[Row]:
    """A row for each that is missing. Where all are, there is one cause."""
    missing = [right for right, is_allowed in allowed.items() if not is_allowed]
    if not missing:
        return [Row(check="permission", state=OK, text=f"You may do all that is needed in namespace {namespace}.")]
    if len(missing) == len(allowed):
        return [
            Row(
                check="permission",
                state=BROKEN,
                text=f"You may do nothing in namespace {namespace}.",
                advice="Is it the right one? If so, have the Role of docs/rbac.yaml bound to you there.",
            )
        ]
    return [_missing(right, namespace) for right in missing]


def _missing(right: Right, namespace: str) -> Row:
    return Row(
        check="permission",
        state=WARNING if right.without else BROKEN,
        text=f"You may not {right} in namespace {namespace}" + (f": {right.without}." if right.without else "."),
        advice=f'Your Role needs the verb "{right.verb}" on "{right.resource}" in the API group "{right.group}" ({ROLE_FILES.get(right.group, "docs/rbac.yaml")}).',
    )


def of_queue(queue: str, found: Mapping[str, Any] | ClusterError | None, namespace: str, steps: tuple[str, ...]) -> Row:
    """`found` is the LocalQueue, why it can't be read, or None where there is no Kueue."""

    def row(state: str, words: str, advice: str = "") -> Row:
        return Row(check="queue", state=state, text=sentence(words), advice=advice, steps=steps)

    name = f"LocalQueue {queue} in namespace {namespace}"
    if found is None:
        return row(
            WARNING, f"Kueue is not installed, so nothing waits in queue {queue}", "Leave the label out, or have it installed."
        )
    if isinstance(found, NotFound):
        return row(BROKEN, f"There is no {name}", "Name one that there is in @kubernetes(queue=...), or have it made.")
    if isinstance(found, ClusterError):
        return row(UNKNOWN, f"{name} can't be read", "--probe tells more.")
    inactive = false_condition(found, "Active")
    if text(found, "spec", "stopPolicy") not in ("", "None"):
        return row(BROKEN, f"{name} is stopped ({text(found, 'spec', 'stopPolicy')})", "Have it started, or name another.")
    if inactive:
        return row(BROKEN, f"{name} is not active: {inactive.message or inactive.reason}", "Have it started, or name another.")
    return row(OK, f"{name} is there and active")


def of_named(check: str, name: str, found: Mapping[str, Any] | ClusterError, steps: tuple[str, ...]) -> Row | None:
    """Of an object that a step names. None where it can't be read: a dry run or a probe tells."""
    if isinstance(found, NotFound):
        advice = next(what_to_do for about, _, what_to_do in _ABOUT if about == check)
        return Row(check=check, state=BROKEN, text=f"There is no {check} {name}.", advice=advice, steps=steps)
    return None if isinstance(found, ClusterError) else Row(check=check, state=OK, text=f"{name} is there.", steps=steps)


# What a probe's exit code says (decorators.probe_script), and what to do. The end of its output has the details.
_EXITS: Mapping[int, tuple[str, str, str]] = {
    probe_script.NO_PYTHON: (
        "python", "The image has no command python.", "Use one with Python 3.8 or newer, or add a link to its python3."
    ),
    probe_script.OLD_PYTHON: ("python", "The Python of the image is too old.", "Use an image with Python 3.8 or newer."),
    probe_script.NO_DIRECTORY: (
        "image", "The working directory of the image can't be written.", "Set WORKDIR to one that its user may write."
    ),
    probe_script.UNREACHABLE: (
        "network", "", "Is the address right as pods see it, and does the network of the cluster let pods out to it?"
    ),
    probe_script.NO_SETUP: (
        "image",
        "The image can't be set up for Metaflow.",
        "It installs packages with pip, unless they are in the image and METAFLOW_SKIP_INSTALL_DEPENDENCIES=1 is set there.",
    ),
    probe_script.NO_PACKAGE: (
        "datastore", "A pod can't read the datastore.", "Have its service account or secret given the right to read it."
    ),
    probe_script.UNWRITABLE: (
        "datastore", "A pod can't write to the datastore.", "Have its service account or secret given the right to write it."
    ),
}  # fmt: skip


def of_probe(outcome: WorkloadStatus | ClusterError | None, queue: str, steps: tuple[str, ...]) -> Row:
    """`queue` is the one that it waited in, or ""."""
    if outcome is None or isinstance(outcome, Forbidden):
        return Row(check="pod", state=UNKNOWN, text=f"There was no probe: {outcome or 'interrupted.'}", steps=steps)
    if isinstance(outcome, ClusterError):
        return refused(outcome, steps)
    if outcome.phase is Phase.SUCCEEDED:
        words = "A pod gets its image, has Python 3.8 or newer, and reads and writes the datastore."
        return Row(check="pod", state=OK, text=words, steps=steps)
    return _failed(outcome.failure, steps) if outcome.failure else _waiting(outcome, queue, steps)


def _failed(failure: Failure, steps: tuple[str, ...]) -> Row:
    last = next((line.strip() for line in reversed(failure.last_lines) if line.strip()), "")
    known = _EXITS.get(failure.exit_code or 0)
    if known:
        check, words, advice = known
        return Row(check=check, state=BROKEN, text=" ".join(filter(None, (words, sentence(last)))), advice=advice, steps=steps)
    if failure.exit_code == 128 and '"bash"' in failure.summary:
        advice = "Use an image with bash and Python 3.8 or newer: Metaflow starts tasks with both."
        return Row(check="image", state=BROKEN, text="The image has no bash.", advice=advice, steps=steps)
    return Row(
        check="pod", state=BROKEN, text=" ".join(filter(None, (failure.summary, last))), advice=failure.resolution, steps=steps
    )


_WAITING = {Category.IMAGE_PULL: "image", Category.UNSCHEDULABLE: "node"}


def _waiting(status: WorkloadStatus, queue: str, steps: tuple[str, ...]) -> Row:
    waiting = status.waiting
    if waiting is None:
        return Row(check="pod", state=UNKNOWN, text="The probe did not end in time, and nothing says why.", steps=steps)
    words = waiting.summary
    if queue and waiting.category is Category.QUOTA and status.phase is Phase.QUEUED:
        is_closed = waiting.is_hopeless or any(sign in words for sign in ("inactive", "stopped", "not active"))
        advice = "Name another queue, or have this one made or started." if is_closed else "The rest is not looked at."
        return Row(check="queue", state=BROKEN if is_closed else WARNING, text=words, advice=advice, steps=steps)
    if waiting.category is Category.IMAGE_PULL:
        advice = "Correct @kubernetes(image=...), or give the registry's Secret in image_pull_secrets."
        return Row(
            check="image",
            state=BROKEN,
            text=f"{words} {sentence(waiting.detail)}" if waiting.detail else words,
            advice=advice,
            steps=steps,
        )
    return refused(words, steps, check=_WAITING.get(waiting.category, "pod"), advice=waiting.detail)
