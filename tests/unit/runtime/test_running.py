"""A followed workload: what watches bring becomes its status, and no trouble of the connection harms it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cluster.protocol import EVENTS, JOBS, PODS
from metaflow_extensions.kubernetes_ext.errors import ClusterError, Forbidden, NotFound, Unavailable
from metaflow_extensions.kubernetes_ext.runtime.running import RunningJobSet
from metaflow_extensions.kubernetes_ext.status.model import Category, Phase
from tests.fakes import FakeClock, FakeCluster
from tests.unit.runtime.workloads import BACKEND, JOBSETS, NAME, Gang


class Scene:
    """A gang, followed."""

    def __init__(self, size: int = 2) -> None:
        self.clock = FakeClock()
        self.cluster = FakeCluster()
        self.gang = Gang(self.cluster, size)
        self.cluster.requests.clear()
        self.told: list[str] = []
        self.running = RunningJobSet(
            self.cluster, BACKEND, self.gang.object, namespace="default", clock=self.clock, tell=self.told.append
        )

    def phases(self) -> list[Phase]:
        """Followed to the end."""
        seen: list[Phase] = []
        for status in self.running.changes():
            if not seen or seen[-1] is not status.phase:
                seen.append(status.phase)
        return seen

    def settle(self) -> None:
        """Take in all that has happened."""
        time.sleep(0.02)
        self.running.step(0)


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.running.close()


def test_a_gang_is_followed_to_its_success(scene: Scene) -> None:
    scene.clock.at(2, lambda: scene.gang.start(0))
    scene.clock.at(4, lambda: scene.gang.start())
    scene.clock.at(60, scene.gang.succeed)
    assert scene.phases() == [Phase.PENDING, Phase.STARTING, Phase.RUNNING, Phase.SUCCEEDED]


def test_what_the_cluster_said_of_the_culprit_s_pod_is_read_once_at_the_end(scene: Scene) -> None:
    scene.gang.start()
    scene.clock.at(10, lambda: scene.gang.set_pod(1, "Failed", exit_code=3))
    scene.clock.at(11, lambda: scene.gang.finish("Failed"))
    status = scene.running.wait()
    about = {"involvedObject": {"uid": status.ranks[1].pod_uid}, "type": "Warning", "lastTimestamp": "2026-01-01T12:00:59Z"}
    scene.cluster.update(EVENTS, {"metadata": {"name": "e"}, "reason": "Unhealthy", "message": "probe failed", **about})
    scene.cluster.requests.clear()
    failure = scene.running.settle().failure
    assert failure is not None
    assert (failure.rank, failure.exit_code, failure.events) == (1, 3, ("Unhealthy: probe failed",))
    assert dict(scene.cluster.requests) == {("list", "events"): 1}


def test_the_end_of_a_rank_that_was_disrupted_is_waited_for(scene: Scene) -> None:
    """The word that it is to go comes first, the Job's that it has failed may come next, its own end with its exit code last."""
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    pod = scene.gang.pod_name(1)
    going = {"deletionTimestamp": "2026-01-01T12:02:00Z", "deletionGracePeriodSeconds": 60}
    scene.gang.start()

    def evict() -> None:
        scene.cluster.patch(PODS, "default", pod, {"metadata": going, "status": {"conditions": [evicted]}})

    def end() -> None:
        state = {"terminated": {"exitCode": 143, "reason": "Error", "finishedAt": "2026-01-01T12:01:00Z"}}
        containers = [{"name": "train", "ready": False, "restartCount": 0, "state": state}]
        scene.cluster.patch(PODS, "default", pod, {"status": {"phase": "Failed", "containerStatuses": containers}})

    scene.clock.at(10, evict)
    scene.clock.at(11, lambda: scene.gang.finish("Failed"))
    failure = scene.running.wait().failure
    assert failure is not None
    assert (failure.rank, failure.reason, failure.exit_code) == (1, "EvictionByEvictionAPI", None)
    scene.clock.at(12, end)
    failure = scene.running.settle().failure
    assert failure is not None
    assert (failure.rank, failure.reason, failure.exit_code) == (1, "EvictionByEvictionAPI", 143)


