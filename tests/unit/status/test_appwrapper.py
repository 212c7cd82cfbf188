"""AppWrappers: whose word counts, and what is said between a failure and the AppWrapper's decision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.status.appwrapper import appwrapper_status
from metaflow_extensions.kubernetes_ext.status.model import Observation, Phase
from tests.builders_objects import Object, condition, make_gang_pods, make_jobset, make_pod, observe

OWNER = [{"kind": "AppWrapper", "name": "aw", "uid": "uid-aw"}]
FAILED = condition("Failed", reason="FailedJobs")


def wrapper(phase: str, limit: str = "1", resets: int = 0, suspend: bool = False) -> Object:
    annotations = {f"{labels.APPWRAPPER}retryLimit": limit} if limit else {}
    return {
        "kind": "AppWrapper",
        "metadata": {"name": "aw", "namespace": "default", "uid": "uid-aw", "annotations": annotations},
        "spec": {"suspend": suspend, "components": [{"template": make_jobset()}]},
        "status": {"phase": phase, "resettingCount": resets},
    }


def jobset(*conditions: Object) -> Object:
    found = make_jobset(*conditions)
    return {**found, "metadata": {**found["metadata"], "ownerReferences": OWNER}}


def seen(workload: Object, wrapped: Object | None, *pods: Object, **fields: Any) -> Observation:
    return replace(observe(workload, pods), wrapped=wrapped, **fields)


def test_while_its_gang_runs_it_is_as_its_gang() -> None:
    status = appwrapper_status(seen(wrapper("Running"), jobset(), *make_gang_pods()))
    assert status.phase is Phase.RUNNING
    assert [rank.phase for rank in status.ranks] == ["Running"] * 4


@pytest.mark.parametrize(
    ("phase", "limit", "resets", "text"),
    [
        pytest.param("Running", "1", 0, "The AppWrapper decides whether to start it again: Worker 1", id="undecided"),
        pytest.param("Running", "", 0, "The AppWrapper decides whether to start it again: Worker 1", id="its own limit"),
        pytest.param("Running", "1", 1, "The AppWrapper has no try left: Worker 1", id="the limit is reached"),
        pytest.param("Running", "0", 0, "The AppWrapper has no try left: Worker 1", id="no retries"),
        pytest.param("Resetting", "1", 0, "The AppWrapper starts it again: Worker 1", id="decided"),
    ],
)
def test_after_a_failure_it_says_what_comes(phase: str, limit: str, resets: int, text: str) -> None:
    culprit = make_pod("worker", 1, phase="Failed", exit_code=3)
    status = appwrapper_status(seen(wrapper(phase, limit, resets), jobset(FAILED), culprit))
    assert status.phase is Phase.STARTING
    assert status.waiting is not None
    assert status.waiting.summary.startswith(text), status.waiting


def test_its_own_word_makes_the_failure_final_and_the_pods_say_why() -> None:
    culprit = make_pod("worker", 1, phase="Failed", exit_code=3)
    status = appwrapper_status(seen(wrapper("Failed"), jobset(FAILED), culprit, wrapped_is_gone=True))
    assert (status.phase, status.failure and status.failure.exit_code) == (Phase.FAILED, 3)


def test_a_failure_of_which_nothing_was_seen_is_still_one() -> None:
    status = appwrapper_status(seen(wrapper("Failed"), None))
    assert status.phase is Phase.FAILED
    assert status.failure is not None
    assert "nothing is left to say why" in status.failure.summary


def test_suspended_it_has_no_ranks_whatever_was_seen_before() -> None:
    status = appwrapper_status(seen(wrapper("Suspended", suspend=True), jobset(), *make_gang_pods(), wrapped_is_gone=True))
    assert (status.phase, status.ranks) == (Phase.QUEUED, ())


def test_what_another_try_has_left_is_not_taken_for_the_present() -> None:
    """Pods of an earlier try have the same names and another owner."""
    old = make_pod("worker", 1, phase="Failed", exit_code=3)
    now = jobset()
    now["metadata"]["uid"] = "uid-of-the-second-try"
    status = appwrapper_status(seen(wrapper("Running", resets=1), now, old))
    assert (status.phase, status.restarts, status.failure) == (Phase.STARTING, 1, None)
