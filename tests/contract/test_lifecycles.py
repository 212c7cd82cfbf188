"""Workloads from their creation to their end, through everything that may happen to them: what the product sees and says.

Phases that pass too quickly to be seen for certain are not asked for; those that are, must come in this order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cluster.protocol import PODS
from metaflow_extensions.kubernetes_ext.runtime.running import RunningJobSet
from metaflow_extensions.kubernetes_ext.spec.resources import Resources
from metaflow_extensions.kubernetes_ext.status.model import Phase, WorkloadStatus
from tests.contract import stories
from tests.contract.places import ON_SERVERS, Place
from tests.contract.stories import Play, Story, Told, When, in_phase, kill, tell, waits_for
from tests.contract.waiting import until

QUEUED, STARTING, RUNNING, SUCCEEDED, FAILED, GONE = (
    Phase.QUEUED, Phase.STARTING, Phase.RUNNING, Phase.SUCCEEDED, Phase.FAILED, Phase.GONE,
)  # fmt: skip
ORDER = [Phase.PENDING, QUEUED, STARTING, RUNNING, SUCCEEDED, FAILED, GONE]

# A container's first process gets no signal that it has no handler for, an ordinary process does: so all handle it.
LONG = "trap 'exit 143' TERM; sleep 600 & wait"
# All ranks meet: control answers everybody, the others ask it until it does. So none ends before all have run.
SERVE = """python -c '
import os, socket, sys
server = socket.create_server(("", int(os.environ["PORT"])), backlog=32)
for _ in range(int(sys.argv[1])):
    peer, _ = server.accept()
    print("met", peer.recv(100).decode(), flush=True)
    peer.sendall(b"welcome")
    peer.close()
' {count}"""
ASK = """python -c '
import os, socket, sys, time
end = time.monotonic() + 60
while True:
    try:
        with socket.create_connection((os.environ["HOST_0"], int(os.environ["PORT"])), timeout=5) as control:
            control.sendall(os.environ["RANK"].encode())
            print(control.recv(100).decode(), flush=True)
        break
    except OSError:
        if time.monotonic() > end:
            raise
        time.sleep(0.1)
'"""


def gang(size: int, then: str = "true", after: dict[int, str] | None = None, **fields: Any) -> Story:
    """A gang whose ranks all meet, and then run `then`; those in `after` run that instead."""
    after = after or {}
    serve = SERVE.format(count=size - 1)
    meet = {rank: f"{serve if rank == 0 else ask()} && {after.get(rank, then)}" for rank in {0, *after}}
    return Story(size=size, command=f"{ask()} && {then}", ranks=meet, **fields)


def ask() -> str:
    return f"export RANK; {ASK}"


@dataclass(frozen=True, kw_only=True)
class End:
    """What the product must have understood."""

    phase: Phase
    through: tuple[Phase, ...] = ()
    category: str = ""
    role: str = ""
    rank: int | None = None
    exit_code: int | None = None
    reason: str = ""
    says: str = ""


def check(told: Told, end: End) -> None:
    assert told.status.phase is end.phase, told
    seen = [phase for phase in told.phases if phase in end.through]
    assert seen == list(end.through), told
    failure = told.status.failure
    found = (
        End(phase=told.status.phase)
        if failure is None
        else End(
            phase=told.status.phase, category=str(failure.category), role=failure.role, rank=failure.rank,
            exit_code=failure.exit_code, reason=failure.reason,
        )
    )  # fmt: skip
    expected = End(
        phase=end.phase, category=end.category, role=end.role, rank=end.rank, exit_code=end.exit_code, reason=end.reason
    )
    assert found == expected, told
    if end.says:
        assert failure is not None
        assert end.says in failure.summary, told


def check_in_order(told: Told) -> None:
    """Without interference nothing goes back."""
    assert sorted(told.phases, key=ORDER.index) == told.phases, told


def check_read_again(told: Told, story: Story) -> WorkloadStatus:
    """Somebody who comes later, and has seen nothing, reads the same phase from the objects that are left."""
    place = told.place
    found = place.client.get(stories.resource_of(story.backend()), place.namespace, stories.NAME)
    workload = {"metadata": found["metadata"]}
    later = RunningJobSet(place.client, story.backend(), workload, namespace=place.namespace)
    status = later.refresh()
    assert (status.phase, status.size) == (told.status.phase, told.status.size), told
    return status


SUCCESSES = [
    pytest.param(Story(size=0, command="echo one; echo two"), id="job"),
    pytest.param(Story(size=1, command="echo one; echo two"), id="gang of 1"),
    *(pytest.param(gang(size), id=f"gang of {size}") for size in (2, 4, 8)),
]


