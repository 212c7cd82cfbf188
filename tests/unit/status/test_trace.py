"""Recorded watch events become Observations; lines of any kind are welcome."""

from __future__ import annotations

import json
from typing import Any

from metaflow_extensions.kubernetes_ext.status.jobset import jobset_status
from metaflow_extensions.kubernetes_ext.status.model import Phase
from metaflow_extensions.kubernetes_ext.status.trace import observations, parse_trace, replay
from tests.builders_objects import condition, make_event, make_gang_pods, make_job, make_jobset, make_pod, make_queued, moment


def entry(t: float, obj: Any, event_type: str = "ADDED") -> dict[str, Any]:
    return {"t": t, "type": event_type, "object": obj}


def test_each_line_adds_what_it_says() -> None:
    entries = [
        entry(0.1, make_jobset()),
        entry(0.2, make_job()),
        entry(0.3, make_pod()),
        entry(0.4, make_event("Surprise", "text")),
        entry(0.5, make_queued()),
    ]
    last = list(observations(entries))[-1]
    assert (last.at, last.workload, last.was_seen) == (moment(0.5), make_jobset(), True)
    assert (len(last.jobs), len(last.pods), len(last.events), last.admission) == (1, 1, 1, make_queued())


def test_deletions() -> None:
    entries = [
        entry(0, make_jobset()),
        entry(1, make_job()),
        entry(2, make_pod()),
        *(entry(3, obj, "DELETED") for obj in (make_jobset(), make_job(), make_pod())),
    ]
    last = list(observations(entries))[-1]
    assert (last.workload, last.was_seen, last.jobs, [one.deleted for one in last.pods]) == (None, True, (), [True])


def test_notes_and_other_kinds_only_let_time_pass() -> None:
    entries = [
        entry(0, make_jobset()),
        entry(5, {"kind": "Note", "message": "client: DELETE"}, "NOTE"),
        entry(6, {"kind": "AppWrapper", "metadata": {"name": "aw"}}),
        {"t": 7},
        {},
        entry(8, None),
        entry(9, "text"),
    ]
    seen = list(observations(entries))
    assert [one.at for one in seen] == [moment(t) for t in (0, 5, 6, 7, 0, 8, 9)]
    assert {str(one.workload) for one in seen} == {str(make_jobset())}


def test_the_jobset_in_question_is_the_one_created_at_zero() -> None:
    entries = [entry(-3, make_jobset(name="blocker")), entry(0, make_jobset())]
    assert [one.workload for one in observations(entries)] == [None, make_jobset()]
    named = list(observations(entries, workload="blocker"))
    assert [one.workload for one in named] == [make_jobset(name="blocker")] * 2


def test_a_queue_entry_of_another_object_is_not_ours() -> None:
    other = make_queued()
    other["metadata"]["ownerReferences"][0]["uid"] = "other"
    assert list(observations([entry(0, make_jobset()), entry(1, other)]))[-1].admission is None


def test_replay_judges_each_line_knowing_the_one_before() -> None:
    entries = [
        entry(0, make_jobset()),
        *(entry(1, pod) for pod in make_gang_pods()),
        entry(2, make_jobset(condition("Completed")), "MODIFIED"),
        entry(3, make_jobset(), "DELETED"),
    ]
    phases = [status.phase for status in replay(entries, jobset_status)]
    assert phases == [Phase.PENDING, *[Phase.STARTING] * 3, Phase.RUNNING, Phase.SUCCEEDED, Phase.SUCCEEDED]


def test_lines_that_are_no_objects_are_left_out() -> None:
    assert parse_trace([json.dumps(entry(0, {})), "", "{", "[]", "3"]) == [entry(0, {})]


def test_an_empty_trace_has_no_observations() -> None:
    assert list(observations([])) == []
