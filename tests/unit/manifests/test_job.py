"""Jobs: every rank once, no retries, and a condition that names pod and exit code."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.manifests.job import job
from tests.builders import make_container, make_group, make_spec


def test_a_job_of_two_groups_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="has 2 groups"):
        job(make_spec(2))


@pytest.mark.parametrize(("replicas", "mode"), [(1, None), (2, "Indexed")])
def test_only_a_job_of_more_than_one_rank_is_indexed(replicas: int, mode: str | None) -> None:
    body = job(make_spec(groups=(make_group("task", replicas),)))["spec"]
    assert (body["completions"], body["parallelism"], body.get("completionMode")) == (replicas, replicas, mode)


@pytest.mark.parametrize("seconds", [None, 0, 60])
def test_a_job_lives_as_long_as_it_is_asked_to(seconds: int | None) -> None:
    assert job(make_spec(ttl_seconds=seconds))["spec"].get("ttlSecondsAfterFinished") == seconds


def test_disruptions_are_looked_at_before_exit_codes_and_the_container_is_named() -> None:
    disruption, code = job(make_spec(container=make_container(name="fit")))["spec"]["podFailurePolicy"]["rules"]
    assert disruption == {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert code == {"action": "FailJob", "onExitCodes": {"containerName": "fit", "operator": "NotIn", "values": [0, 137, 143]}}


def test_a_failed_pod_is_not_replaced_and_the_time_limit_is_the_pods() -> None:
    body = job(make_spec(deadline_seconds=60))["spec"]
    assert body["backoffLimit"] == 0
    assert body["template"]["spec"]["restartPolicy"] == "Never"
    assert body["template"]["spec"]["activeDeadlineSeconds"] == 60
    assert "activeDeadlineSeconds" not in body