@ON_SERVERS
@pytest.mark.parametrize("story", SUCCESSES)
def test_success(place: Place, story: Story) -> None:
    told = tell(place, story)
    check(told, End(phase=SUCCEEDED))
    check_in_order(told)
    size = max(1, story.size)
    ranks = check_read_again(told, story).ranks
    assert [(rank.rank, rank.phase, rank.exit_code) for rank in ranks] == [(rank, "Succeeded", 0) for rank in range(size)]
    if size == 1:
        assert [line for _, _, line in told.reporter.logs] == ["one", "two"]
    else:  # names resolve and lead from each rank to control
        said = sorted(line for _, rank, line in told.reporter.logs if rank == 0)
        assert said == [f"met {rank}" for rank in range(1, size)]
        assert sorted((rank, line) for _, rank, line in told.reporter.logs if rank) == [
            (rank, "welcome") for rank in range(1, size)
        ]


EAT = """exec python -c '
import time
eaten = []
while True:
    eaten.append(b"x" * (4 << 20))
    time.sleep(0.01)
'"""
LIMITED = Resources(cpu="50m", memory="64Mi", limits_equal_requests=True)
OBEDIENT = "trap 'exit 0' TERM; sleep 600 & wait"
# Pods that a suspension deletes count for nothing, unless the Job controller looks at them between their end and their removal:
# then the podFailurePolicy fails the Job. It looks a second after the deletion, when these still run.
DEAF = "trap '' TERM; touch /tmp/deaf; while :; do sleep 1; done"

FAILURES = [
    pytest.param(
        Story(size=0, command="echo before; exit 3"),
        End(phase=FAILED, category="user_error", role="task", rank=0, exit_code=3, reason="Error"),
        id="job: exit 3",
    ),
    pytest.param(
        Story(size=0, command="exec no-such-program"),
        End(phase=FAILED, category="user_error", role="task", rank=0, exit_code=127, reason="Error"),
        id="job: no such program",
    ),
    pytest.param(
        gang(4, LONG, {2: "exit 3"}),
        End(phase=FAILED, category="user_error", role="worker", rank=2, exit_code=3, reason="Error"),
        id="a worker exits 3",
    ),
    pytest.param(
        gang(2, LONG, {0: "exit 4"}),
        End(phase=FAILED, category="user_error", role="control", rank=0, exit_code=4, reason="Error"),
        id="control fails",
    ),
    pytest.param(
        gang(2, LONG, {1: "sh -c 'kill -SEGV $$'"}),
        End(phase=FAILED, category="user_error", role="worker", rank=1, exit_code=139, reason="Error"),
        id="a worker crashes",
    ),
    pytest.param(
        Story(size=0, command=EAT, resources=LIMITED),
        End(phase=FAILED, category="out_of_memory", role="task", rank=0, exit_code=137, reason="OOMKilled"),
        id="job: out of memory",
    ),
    pytest.param(
        gang(3, LONG, {2: EAT}, resources=LIMITED),
        End(
            phase=FAILED,
            through=(RUNNING, FAILED),
            category="out_of_memory",
            role="worker",
            rank=2,
            exit_code=137,
            reason="OOMKilled",
            says="ran out of memory",
        ),
        id="a worker runs out of memory",
    ),
    pytest.param(
        Story(size=0, command=LONG, deadline_seconds=3),
        End(
            phase=FAILED,
            through=(RUNNING, FAILED),
            category="deadline",
            role="task",
            rank=0,
            exit_code=143,
            reason="DeadlineExceeded",
            says="timed out after 3 s",
        ),
        id="job: deadline",
    ),
    pytest.param(
        gang(3, DEAF, {1: "exit 3"}, grace_seconds=3),
        End(phase=FAILED, category="user_error", role="worker", rank=1, exit_code=3, reason="Error"),
        id="a worker exits 3 and the others ignore SIGTERM",
    ),
    pytest.param(
        gang(3, LONG, {1: "exit 3", 0: "true"}),
        End(phase=FAILED, category="user_error", role="worker", rank=1, exit_code=3, reason="Error"),
        id="a worker exits 3 while control succeeds",
    ),
]


@ON_SERVERS
@pytest.mark.parametrize(("story", "end"), FAILURES)
def test_failure(place: Place, story: Story, end: End) -> None:
    told = tell(place, story)
    check(told, end)
    check_in_order(told)
    check_read_again(told, story)
    assert end.rank is not None
    assert not told.rank(end.rank).is_collateral


@ON_SERVERS
def test_the_last_lines_of_the_culprit_come_with_the_failure(place: Place) -> None:
    told = tell(place, gang(2, LONG, {1: "echo first; sleep 0.2; echo last >&2; exit 3"}))
    assert told.status.failure is not None
    assert told.status.failure.last_lines == ("welcome", "first", "last"), told


def delete_pod(rank: int) -> When:
    return When(in_phase(RUNNING), lambda play: play.place.admin.delete(PODS, play.place.namespace, play.pod(rank)))