def test_properties_do_no_requests(scene: Scene) -> None:
    running = scene.running
    assert (running.name, running.namespace, running.status.phase) == (NAME, "default", Phase.PENDING)
    assert running.observation.workload is not None
    assert running.uid
    assert running.killed_at is running.outage_since is None
    assert not scene.cluster.requests


def test_an_hour_of_running_costs_three_watches(scene: Scene) -> None:
    scene.gang.start()
    scene.clock.at(3600, scene.gang.succeed)
    assert scene.running.wait().phase is Phase.SUCCEEDED
    assert dict(scene.cluster.requests) == {
        (verb, plural): 1 for verb in ("list", "watch") for plural in ("jobsets", "jobs", "pods")
    }


def test_ten_minutes_of_waiting_cost_few_requests(scene: Scene) -> None:
    scene.gang.start(0)
    scene.clock.at(590, scene.gang.start)
    scene.clock.at(600, scene.gang.succeed)
    scene.running.wait()
    assert scene.cluster.requests["list", "events"] <= 9  # three looks at the JobSet and its two Jobs
    assert sum(scene.cluster.requests.values()) <= 15


def test_events_explain_what_is_refused(scene: Scene) -> None:
    text = 'Job.batch "x" is invalid: spec.template.spec.volumes[0].name: Required'
    refusal = {"type": "Warning", "reason": "JobCreationFailed", "message": text, "count": 3}
    scene.cluster.update(
        EVENTS, {"metadata": {"name": "e"}, "involvedObject": {"uid": scene.running.uid, "kind": "JobSet"}, **refusal}
    )
    scene.clock.at(40, lambda: scene.gang.finish("Failed"))
    waitings = [status.waiting for status in scene.running.changes() if status.waiting]
    assert any("Required" in waiting.summary + waiting.detail for waiting in waitings)


def test_a_deleted_gang_is_gone_after_a_404(scene: Scene) -> None:
    scene.gang.start()
    scene.clock.at(10, lambda: scene.cluster.remove(JOBSETS, NAME))
    status = scene.running.wait()
    assert status.phase is Phase.GONE
    assert status.failure is not None
    assert status.failure.category is Category.GONE
    assert scene.cluster.requests["get", "jobsets"] == 1


def test_a_gang_that_vanished_unseen_is_gone_after_the_next_list(scene: Scene) -> None:
    scene.gang.start()
    scene.clock.at(10, lambda: scene.cluster.forget(JOBSETS, NAME))
    scene.clock.at(20, scene.cluster.relist)
    assert scene.running.wait().phase is Phase.GONE


def test_a_gang_is_not_gone_without_an_answer(scene: Scene) -> None:
    scene.gang.start()
    scene.cluster.fail("get", "jobsets", *[Unavailable("the server is away")] * 30)
    scene.clock.at(10, lambda: scene.cluster.remove(JOBSETS, NAME))
    assert scene.running.wait().phase is Phase.GONE
    assert scene.clock.monotonic() > 100
    assert len(scene.told) == 2


def test_another_object_of_the_name_is_not_ours(scene: Scene) -> None:
    scene.gang.start()

    def replace() -> None:
        scene.cluster.forget(JOBSETS, NAME)
        scene.cluster.update(JOBSETS, {**scene.gang.object, "metadata": {"name": NAME, "uid": "another"}})
        scene.cluster.relist()

    scene.clock.at(10, replace)
    assert scene.running.wait().phase is Phase.GONE


def test_a_pod_that_vanished_unseen_is_kept_as_deleted(scene: Scene) -> None:
    scene.gang.start()
    scene.running.start()
    scene.cluster.wait_for_watches(3)
    scene.settle()
    scene.cluster.forget(PODS, scene.gang.pod_name(1))
    scene.cluster.relist()
    scene.settle()
    by_name = {record.object["metadata"]["name"]: record.deleted for record in scene.running.observation.pods}
    assert by_name == {scene.gang.pod_name(0): False, scene.gang.pod_name(1): True}


