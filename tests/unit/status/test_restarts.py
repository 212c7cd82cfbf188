"""Whether a JobSet starts again after a Job has failed, as its controller decides."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.status.job_evidence import failure_condition
from metaflow_extensions.kubernetes_ext.status.restarts import is_restart_left, tolerates_disruption
from tests.builders_objects import condition, make_job, make_jobset

DISRUPTION = "Pod default/p has condition DisruptionTarget matching FailJob rule at index 0"
IGNORING = {
    "action": "RestartJobSetAndIgnoreMaxRestarts",
    "onJobFailureReasons": ["PodFailurePolicy"],
    "onJobFailureMessagePatterns": [".*has condition DisruptionTarget.*"],
}


@pytest.mark.parametrize(
    ("policy", "status", "job", "is_left"),
    [
        pytest.param(None, {}, {}, False, id="no policy"),
        pytest.param({}, {}, {}, False, id="an empty policy"),
        pytest.param({"maxRestarts": 0}, {}, {}, False, id="no restarts"),
        pytest.param({"maxRestarts": 1}, {}, {}, True, id="one left"),
        pytest.param({"maxRestarts": 1}, {"restarts": 1}, {"attempt": 1}, False, id="none left"),
        pytest.param({"maxRestarts": 1}, {"restarts": 0}, {"attempt": 1}, False, id="none left, but the JobSet lags behind"),
        pytest.param(
            {"maxRestarts": 2},
            {"restarts": 2, "restartsCountTowardsMax": 1},
            {"attempt": 2},
            True,
            id="only some restarts count",
        ),
        pytest.param({"maxRestarts": 0, "rules": [IGNORING]}, {}, {"message": DISRUPTION}, True, id="a disruption is free"),
        pytest.param({"maxRestarts": 0, "rules": [IGNORING]}, {}, {"message": "exit code 3"}, False, id="a user error is not"),
        pytest.param(
            {"maxRestarts": 1, "rules": [IGNORING]},
            {"restarts": 1},
            {"attempt": 1, "message": "exit 3"},
            True,
            id="a free one did not count",
        ),
        pytest.param(
            {"maxRestarts": 3, "rules": [{"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}]},
            {},
            {},
            False,
            id="a rule that fails at once",
        ),
        pytest.param(
            {"maxRestarts": 3, "rules": [{"action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]}]},
            {},
            {},
            True,
            id="a rule for another reason",
        ),
        pytest.param(
            {"maxRestarts": 3, "rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["control"]}]},
            {},
            {},
            True,
            id="for another role",
        ),
        pytest.param(
            {"maxRestarts": 0, "rules": [{"action": "Novelty"}]}, {}, {}, True, id="an unknown action may well restart"
        ),
        pytest.param(
            {
                "maxRestarts": 0,
                "rules": [{"action": "FailJobSet", "onJobFailureMessagePatterns": ["("]}, {"action": "Novelty"}],
            },
            {},
            {},
            True,
            id="a pattern that is none matches nothing",
        ),
        pytest.param(
            {"maxRestarts": "3", "rules": "x"}, {"restarts": "1"}, {}, True, id="numbers as strings, rules of a wrong type"
        ),
    ],
)
def test_restart_left(policy: Any, status: dict[str, Any], job: dict[str, Any], is_left: bool) -> None:
    jobset = make_jobset(failure_policy=policy, status=status)
    failed = make_job(
        condition("FailureTarget", reason="PodFailurePolicy", message=job.get("message", "")), attempt=job.get("attempt", 0)
    )
    found = failure_condition(failed)
    assert found is not None
    assert is_restart_left(jobset, failed, found) is is_left


def policy(action: str, kind: str = "DisruptionTarget") -> dict[str, Any]:
    return {"rules": [{"action": action, "onPodConditions": [{"type": kind, "status": "True"}]}]}


@pytest.mark.parametrize(
    ("spec", "tolerates"),
    [
        pytest.param({}, True, id="six more, by default"),
        pytest.param({"backoffLimit": 0}, False, id="no more"),
        pytest.param({"backoffLimit": 0, "podFailurePolicy": policy("Ignore")}, True, id="disruptions are ignored"),
        pytest.param({"backoffLimit": 6, "podFailurePolicy": policy("FailJob")}, False, id="disruptions fail it"),
        pytest.param({"backoffLimit": 6, "podFailurePolicy": policy("Count")}, True, id="disruptions count"),
        pytest.param({"backoffLimit": 0, "podFailurePolicy": policy("Ignore", "Other")}, False, id="another condition"),
    ],
)
def test_tolerates_disruption(spec: dict[str, Any], tolerates: bool) -> None:
    assert tolerates_disruption(spec) is tolerates
