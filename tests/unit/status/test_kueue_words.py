"""Which of Kueue's messages can pass, and which never will. The texts are those of Kueue 0.17."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.status.kueue_words import can_never_pass, deactivation, eviction
from metaflow_extensions.kubernetes_ext.status.model import Category

NO = "couldn't assign flavors to pod set {}: "
UNUSED = "insufficient unused quota for cpu in flavor default, 1 more needed"
CAPACITY = (
    "insufficient quota for cpu in flavor default, previously considered podsets requests (1) + current podset request (9) "
    "> maximum capacity (4)"
)


@pytest.mark.parametrize(
    ("message", "never"),
    [
        pytest.param("", False, id="nothing is said"),
        pytest.param(NO.format("worker") + UNUSED, False, id="others have the quota"),
        pytest.param(NO.format("worker") + CAPACITY, True, id="larger than the queue"),
        pytest.param(
            NO.format("worker") + f"{CAPACITY}, {UNUSED.replace('default', 'spot')}", False, id="another flavor may do"
        ),
        pytest.param(
            NO.format("control") + UNUSED + "; " + NO.format("worker") + CAPACITY,
            True,
            id="one pod set waits, the other fits never",
        ),
        pytest.param(
            NO.format("worker") + UNUSED + ". Pending the preemption of 1 workload(s)", False, id="others are preempted"
        ),
        pytest.param(NO.format("worker") + "resource nvidia.com/gpu unavailable in ClusterQueue", True, id="no such resource"),
        pytest.param(NO.format("worker") + "untolerated taint {gpu true NoSchedule} in flavor a", True, id="a taint"),
        pytest.param(
            NO.format("worker") + f"flavor a doesn't match node affinity, {UNUSED}",
            False,
            id="one flavor is wrong, one is in use",
        ),
        pytest.param(NO.format("worker") + "flavor a not found", False, id="a flavor that is yet to be made"),
        pytest.param(
            NO.format("worker") + 'topology "racks" doesn\'t allow to fit any of 8 pod(s)',
            False,
            id="the topology does not fit now",
        ),
        pytest.param(
            NO.format("worker") + 'topology "racks" allows to fit only 3 out of 8 pod(s)', False, id="a part would fit"
        ),
        pytest.param(
            NO.format("worker") + "no requested topology level: example.com/row", True, id="no such level of topology"
        ),
        pytest.param("LocalQueue lq doesn't exist", True, id="no such queue"),
        pytest.param("LocalQueue lq is stopped", False, id="a queue that is stopped"),
        pytest.param("ClusterQueue cq is inactive", False, id="a queue that is not ready"),
        pytest.param("ClusterQueue cq is terminating or missing", False, id="a queue that is removed, and may be made again"),
        pytest.param("Workload namespace doesn't match ClusterQueue selector", True, id="a namespace that may not use it"),
        pytest.param("resources didn't satisfy LimitRange constraints: [requests...]", True, id="outside the limit range"),
        pytest.param("The workload has failed admission checks", False, id="its checks are tried again"),
    ],
)
def test_what_time_heals(message: str, never: bool) -> None:
    assert can_never_pass(message) is never


@pytest.mark.parametrize("reason", ["Preempted", "EvictedByPreemption"])
def test_preemption_has_several_reasons(reason: str) -> None:
    found = eviction(reason)
    assert found is not None
    assert (found.start, found.category) == ("Was preempted", Category.PREEMPTED)


def test_a_reason_that_is_not_known_is_not_guessed() -> None:
    assert eviction("SomethingNew") is None


def test_a_person_who_deactivates_is_not_kueue() -> None:
    assert deactivation("Deactivated") is None