def test_a_jobs_end_is_seen(scene: Scene) -> None:
    scene.gang.start()
    scene.running.start()
    scene.cluster.wait_for_watches(3)
    scene.settle()
    assert len(scene.running.observation.jobs) == 2
    scene.cluster.remove(JOBS, f"{NAME}-worker-0")
    scene.settle()
    assert len(scene.running.observation.jobs) == 1


def test_an_outage_is_said_once_and_its_end_once(scene: Scene) -> None:
    scene.gang.start()
    for second in range(60, 360, 20):
        scene.clock.at(second, lambda: scene.cluster.trouble(Unavailable("The API server can't be reached.")))
    scene.clock.at(360, lambda: scene.cluster.trouble(None))
    scene.clock.at(400, scene.gang.succeed)
    assert scene.running.wait().phase is Phase.SUCCEEDED
    assert scene.told == [
        "The API server can't be reached. The workload goes on; trying again until the server answers.",
        "The API server answers again, after 5 min 0 s.",
    ]


def test_a_hiccup_is_not_told(scene: Scene) -> None:
    scene.gang.start()
    scene.clock.at(60, lambda: scene.cluster.trouble(Unavailable("x")))
    scene.clock.at(63, lambda: scene.cluster.trouble(None))
    scene.clock.at(80, scene.gang.succeed)
    scene.running.wait()
    assert scene.told == []


@pytest.mark.parametrize("plural", ["jobsets", "jobs", "pods"])
def test_without_permission_to_watch_it_lists(scene: Scene, plural: str) -> None:
    scene.cluster.fail("watch", plural, *[Forbidden(f"Not allowed to watch {plural}", status=403)] * 20)
    scene.gang.start()
    scene.clock.at(120, scene.gang.succeed)
    assert scene.running.wait().phase is Phase.SUCCEEDED
    assert [text for text in scene.told if "Not allowed to watch" in text] == scene.told
    assert len(scene.told) == 1
    assert scene.cluster.requests["list", plural] <= 3 + 120 / 15


@pytest.mark.parametrize("plural", ["jobsets", "jobs", "pods"])
def test_a_refusal_of_a_moment_is_borne(scene: Scene, plural: str) -> None:
    """An authorizer that is down answers 403, or the log-in has expired: 401."""
    scene.cluster.fail("watch", plural, Forbidden(f"Not allowed to watch {plural}", status=403))
    scene.clock.at(16, lambda: scene.cluster.fail("list", plural, Forbidden("Not allowed to list", status=403)))
    scene.clock.at(40, lambda: scene.cluster.fail("list", plural, Forbidden("log in again", status=401)))
    scene.gang.start()
    scene.clock.at(120, scene.gang.succeed)
    assert scene.running.wait().phase is Phase.SUCCEEDED
    assert [text for text in scene.told if "Can't see" in text] == []


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_before_anything_was_listed_is_borne_once(scene: Scene, status: int) -> None:
    for plural in ("jobsets", "jobs", "pods"):
        scene.cluster.fail("list", plural, Forbidden("not now", status=status))
    scene.gang.start()
    scene.clock.at(60, scene.gang.succeed)
    assert scene.running.wait().phase is Phase.SUCCEEDED


def test_without_any_permission_on_the_workload_following_fails(scene: Scene) -> None:
    denied = Forbidden("Not allowed to list jobsets", status=403)
    scene.cluster.fail("list", "jobsets", denied, denied)
    with pytest.raises(Forbidden, match="Not allowed to list jobsets"):
        scene.running.wait()


def test_without_any_permission_on_pods_following_goes_on(scene: Scene) -> None:
    denied = Forbidden("Not allowed to list pods", status=403)
    scene.cluster.fail("list", "pods", denied, denied)
    scene.clock.at(60, lambda: scene.gang.finish("Completed"))
    assert scene.running.wait().phase is Phase.SUCCEEDED
    assert len([text for text in scene.told if "Can't see the pods" in text]) == 1


def test_missing_permission_for_events_is_told_once(scene: Scene) -> None:
    scene.cluster.fail("list", "events", *[Forbidden("Not allowed to list events", status=403)] * 10)
    scene.clock.at(700, lambda: scene.gang.finish("Completed"))
    scene.running.wait()
    assert [text for text in scene.told if "list events" in text] == scene.told
    assert scene.cluster.requests["list", "events"] == 1


