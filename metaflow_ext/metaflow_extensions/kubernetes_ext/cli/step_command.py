"""`kubernetes step`: submit one task's workload, follow it to its end, leave behind what the run needs and nothing else."""

from __future__ import annotations

import itertools
import json
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from metaflow import current
from metaflow.util import get_username

from ..backends.base import Manifest
from ..cluster.client import KubernetesClient
from ..cluster.protocol import ClusterClient
from ..decorators.attributes import is_true
from ..decorators.backend_choice import backend_of
from ..decorators.launch_spec import TaskRef, launch_spec, stall_timeout
from ..decorators.settings import Settings, read_settings
from ..decorators.step_check import parse_logs
from ..errors import ClusterError, KubernetesExtError, Rejected, TaskFailed, Unavailable
from ..runtime.clock import RealClock
from ..runtime.monitor import Monitor
from ..runtime.pod_groups import PodGroups, group_resource
from ..runtime.process import this_process
from ..runtime.resources import resource_of
from ..runtime.running import RunningJobSet
from ..runtime.stall_watch import StallWatch, stack_in_log
from ..runtime.submit import submit, withdraw
from ..runtime.supervision import ADDRESS, Supervised, owned
from ..runtime.timeline import Timeline
from ..spec import labels, quantities
from ..spec.launch import LaunchSpec
from ..spec.names import TaskIds, workload_name
from ..status import starting_again
from ..status.ended_early import interrupted, not_followed
from ..status.launch_limit import LaunchLimit
from ..status.model import Phase, Stalled, WorkloadStatus
from ..status.stalled import as_annotation
from ..status.starting_again import after_restarts, starts_again
from . import exit_codes, failure_report, gang_choice
from .interrupts import Interrupted, interruptible
from .mailbox import DatastoreMailbox, patience
from .rank_records import Records
from .stored_lines import with_stored_lines
from .task_code import Package, task_code
from .task_output import TaskReporter

Ended = tuple[WorkloadStatus, Mapping[int, Sequence[str]]]  # and the last lines of other ranks


class Plan(Protocol):
    """Describes the workload, under the task's own name (None) or another; `restart` counts those before it."""

    def __call__(self, name: str | None, *, restart: int = 0) -> LaunchSpec: ...


def run_step(
    obj: Any,
    top_options: Mapping[str, Any],
    script_name: str,
    step: str,
    package: tuple[str, str, str],
    options: Mapping[str, Any],
) -> int:
    """The exit code for core's runtime. `obj` is click's: flow, graph, environment, metadata, flow_datastore, echo."""
    decorators = list(obj.graph[step].decorators)
    given = decoded(options)
    reporter = TaskReporter(obj.echo_always, is_gang=given["num_parallel"] is not None)
    try:
        with interruptible():
            _wait_before_retry(decorators, given["attempt"], reporter)
            launch = _Launch(obj, step, given, reporter, decorators)
            launch.run(
                launch.plan(decorators, Package(metadata=package[0], sha=package[1], url=package[2]), script_name, top_options)
            )
    except KubernetesExtError as error:
        if not isinstance(error, TaskFailed):  # a failure has been reported with all that is known of it
            reporter.line(str(error))
        return exit_codes.of_error(error, has_catch=any(deco.name == "catch" for deco in decorators))
    except Interrupted as interrupted:
        return exit_codes.of_signal(interrupted.number)
    return 0


def decoded(options: Mapping[str, Any]) -> dict[str, Any]:
    """The command line's options as values: `namespace` is the cluster's, `metaflow_namespace` Metaflow's."""
    found = dict(options)
    found["metaflow_namespace"] = found.pop("namespace", None)
    found["namespace"] = found.pop("k8s_namespace", None) or "default"
    found["node_selector"] = dict(pair.partition("=")[::2] for pair in found.get("node_selector") or ())
    found["secrets"] = tuple(found.get("secrets") or ())
    found["use_tmpfs"], found["tmpfs_tempdir"] = is_true(found.get("use_tmpfs")), is_true(found.get("tmpfs_tempdir"))
    found["attempt"] = int(found.get("retry_count") or 0)
    return found


def max_restarts(options: Mapping[str, Any], settings: Settings, decorators: Sequence[Any]) -> int:
    """Whoever says @retry(times=0) says that the step must not run twice."""
    if options.get("max_restarts") not in (None, ""):
        return quantities.whole(options["max_restarts"], "max_restarts")
    runs_once = any(deco.name == "retry" and int(deco.attributes.get("times") or 0) == 0 for deco in decorators)
    return 0 if runs_once else settings.max_restarts


