"""From the cluster's answers to the lines of `kubernetes check`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cli.check_rows import (
    BROKEN,
    OK,
    UNKNOWN,
    WARNING,
    Row,
    lines,
    merged,
    of_named,
    of_probe,
    of_queue,
    of_rights,
    refused,
)  # fmt: skip
from metaflow_extensions.kubernetes_ext.decorators import probe_script
from metaflow_extensions.kubernetes_ext.errors import ClusterError, Forbidden, NotFound, Rejected
from metaflow_extensions.kubernetes_ext.spec.rights import RIGHTS
from metaflow_extensions.kubernetes_ext.status.model import Category, Failure, Phase, Waiting, WorkloadStatus

STEPS = ("train",)


def test_a_line_is_the_state_the_subject_what_is_wrong_and_what_to_do() -> None:
    rows = [Row(check="quota", state=BROKEN, text="It is full.", advice="Ask for less.", steps=("a", "b"))]
    assert lines(rows) == ["broken   quota of a, b: It is full. Ask for less."]
    assert lines([Row(check="jobset", state=OK, text="It is served.")]) == ["ok       jobset: It is served."]


def test_what_is_the_same_for_several_steps_is_told_once() -> None:
    row = Row(check="object", state=OK, text="Fine.", steps=("a",))
    other = Row(check="object", state=OK, text="Other.", steps=("c",))
    assert merged([row, other, replace(row, steps=("b",))]) == [replace(row, steps=("a", "b")), other]


def test_missing_rights_have_a_line_each_and_say_what_is_lost() -> None:
    allowed = {right: str(right) not in ("create jobs.batch", "watch pods") for right in RIGHTS}
    rows = of_rights(allowed, "team")
    assert [(row.state, row.text) for row in rows] == [
        (BROKEN, "You may not create jobs.batch in namespace team."),
        (WARNING, "You may not watch pods in namespace team: they are listed now and then instead."),
    ]
    assert rows[0].advice == 'Your Role needs the verb "create" on "jobs" in the API group "batch" (docs/rbac.yaml).'


def test_no_right_at_all_is_one_line() -> None:
    (row,) = of_rights(dict.fromkeys(RIGHTS, False), "team")
    assert (row.state, row.text) == (BROKEN, "You may do nothing in namespace team.")
    assert [row.state for row in of_rights(dict.fromkeys(RIGHTS, True), "team")] == [OK]


INACTIVE = {"status": {"conditions": [{"type": "Active", "status": "False", "message": "ClusterQueue is stopped"}]}}


@pytest.mark.parametrize(
    ("found", "state", "words"),
    [
        pytest.param(None, WARNING, "Kueue is not installed", id="no Kueue"),
        pytest.param(NotFound("no"), BROKEN, "There is no LocalQueue team in namespace ns", id="no such queue"),
        pytest.param(Forbidden("no"), UNKNOWN, "can't be read", id="not to be read"),
        pytest.param({"spec": {"stopPolicy": "HoldAndDrain"}}, BROKEN, "is stopped (HoldAndDrain)", id="stopped"),
        pytest.param(INACTIVE, BROKEN, "is not active: ClusterQueue is stopped", id="its ClusterQueue is stopped"),
        pytest.param({"spec": {"stopPolicy": "None"}}, OK, "is there", id="there"),
    ],
)
def test_queues(found: Any, state: str, words: str) -> None:
    row = of_queue("team", found, "ns", STEPS)
    assert (row.check, row.state, words in row.text) == ("queue", state, True), row


def test_named_objects_that_can_not_be_read_have_no_line() -> None:
    assert of_named("volume claim", "data", Forbidden("no"), STEPS) is None
    missing = of_named("volume claim", "data", NotFound("no"), STEPS)
    assert missing is not None
    assert (missing.state, missing.text) == (BROKEN, "There is no volume claim data.")
    assert "persistent_volume_claims" in missing.advice


@pytest.mark.parametrize(
    ("text", "check"),
    [
        pytest.param("There is no namespace x on this cluster", "namespace", id="namespace"),
        pytest.param('violates PodSecurity "restricted:latest": ... secret volumes', "pod security", id="pod security"),
        pytest.param("failed quota: limit: must specify limits.cpu for: train", "quota", id="a quota that wants limits"),
        pytest.param("exceeded quota: limit, requested: pods=1", "quota", id="a quota that is used up"),
        pytest.param("maximum memory usage per Container is 1Gi, but limit is 2Gi", "limit range", id="limit range"),
        pytest.param('error looking up service account a/b: serviceaccount "b" not found', "service account", id="account"),
        pytest.param('failed calling webhook "mjobset.kb.io": connection refused', "webhook", id="a webhook that is down"),
        pytest.param("metadata.labels: Invalid value", "object", id="anything else"),
    ],
)
def test_a_refusal_is_named_by_its_text(text: str, check: str) -> None:
    row = refused(Rejected(text), STEPS)
    assert (row.check, row.state) == (check, BROKEN)
    assert text in row.text
    assert row.advice or check == "object"


def ended(code: int | None, *last_lines: str, summary: str = "The task (pod p) failed.") -> WorkloadStatus:
    failure = Failure(
        category=Category.USER_ERROR, summary=summary, resolution="Correct it.", exit_code=code, last_lines=last_lines
    )
    return WorkloadStatus(phase=Phase.FAILED, size=1, failure=failure)


def waiting(category: Category, summary: str, phase: Phase = Phase.STARTING, detail: str = "") -> WorkloadStatus:
    return WorkloadStatus(phase=phase, size=1, waiting=Waiting(category=category, summary=summary, detail=detail))


DONE = WorkloadStatus(phase=Phase.SUCCEEDED, size=1)
SILENT = WorkloadStatus(phase=Phase.RUNNING, size=1)
NO_BASH = 'The task could not start its command: exec: "bash": executable file not found in $PATH.'


@pytest.mark.parametrize(
    ("outcome", "check", "state", "words"),
    [
        pytest.param(DONE, "pod", OK, "gets its image", id="all is there"),
        pytest.param(ended(probe_script.NO_PYTHON), "python", BROKEN, "no command python", id="no python"),
        pytest.param(ended(probe_script.OLD_PYTHON, "It is Python 3.6."), "python", BROKEN, "It is Python 3.6.", id="old"),
        pytest.param(ended(probe_script.UNREACHABLE, "x", "Refused.", ""), "network", BROKEN, "Refused.", id="network"),
        pytest.param(ended(probe_script.UNWRITABLE, "AccessDenied"), "datastore", BROKEN, "AccessDenied.", id="read-only"),
        pytest.param(ended(128, summary=NO_BASH), "image", BROKEN, "The image has no bash.", id="no bash"),
        pytest.param(ended(137, "Killed"), "pod", BROKEN, "The task (pod p) failed. Killed", id="another end"),
        pytest.param(waiting(Category.IMAGE_PULL, "No image.", detail="not found"), "image", BROKEN, "not found.", id="image"),
        pytest.param(waiting(Category.UNSCHEDULABLE, "No node."), "node", BROKEN, "No node.", id="node"),
        pytest.param(
            waiting(Category.UNSCHEDULABLE, 'No node: persistentvolumeclaim "x" not found.'),
            "volume claim",
            BROKEN,
            "x",
            id="claim",
        ),
        pytest.param(waiting(Category.REJECTED, 'It can\'t: secret "x" not found.'), "secret", BROKEN, "x", id="secret"),
        pytest.param(waiting(Category.QUOTA, "Waits in q.", Phase.QUEUED), "queue", WARNING, "Waits", id="a full queue"),
        pytest.param(waiting(Category.QUOTA, "q is inactive.", Phase.QUEUED), "queue", BROKEN, "inactive", id="stopped"),
        pytest.param(SILENT, "pod", UNKNOWN, "did not end in time", id="a probe that runs on"),
        pytest.param(Forbidden("Not allowed."), "pod", UNKNOWN, "Not allowed.", id="a probe that may not be"),
        pytest.param(Rejected("exceeded quota"), "quota", BROKEN, "exceeded quota", id="a Job that is refused"),
        pytest.param(None, "pod", UNKNOWN, "interrupted", id="interrupted"),
    ],
)
def test_probes(outcome: WorkloadStatus | ClusterError | None, check: str, state: str, words: str) -> None:
    row = of_probe(outcome, "q", STEPS)
    assert (row.check, row.state, words in row.text) == (check, state, True), row