def evict(rank: int) -> When:
    return When(in_phase(RUNNING), lambda play: play.place.evict(play.pod(rank)))


def delete_workload(play: Play) -> None:
    play.delete()


def resume(play: Play) -> None:
    play.patch({"spec": {"suspend": False}})


def resume_without_pods(play: Play) -> None:
    until(lambda: not play.place.pods(), "the pods are gone")
    resume(play)


INTERFERENCES = [
    pytest.param(
        gang(3, LONG, grace_seconds=60),
        (delete_pod(2),),
        End(phase=FAILED, category="deleted", role="worker", rank=2, exit_code=143, reason="Deleted"),
        id="a pod is deleted by hand",
    ),
    pytest.param(
        gang(3, LONG, grace_seconds=60),
        (evict(1),),
        End(
            phase=FAILED,
            through=(RUNNING, FAILED),
            category="evicted",
            role="worker",
            rank=1,
            exit_code=143,
            reason="EvictionByEvictionAPI",
        ),
        id="a pod is evicted",
    ),
    pytest.param(
        Story(size=0, command=LONG, grace_seconds=60),
        (evict(0),),
        End(
            phase=FAILED,
            through=(RUNNING, FAILED),
            category="evicted",
            role="task",
            rank=0,
            exit_code=143,
            reason="EvictionByEvictionAPI",
        ),
        id="job: its pod is evicted",
    ),
    pytest.param(
        gang(2, LONG),
        (When(in_phase(RUNNING), delete_workload),),
        End(phase=GONE, through=(RUNNING, GONE), category="gone", reason="Gone"),
        id="the JobSet is deleted by someone else",
    ),
    pytest.param(
        Story(size=0, command=LONG),
        (When(in_phase(RUNNING), delete_workload),),
        End(phase=GONE, through=(RUNNING, GONE), category="gone", reason="Gone"),
        id="the Job is deleted by someone else",
    ),
    pytest.param(
        gang(2, is_suspended=True),
        (When(in_phase(QUEUED), resume),),
        End(phase=SUCCEEDED, through=(QUEUED, SUCCEEDED)),
        id="created suspended, then resumed",
    ),
    pytest.param(
        Story(size=0, is_suspended=True),
        (When(in_phase(QUEUED), resume),),
        End(phase=SUCCEEDED, through=(QUEUED, SUCCEEDED)),
        id="job: created suspended, then resumed",
    ),
    pytest.param(
        gang(2, DEAF, grace_seconds=3),
        (
            When(in_phase(RUNNING), lambda play: play.patch({"spec": {"suspend": True}})),
            When(in_phase(QUEUED), resume_without_pods),
            When(in_phase(RUNNING), delete_workload),
        ),
        End(phase=GONE, through=(RUNNING, QUEUED, RUNNING, GONE), category="gone", reason="Gone"),
        id="suspended while it runs, then resumed",
    ),
    pytest.param(
        gang(2, OBEDIENT),
        (
            When(in_phase(RUNNING), lambda play: play.patch({"spec": {"suspend": True}})),
            When(in_phase(QUEUED), resume_without_pods),
            When(in_phase(RUNNING), delete_workload),
        ),
        End(phase=GONE, through=(RUNNING, QUEUED, RUNNING, GONE), category="gone", reason="Gone"),
        id="suspended, and its ranks end with 0",
    ),
    pytest.param(
        Story(size=2, command=LONG, node_selector={"contract.example.com/none": "x"}),
        (When(waits_for("unschedulable"), kill),),
        End(phase=GONE, category="gone", reason="Gone"),
        id="no node for it",
    ),
]


@ON_SERVERS
@pytest.mark.parametrize(("story", "steps", "end"), INTERFERENCES)
def test_interference(place: Place, story: Story, steps: tuple[When, ...], end: End) -> None:
    check(tell(place, story, *steps), end)


@ON_SERVERS
def test_an_image_that_does_not_exist_is_named(place: Place) -> None:
    story = Story(size=2, command=LONG, image=place.missing_image)
    told = tell(place, story, When(waits_for("image_pull"), kill))
    check(told, End(phase=GONE, category="gone", reason="Gone"))
    assert any(f"can't get its image {place.missing_image}" in line for line in told.reporter.lines), told


@ON_SERVERS
def test_a_quota_that_leaves_room_for_only_some_ranks_is_named(place: Place) -> None:
    place.limit({"pods": "2"})
    told = tell(place, Story(size=4, command=LONG), When(waits_for("quota"), kill))
    check(told, End(phase=GONE, category="gone", reason="Gone"))
    assert any(
        "exceeded quota: limit, requested: pods=1, used: pods=2, limited: pods=2" in line for line in told.reporter.lines
    ), told