def _wait_before_retry(decorators: Sequence[Any], attempt: int, reporter: TaskReporter) -> None:
    retry = next((deco for deco in decorators if deco.name == "retry"), None)
    minutes = 0.0 if retry is None or not attempt else float(retry.attributes.get("minutes_between_retries", 2))
    if minutes > 0:
        reporter.line(f"Waiting {minutes:g} minutes before the next attempt.")
        time.sleep(minutes * 60)


class _Launch:
    """One attempt of one task."""

    def __init__(
        self, obj: Any, step: str, options: Mapping[str, Any], reporter: TaskReporter, decorators: Sequence[Any]
    ) -> None:
        self._obj = obj
        self._options = options
        self._reporter = reporter
        self._settings = read_settings(obj.flow_datastore.TYPE)
        self._max_restarts = max_restarts(options, self._settings, decorators)
        self._clock = RealClock()
        self._task = TaskRef(
            flow=obj.flow.name,
            run_id=options["run_id"],
            step=step,
            task_id=options["task_id"],
            attempt=options["attempt"],
            user=get_username() or "unknown",
            num_parallel=options["num_parallel"],
            project=_project(),
            client=json.dumps(this_process().as_json()),
        )
        self._ids = TaskIds(self._task.task_id, self._task.num_parallel or 1)
        self._backend = backend_of(self._task.num_parallel, options, self._settings)
        self._timeline = Timeline()
        self._records = Records(obj, self._task, self._ids, self._timeline, reporter.line)
        self._run_pid = os.getppid()
        self._supervised = Supervised(os.environ.get(ADDRESS), on_detach=detach)

    def plan(self, decorators: Sequence[Any], package: Package, script_name: str, top_options: Mapping[str, Any]) -> Plan:
        code = task_code(
            self._task,
            flow_datastore=self._obj.flow_datastore,
            environment=self._obj.environment,
            decorators=decorators,
            package=package,
            script_name=script_name,
            top_options=top_options,
            options=self._options,
        )
        submission = uuid.uuid4().hex

        def plan(name: str | None, *, restart: int = 0) -> LaunchSpec:
            return launch_spec(self._task, self._options, code, self._settings, submission, name, restart)

        return plan

    def run(self, plan: Plan) -> None:
        """Raises TaskFailed when the workload failed; whatever happens, only a workload that succeeded stays behind."""
        client, most = KubernetesClient(), self._max_restarts
        try:
            gang, why = gang_choice.settled(client, plan(None), self._backend)
            if why:
                self._tell(f"Gang scheduling: {gang} ({why}).")
            for restart in itertools.count():
                created = self._submit(client, partial(plan, restart=restart), gang)
                namespace = created["metadata"]["namespace"]
                running = RunningJobSet(client, self._backend, created, namespace=namespace, clock=self._clock, tell=self._tell)
                status, others = self._follow(client, running)
                if not starts_again(status, restart, most):
                    self._conclude(running, after_restarts(status, restart, most), others)
                    return
                self._tell(starting_again.words(status, restart + 1, most))
                self._delete(running)
                running.await_pods_gone()
        except TaskFailed:
            raise
        except KubernetesExtError as error:
            self._records.keep(
                not_followed(
                    str(error), is_refused=isinstance(error, Rejected), is_retryable=exit_codes.is_retryable(error),
                    size=self._ids.size, at=self._clock.now(),
                )
            )  # fmt: skip
            raise
        finally:
            self._supervised.close()
            client.close()

    def _tell(self, text: str) -> None:
        """To the user, and into the timeline."""
        self._timeline.add(self._clock.now(), text)
        self._reporter.line(text)

    def _submit(self, client: ClusterClient, plan: Callable[[str | None], LaunchSpec], gang: str | None) -> Manifest:
        """The created object. An interruption may come between its creation and the answer: then it is taken back."""
        posted: list[Manifest] = []
        groups = PodGroups(client, self._clock, self._tell)

        def made(name: str | None) -> Manifest:
            spec = replace(plan(name), gang=gang)
            posted.append(self._backend.build(spec))
            self._records.manifest = posted[-1]
            self._supervised.own(owned(self._backend, posted[-1]))
            if group := self._backend.pod_group(spec):
                self._supervised.own(owned(group_resource(group), group, is_beside=True))
                groups.post(group)
            return posted[-1]

        def rename(taken: Manifest) -> Manifest:
            return made(workload_name(self._task.flow, self._task.step, (uuid.uuid4().hex,)))

        namespace = self._options["namespace"]
        try:
            created = submit(
                client,
                self._backend,
                made(None),
                namespace=namespace,
                clock=self._clock,
                rename=rename,
                without=self._backend.without_fields,
                on_trouble=lambda error: self._tell(f"The API server takes no requests: {error}") if error else None,
            )
            groups.adopt(created)
            return created
        except Interrupted:
            for manifest in posted:
                withdraw(client, self._backend, manifest, namespace=namespace)
            groups.withdraw()
            self._supervised.release()
            raise
        except ClusterError as error:
            if not isinstance(error, Unavailable):  # else it may be there all the same: the supervisor looks
                groups.withdraw()
                self._supervised.release()
            raise

    def _follow(self, client: ClusterClient, running: RunningJobSet) -> Ended:
        """How it ended, and the last lines of other ranks."""
        which = parse_logs(self._options.get("logs") or self._settings.logs)
        monitor = Monitor(client, running, self._reporter, clock=self._clock, which=which, timeline=self._timeline)
        self._tell(f"{self._backend.kind} {running.name} created in namespace {running.namespace}.")
        stall_watch = self._stall_watch(client, running)
        try:
            with running:
                status = monitor.follow(self._launch_limit(), stall_watch.seen)
        except Interrupted as signal:
            self._tell(f"{signal}: deleting {self._backend.kind} {running.name} with its pods.")
            try:
                self._delete(running)
            finally:  # core gives us five seconds
                ended = interrupted(running.status, self._backend.kind, str(signal), self._clock.now())
                self._records.keep(ended, is_in_haste=True)
            raise
        except BaseException:
            if os.getppid() == self._run_pid:  # else the run was killed, and what it started goes on without it
                self._delete(running)
            raise
        finally:
            stall_watch.close()
            monitor.close()
        return status, monitor.other_last_lines(status)

    def _conclude(self, running: RunningJobSet, status: WorkloadStatus, others: Mapping[int, Sequence[str]]) -> None:
        status = with_stored_lines(status, self._obj.flow_datastore, self._task, self._ids, self._reporter.line)
        self._records.keep(status)
        if status.phase in (Phase.SUCCEEDED, Phase.GONE):
            self._supervised.release()
        if status.phase is Phase.SUCCEEDED:
            return
        for line in failure_report.lines(status, others):
            self._reporter.line(line)
        if status.phase is not Phase.GONE:
            try:
                self._delete(running)
            except ClusterError as error:  # says how to finish; what the run hears is why the workload failed
                self._reporter.line(str(error))
        raise TaskFailed(status.failure)

    def _stall_watch(self, client: ClusterClient, running: RunningJobSet) -> StallWatch:
        """Started, if it is wanted. Others than this process learn of a stall from an annotation of the workload."""
        limit, task = stall_timeout(self._options, self._settings), self._task

        def annotate(found: Stalled | None) -> None:
            body = {"metadata": {"annotations": {labels.STALLED: as_annotation(found)}}}
            with suppress(ClusterError):
                client.patch(resource_of(self._backend), running.namespace, running.name, body)

        mailbox = DatastoreMailbox(self._obj.flow_datastore, task.run_id, task.step, self._ids, task.attempt)
        in_log = partial(stack_in_log, client, running.namespace)
        watch = StallWatch(mailbox, limit, patience=patience(limit), clock=self._clock, in_log=in_log, on_change=annotate)
        if limit:
            watch.start()
        return watch

    def _launch_limit(self) -> LaunchLimit:
        given, settings = self._options, self._settings
        return LaunchLimit(
            launch=_seconds(given.get("launch_timeout"), settings.launch_timeout, "launch_timeout"),
            image_pull=_seconds(given.get("image_pull_timeout"), settings.image_pull_timeout, "image_pull_timeout"),
        )

    def _delete(self, running: RunningJobSet) -> None:
        """Raises ClusterError; the supervisor then goes on trying when this process has ended."""
        running.kill()
        self._supervised.release()


def detach() -> None:
    """The run's own process was killed: its workloads go on, their step processes have nobody left to tell anything."""
    os._exit(0)


def _seconds(given: Any, default: int, what: str) -> int:
    return default if given in (None, "") else quantities.whole(given, what)


def _project() -> dict[str, str]:
    """Core's annotations of @project."""
    if not current.get("project_name"):
        return {}
    return {
        "metaflow/project_name": current.project_name,
        "metaflow/branch_name": current.branch_name,
        "metaflow/project_flow_name": current.project_flow_name,
    }
