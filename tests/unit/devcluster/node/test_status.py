"""Phases and conditions of pods."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from metaflow_devcluster.node.status import ContainerState, PodFacts, pod_phase, pod_status

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)
WAITING: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
RUNNING: dict[str, Any] = {"running": {"startedAt": "2030-01-01T00:00:00Z"}}


def ended(code: int) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}


def container(state: dict[str, Any], name: str = "main", **fields: Any) -> ContainerState:
    return ContainerState(name=name, image="x", state=state, **fields)


@pytest.mark.parametrize(
    ("policy", "inits", "states", "stopped", "expected"),
    [
        pytest.param("Never", [], [WAITING], False, "Pending", id="not started"),
        pytest.param("Never", [], [RUNNING], False, "Running", id="runs"),
        pytest.param("Never", [], [ended(0)], False, "Succeeded", id="ended well"),
        pytest.param("Never", [], [ended(3)], False, "Failed", id="ended badly"),
        pytest.param("Never", [], [ended(3), RUNNING], False, "Running", id="one of two still runs"),
        pytest.param("OnFailure", [], [ended(3)], False, "Running", id="will restart"),
        pytest.param("OnFailure", [], [ended(0)], False, "Succeeded", id="need not restart"),
        pytest.param("Always", [], [ended(0)], False, "Running", id="always restarts"),
        pytest.param("Always", [], [ended(143)], True, "Failed", id="stopped"),
        pytest.param("Always", [], [ended(0)], True, "Succeeded", id="stopped and ended well"),
        pytest.param("Never", [], [WAITING], True, "Failed", id="stopped before it started"),
        pytest.param("Never", [RUNNING], [WAITING], False, "Pending", id="initializing"),
        pytest.param("Never", [ended(1)], [WAITING], False, "Failed", id="init failed"),
        pytest.param("OnFailure", [ended(1)], [WAITING], False, "Pending", id="init will restart"),
    ],
)
def test_phases(policy: str, inits: list[Any], states: list[Any], stopped: bool, expected: str) -> None:
    assert pod_phase(policy, [container(s) for s in inits], [container(s) for s in states], is_stopped=stopped) == expected


def status_of(state: dict[str, Any], old: dict[str, Any] | None = None) -> dict[str, Any]:
    pod = {"metadata": {"generation": 1}, "spec": {"restartPolicy": "Never"}, "status": old or {}}
    facts = PodFacts(pod_ip="127.77.1.1", host_ip="127.0.0.1", start_time="2030-01-01T00:00:00Z")
    identity = "" if "waiting" in state else "devcluster://1"
    return pod_status(pod, [], [container(state, container_id=identity)], facts, NOW)


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {entry["type"]: (entry["status"], entry.get("reason", "")) for entry in status["conditions"]}


@pytest.mark.parametrize(
    ("state", "ready", "reason"),
    [
        (WAITING, "False", "ContainersNotReady"),
        (RUNNING, "True", ""),
        (ended(0), "False", "PodCompleted"),
        (ended(3), "False", "PodFailed"),
    ],
)
def test_readiness(state: dict[str, Any], ready: str, reason: str) -> None:
    found = conditions(status_of(state))
    assert found["Ready"] == found["ContainersReady"] == (ready, reason)
    assert found["PodScheduled"] == ("True", "")


def test_the_address_comes_with_the_first_container() -> None:
    assert "podIP" not in status_of(WAITING)
    assert status_of(RUNNING)["podIP"] == "127.77.1.1"


def test_conditions_of_others_and_times_of_unchanged_ones_are_kept() -> None:
    first = status_of(RUNNING)
    for entry in first["conditions"]:
        entry["lastTransitionTime"] = "earlier"
    first["conditions"].append({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"})
    second = status_of(RUNNING, first)
    assert conditions(second)["DisruptionTarget"] == ("True", "EvictionByEvictionAPI")
    assert {entry.get("lastTransitionTime") for entry in second["conditions"]} == {"earlier", None}
    third = {entry["type"]: entry for entry in status_of(ended(0), first)["conditions"]}
    assert third["Ready"]["lastTransitionTime"] == "2030-01-01T00:00:00Z"