def test_a_kind_that_is_removed_from_the_cluster_makes_the_gang_gone(scene: Scene) -> None:
    scene.gang.start()

    def uninstall() -> None:
        scene.cluster.forget(JOBSETS, NAME)
        scene.cluster.break_watch(JOBSETS, NotFound("JobSet is not installed", status=404))

    scene.clock.at(10, uninstall)
    assert scene.running.wait().phase is Phase.GONE


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_bug_in_a_feed_is_not_waited_for(scene: Scene) -> None:
    scene.clock.at(10, lambda: scene.cluster.break_watch(PODS, ZeroDivisionError()))
    with pytest.raises(RuntimeError, match="watch of pods died"):
        scene.running.wait()


def test_an_ended_gang_stays_as_it_ended(scene: Scene) -> None:
    scene.gang.start()
    scene.clock.at(10, scene.gang.succeed)
    assert scene.running.wait().phase is Phase.SUCCEEDED
    scene.cluster.remove(JOBSETS, NAME)
    scene.settle()
    assert scene.running.status.phase is Phase.SUCCEEDED


def test_refresh_asks_now(scene: Scene) -> None:
    scene.gang.start()
    assert scene.running.refresh().phase is Phase.RUNNING
    scene.cluster.remove(JOBSETS, NAME)
    assert scene.running.refresh().phase is Phase.GONE


def test_refresh_says_when_there_is_no_answer(scene: Scene) -> None:
    scene.cluster.fail("get", "jobsets", Unavailable("away"))
    with pytest.raises(Unavailable):
        scene.running.refresh()


def test_kill_deletes_our_object_only(scene: Scene) -> None:
    calls: list[dict[str, Any]] = []
    original = scene.cluster.delete
    scene.cluster.delete = lambda *args, **kwargs: (calls.append(kwargs), original(*args, **kwargs))[1]  # type: ignore[method-assign]
    scene.running.kill()
    assert calls == [{"propagation": "Background", "uid": scene.running.uid}]
    assert scene.cluster.names(JOBSETS) == []
    assert scene.running.killed_at == scene.clock.now()


def test_after_a_kill_pods_are_awaited_but_not_those_of_a_lost_node(scene: Scene) -> None:
    scene.gang.start()
    scene.running.kill()
    due = (scene.clock.now() + timedelta(seconds=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    scene.gang.set_pod(0, "Running", deletionTimestamp=due)
    scene.gang.set_pod(1, "Running", deletionTimestamp=due)  # nobody hears from it any more
    scene.clock.at(20, lambda: scene.cluster.remove(PODS, scene.gang.pod_name(0)))
    started = scene.clock.monotonic()
    scene.running.await_pods_gone()
    assert 40 <= scene.clock.monotonic() - started < 50
    scene.cluster.requests.clear()
    scene.cluster.remove(PODS, scene.gang.pod_name(1))
    scene.running.await_pods_gone()
    assert dict(scene.cluster.requests) == {("list", "pods"): 1}


def test_kill_is_repeated_while_the_server_is_away(scene: Scene) -> None:
    expired = Forbidden("log in again", status=401)
    scene.cluster.fail("delete", "jobsets", Unavailable("away"), expired, Unavailable("away"))
    scene.running.kill()
    assert scene.cluster.names(JOBSETS) == []


@pytest.mark.parametrize("error", [Unavailable("away"), Forbidden("Not allowed to delete jobsets", status=403)])
def test_a_kill_that_fails_says_how_to_finish(scene: Scene, error: ClusterError) -> None:
    scene.cluster.fail("delete", "jobsets", *[error] * 100)
    with pytest.raises(
        type(error), match=rf"may still run: {error} .*kubectl delete jobsets.jobset.x-k8s.io {NAME} --namespace"
    ):
        scene.running.kill(patience=60)
    assert scene.clock.monotonic() <= 60
    assert scene.running.killed_at is None


def test_close_ends_the_threads(scene: Scene) -> None:
    scene.running.start()
    scene.cluster.wait_for_watches(3)
    scene.running.close()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("watch-")] == []
