"""What is remembered of pods, which of them speaks for a rank, and whether its end was its own."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.status.ends import is_own_end
from metaflow_extensions.kubernetes_ext.status.layout import jobset_layout
from metaflow_extensions.kubernetes_ext.status.model import PodRecord, RankStatus
from metaflow_extensions.kubernetes_ext.status.pods import current_records, rank_statuses, remember
from tests.builders_objects import Object, condition, make_jobset, make_pod, moment, record

RUNNING = make_pod("worker", 1)
DELETING = make_pod("worker", 1, deleting_at=9)
FAILED = make_pod("worker", 1, "Failed", exit_code=3)
KILLED = make_pod("worker", 1, "Failed", exit_code=143, deleting_at=9)
FAILED_THEN_DELETING = make_pod("worker", 1, "Failed", exit_code=3, deleting_at=14)


class TestRemember:
    def test_keeps_the_last_state_and_when_things_were_first_seen(self) -> None:
        records: dict[str, PodRecord] = {}
        for second, state in enumerate([RUNNING, FAILED, FAILED_THEN_DELETING]):
            records = remember(records, "MODIFIED", state, moment(second))
        assert records == {
            RUNNING["metadata"]["uid"]: PodRecord(
                object=FAILED_THEN_DELETING,
                seen_at=moment(2),
                first_seen_ended=moment(1),
                first_seen_deleting=moment(2),
                terminated_before_deletion=True,
            )
        }

    def test_a_deleted_pod_stays(self) -> None:
        kept = record(RUNNING, deleted=True)
        assert (kept.deleted, kept.first_seen_deleting, kept.terminated_before_deletion) == (True, moment(1), False)

    def test_a_late_state_does_not_bring_it_back(self) -> None:
        records = remember(remember({}, "DELETED", RUNNING, moment(0)), "MODIFIED", RUNNING, moment(1))
        assert [one.deleted for one in records.values()] == [True]

    @pytest.mark.parametrize("event_type", ["BOOKMARK", "ERROR", "", "NOTE"])
    def test_other_events_change_nothing(self, event_type: str) -> None:
        assert remember({}, event_type, RUNNING, moment(0)) == {}

    def test_an_object_without_a_name_is_nobody(self) -> None:
        assert remember({}, "ADDED", {"kind": "Pod"}, moment(0)) == {}

    def test_does_not_change_what_it_was_given(self) -> None:
        before: dict[str, PodRecord] = {}
        remember(before, "ADDED", RUNNING, moment(0))
        assert before == {}


@pytest.mark.parametrize(
    ("states", "is_own"),
    [
        pytest.param([RUNNING], False, id="it has not ended"),
        pytest.param([RUNNING, FAILED], True, id="ended, never deleted"),
        pytest.param([RUNNING, FAILED, FAILED_THEN_DELETING], True, id="ended, then deleted"),
        pytest.param([RUNNING, DELETING, KILLED], False, id="deleted, then ended by SIGTERM"),
        pytest.param(
            [RUNNING, DELETING, make_pod("worker", 1, "Failed", exit_code=137, deleting_at=9)],
            False,
            id="deleted, then killed after its grace period",
        ),
        pytest.param(
            [RUNNING, DELETING, make_pod("worker", 1, "Failed", exit_code=1, deleting_at=9)],
            False,
            id="deleted, then ended by its own signal handler",
        ),
        pytest.param([FAILED_THEN_DELETING], True, id="seen late: the end lies before the deletion"),
        pytest.param(
            [make_pod("worker", 1, "Failed", exit_code=3, finished_at=15, deleting_at=14)],
            False,
            id="seen late: the end lies after the deletion",
        ),
        pytest.param(
            [make_pod("worker", 1, "Failed", exit_code=143, finished_at=14, deleting_at=14)],
            False,
            id="seen late, in the same second: SIGTERM is the deletion's",
        ),
        pytest.param(
            [make_pod("worker", 1, "Failed", exit_code=3, finished_at=14, deleting_at=14)],
            True,
            id="seen late, in the same second: exit code 3 is its own",
        ),
        pytest.param(
            [make_pod("worker", 1, "Failed", exit_code=137, reason="OOMKilled", finished_at=14, deleting_at=14)],
            True,
            id="seen late, in the same second: out of memory is its own",
        ),
    ],
)
def test_whether_an_end_was_its_own(states: list[Object], is_own: bool) -> None:
    assert is_own_end(record(*states)) is is_own
    if len(states) == 1:
        assert is_own_end(PodRecord(object=states[0])) is is_own


def rank(*records: PodRecord, attempt: int = 0, resumed_at: float | None = None) -> RankStatus:
    layout = jobset_layout(make_jobset())
    chosen = current_records(records, layout, attempt, None if resumed_at is None else moment(resumed_at))
    return rank_statuses(chosen, layout)[2]


def bare(*args: Any, **fields: Any) -> PodRecord:
    return PodRecord(object=make_pod("worker", 1, *args, **fields))


OLD, NEW = bare(suffix="older", created_at=1), bare(suffix="newer", created_at=5)


@pytest.mark.parametrize(
    ("records", "chosen"),
    [
        pytest.param([OLD, NEW], "newer", id="the newest"),
        pytest.param([NEW, OLD], "newer", id="in whatever order they were listed"),
        pytest.param([bare(suffix="older", deleting_at=4), NEW], "newer", id="one that is being deleted hides nothing"),
        pytest.param([OLD, bare(suffix="newer", created_at=5, deleting_at=6)], "older", id="not even when it is newer"),
        pytest.param([OLD, bare(suffix="newer", created_at=1)], "newer", id="created in the same second: the one seen last"),
        pytest.param(
            [bare("Failed", exit_code=1, suffix="older"), bare("Pending", suffix="newer", created_at=3)],
            "newer",
            id="a replacement",
        ),
        pytest.param(
            [bare("Failed", exit_code=1, suffix="older"), bare("Failed", exit_code=2, suffix="newer", created_at=3)],
            "newer",
            id="the last of several that failed",
        ),
        pytest.param([OLD, bare(suffix="newer", created_at=9, attempt=1)], "older", id="only pods of the current attempt"),
    ],
)
def test_which_pod_speaks_for_a_rank(records: list[PodRecord], chosen: str) -> None:
    assert rank(*records).pod == f"js-1-worker-0-1-{chosen}"


def test_pods_that_a_suspension_took_away_say_nothing() -> None:
    killed = record(make_pod("worker", 1, created_at=3), deleted=True)
    assert rank(killed, resumed_at=10).pod == ""
    assert rank(killed, resumed_at=2).phase == "Deleted"
    assert rank(bare(created_at=3), resumed_at=10).phase == "Running"


@pytest.mark.parametrize(
    ("known", "fields"),
    [
        pytest.param(bare(), {"phase": "Running", "node": "node-1", "started_at": moment(1), "exit_code": None}, id="running"),
        pytest.param(bare(conditions=[condition("Ready")]), {"ready": True}, id="ready"),
        pytest.param(bare("Pending", node=""), {"phase": "Pending", "node": "", "ready": False}, id="pending"),
        pytest.param(
            bare("Pending", waiting="ImagePullBackOff", message="Back-off"),
            {"phase": "Pending", "reason": "ImagePullBackOff", "message": "Back-off"},
            id="waiting for its image",
        ),
        pytest.param(
            bare("Failed", exit_code=3),
            {"phase": "Failed", "exit_code": 3, "reason": "Error", "finished_at": moment(10), "is_collateral": False},
            id="failed",
        ),
        pytest.param(bare(exit_code=3), {"phase": "Failed", "exit_code": 3}, id="failed, though a sidecar still runs"),
        pytest.param(
            bare("Succeeded", exit_code=0), {"phase": "Succeeded", "exit_code": 0, "is_collateral": False}, id="succeeded"
        ),
        pytest.param(
            record(DELETING, KILLED), {"phase": "Failed", "exit_code": 143, "is_collateral": True}, id="killed by clean-up"
        ),
        pytest.param(
            record(DELETING, KILLED, deleted=True), {"phase": "Deleted", "exit_code": 143, "is_collateral": True}, id="and gone"
        ),
        pytest.param(record(RUNNING, deleted=True), {"phase": "Deleted", "exit_code": None}, id="gone without an end"),
        pytest.param(
            record(RUNNING, FAILED, deleted=True), {"phase": "Failed", "exit_code": 3}, id="failed by itself, then removed"
        ),
        pytest.param(
            record(make_pod("worker", 1, "Succeeded", exit_code=0), deleted=True),
            {"phase": "Succeeded"},
            id="succeeded, then removed",
        ),
        pytest.param(
            bare("Failed", pod_reason="Evicted", pod_message="low on memory", conditions=[condition("DisruptionTarget")]),
            {"phase": "Failed", "reason": "Evicted", "message": "low on memory", "exit_code": None, "is_collateral": False},
            id="evicted",
        ),
        pytest.param(bare("Unknown"), {"phase": "Unknown"}, id="a phase kept as text"),
        pytest.param(bare(annotations_only=True), {"phase": "Pending", "pod": ""}, id="no labels at all: not this gang's"),
    ],
)
def test_what_a_rank_says(known: PodRecord, fields: dict[str, Any]) -> None:
    if known.object["metadata"].get("annotations"):
        known.object["metadata"]["annotations"].pop("jobset.sigs.k8s.io/replicatedjob-name")
    status = rank(known)
    assert (status.role, status.rank, status.index) == ("worker", 2, 1)
    assert {key: getattr(status, key) for key in fields} == fields


def test_indexes_in_annotations_only() -> None:
    """As clusters before Kubernetes 1.28 write them."""
    assert rank(bare(annotations_only=True)).phase == "Running"


def test_container_restarts_are_counted() -> None:
    known = bare()
    known.object["status"]["containerStatuses"][0]["restartCount"] = 2
    assert rank(known).restarts == 2
