"""Pods without Jobs above them, and the wrappers around them: AppWrapper's v1beta2, and MCAD's v1beta1."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.manifests.bare_pods import bare_pods
from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.status.appwrapper import appwrapper_status
from metaflow_extensions.kubernetes_ext.status.mcad import mcad_status
from metaflow_extensions.kubernetes_ext.status.model import Phase
from tests.builders import make_spec
from tests.builders_objects import Object, condition, make_pod, observe, record

SPEC = make_spec(4)
OWNER = [{"kind": "AppWrapper", "name": SPEC.name, "uid": "uid-aw"}]


def pod(role: str, index: int, phase: str = "Running", uid: str = "", **fields: Any) -> Object:
    made = make_pod(role, index, phase, uid=uid or f"uid-{role}-{index}", **fields)
    made["metadata"] |= {
        "name": f"{SPEC.name}-{role}-0-{index}",
        "labels": {labels.WORKLOAD: SPEC.name, labels.GROUP: role, labels.INDEX: str(index)},
        "ownerReferences": OWNER,
    }
    return made


def gang(phase: str = "Running", **fields: Any) -> list[Object]:
    return [pod("control", 0, phase, **fields), *(pod("worker", index, phase, **fields) for index in range(3))]


def mcad(state: str = "Running", queue: str = "Running", limit: str = "", requeued: int = 0, *conditions: Object) -> Object:
    annotations = {f"{labels.APPWRAPPER}retryLimit": limit} if limit else {}
    return {
        "kind": "AppWrapper",
        "metadata": {"name": SPEC.name, "namespace": "default", "uid": "uid-aw", "annotations": annotations},
        "spec": {"resources": {"GenericItems": [{"generictemplate": one} for one in bare_pods(SPEC)]}},
        "status": {"state": state, "queuejobstate": queue, "numberOfRequeueings": requeued, "conditions": list(conditions)},
    }


def wrapper(phase: str = "Running", resets: int = 0) -> Object:
    return {
        "kind": "AppWrapper",
        "metadata": {"name": SPEC.name, "namespace": "default", "uid": "uid-aw"},
        "spec": {"components": [{"template": one} for one in bare_pods(SPEC)]},
        "status": {"phase": phase, "resettingCount": resets},
    }


@pytest.mark.parametrize(("reduce", "workload"), [(mcad_status, mcad()), (appwrapper_status, wrapper())])
class TestBoth:
    def test_a_gang_that_runs(self, reduce: Any, workload: Object) -> None:
        status = reduce(observe(workload, gang()))
        assert (status.phase, status.size) == (Phase.RUNNING, 4)
        assert [(rank.role, rank.rank, rank.index) for rank in status.ranks] == [
            ("control", 0, 0), ("worker", 1, 0), ("worker", 2, 1), ("worker", 3, 2),
        ]  # fmt: skip

    def test_all_have_succeeded(self, reduce: Any, workload: Object) -> None:
        assert reduce(observe(workload, gang("Succeeded", exit_code=0))).phase is Phase.SUCCEEDED
        some = [*gang("Succeeded", exit_code=0)[:3], pod("worker", 2)]
        assert not reduce(observe(workload, some)).is_terminal

    def test_while_it_starts(self, reduce: Any, workload: Object) -> None:
        status = reduce(observe(workload, [pod("control", 0), pod("worker", 0, "Pending")]))
        assert status.phase is Phase.STARTING
        assert reduce(observe(workload, [])).phase is Phase.STARTING


FAILED = [*gang()[:2], pod("worker", 1, "Failed", exit_code=3), pod("worker", 2)]


def test_mcad_has_no_word_for_a_failure_so_the_rank_decides() -> None:
    status = mcad_status(observe(mcad(), FAILED))
    assert status.phase is Phase.FAILED
    assert status.failure is not None
    assert (status.failure.role, status.failure.rank, status.failure.exit_code) == ("worker", 2, 3)


def test_within_its_limit_mcad_starts_it_again() -> None:
    status = mcad_status(observe(mcad(limit="1"), FAILED))
    assert (status.phase, status.failure) == (Phase.STARTING, None)
    assert status.waiting is not None
    assert status.waiting.summary.startswith("MCAD starts it again after a while: Worker 1 (rank 2, ")
    assert mcad_status(observe(mcad("Running", "Running", "1", 1), FAILED)).phase is Phase.FAILED


def test_the_pods_of_another_try_have_the_same_names_and_say_nothing() -> None:
    before = [record(one, deleted=True) for one in FAILED]
    now = [pod(role, index, uid=f"again-{role}-{index}", created_at=60) for role, index in (("control", 0), ("worker", 1))]
    status = mcad_status(observe(mcad("Running", "Running", "1", 1), [*before, *now]))
    assert (status.phase, status.restarts, status.failure) == (Phase.STARTING, 1, None)
    assert [rank.pod_uid for rank in status.ranks] == ["again-control-0", "", "again-worker-1", ""]


@pytest.mark.parametrize(
    ("state", "queue", "said", "words"),
    [
        ("", "", (), "In the queue of MCAD it waits."),
        ("Pending", "HeadOfLine", (), "In the queue of MCAD it is the next."),
        (
            "Pending",
            "Backoff",
            (condition("Backoff", reason="AppWrapperNotRunnable", message="Insufficient resources to dispatch AppWrapper."),),
            "In the queue of MCAD it is kept back for a while: Insufficient resources to dispatch AppWrapper.",
        ),
    ],
)
def test_in_the_queue_the_last_word_of_mcad_is_told(state: str, queue: str, said: tuple[Object, ...], words: str) -> None:
    status = mcad_status(observe(mcad(state, queue, "", 0, *said)))
    assert status.phase is Phase.QUEUED
    assert status.waiting is not None
    assert (status.waiting.summary, status.waiting.is_hopeless) == (words, False)


def test_taken_back_too_often_it_has_failed_and_says_why() -> None:
    message = "Insufficient number of Running and Completed pods, minimum=4, running=2, completed=0."
    status = mcad_status(observe(mcad("Deleted", "Deleted", "", 3, condition("PreemptCandidate", message=message))))
    assert status.phase is Phase.FAILED
    assert status.failure is not None
    assert status.failure.summary == f"MCAD gave the AppWrapper up after 3 further tries: {message}"


def test_a_pod_that_somebody_deleted_ends_the_try_but_not_at_once() -> None:
    """MCAD deletes pods too, and the news of that comes by another watch."""
    gone = record(pod("worker", 1), deleted=True, at=20)
    others = [one for one in gang() if one["metadata"]["uid"] != "uid-worker-1"]
    early, late = (mcad_status(observe(mcad(), [*others, gone], at=at)) for at in (30, 90))
    assert early.phase is Phase.STARTING
    assert late.phase is Phase.FAILED
    assert late.failure is not None
    assert (late.failure.rank, late.failure.category.value) == (2, "deleted")


def test_deleted_it_is_gone() -> None:
    status = mcad_status(observe(None, gang()), mcad_status(observe(mcad(), gang())))
    assert (status.phase, status.size) == (Phase.GONE, 4)


def test_of_an_appwrapper_its_own_word_makes_the_failure_final() -> None:
    undecided = appwrapper_status(observe(wrapper(), FAILED))
    assert (undecided.phase, undecided.failure) == (Phase.STARTING, None)
    final = appwrapper_status(observe(wrapper("Failed"), FAILED))
    assert (final.phase, final.failure and final.failure.rank) == (Phase.FAILED, 2)
