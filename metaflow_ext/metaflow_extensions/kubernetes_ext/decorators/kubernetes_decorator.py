"""@kubernetes: core's decorator with our launch path. Its attributes and their values stay core's, since the compilers
for Argo and Airflow read them; tasks that core, Argo or Airflow launched run core's own hooks."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from metaflow import current
from metaflow.metadata_provider.util import sync_local_metadata_to_datastore
from metaflow.metaflow_config import DATASTORE_LOCAL_DIR
from metaflow.plugins.kubernetes.kubernetes_decorator import KubernetesDecorator as CoreKubernetesDecorator
from metaflow.plugins.timeout_decorator import get_run_time_limit_for_task
from metaflow.unbounded_foreach import UBF_CONTROL

from ..spec.names import TaskIds
from . import attributes as attribute_table
from . import (
    caught,
    compiled_code,
    completion,
    current_gang,
    gang_environment,
    gang_record,
    hang_watch,
    num_parallel,
    spot_monitor,
    step_check,
    task_metadata,
)
from .host_errors import KubernetesError, as_metaflow_error
from .shared_files import is_shared

if TYPE_CHECKING:
    from .site_policy import Effective


class KubernetesDecorator(CoreKubernetesDecorator):
    __doc__ = (
        (CoreKubernetesDecorator.__doc__ or "")
        + """
    logs : str, optional, default None
        Which ranks of a @parallel step are shown in the terminal while they run: "control", "all", "none" or ranks
        such as "0,3". Failed ranks are shown at the end in any case. Default METAFLOW_KUBERNETES_LOGS, "control".
    grace_period : int, optional, default None
        Seconds between SIGTERM and SIGKILL when the pods are stopped. Default METAFLOW_KUBERNETES_GRACE_PERIOD_SECONDS, 30.
    launch_timeout : int, optional, default None
        Seconds until all ranks must run, without the time in a queue; 0 is no limit. Default
        METAFLOW_KUBERNETES_LAUNCH_TIMEOUT, a day.
    image_pull_timeout : int, optional, default None
        Seconds for which an image may fail to be pulled; 0 is no limit. Default METAFLOW_KUBERNETES_IMAGE_PULL_TIMEOUT,
        20 minutes.
    stall_timeout : int, optional, default None
        Seconds after which ranks that stand still are told, with where each of them stands; nothing is stopped. 0: never
        look. Default METAFLOW_KUBERNETES_STALL_TIMEOUT, 10 minutes.
    max_restarts : int, optional, default None
        How often all ranks start again, within one attempt of @retry, after the cluster has taken one of them away: an
        eviction, a preemption, a lost node. Default METAFLOW_KUBERNETES_MAX_RESTARTS, 3; 0 with @retry(times=0).
    queue : str, optional, default None
        LocalQueue of Kueue in which the step waits for its quota, all ranks together. Default METAFLOW_KUBERNETES_QUEUE.
    workload_priority : str, optional, default None
        Kueue's WorkloadPriorityClass: who comes first in the queue, and who makes room for whom. Default
        METAFLOW_KUBERNETES_WORKLOAD_PRIORITY.
    priority_class : str, optional, default None
        PriorityClass of the pods. Default METAFLOW_KUBERNETES_PRIORITY_CLASS.
    scheduler : str, optional, default None
        Name of the scheduler of the pods. Default METAFLOW_KUBERNETES_SCHEDULER, Kubernetes' own.
    topology : str, optional, default None
        How near to each other the ranks run, by Kueue: "required:LEVEL" or "preferred:LEVEL", LEVEL a label of nodes.
        Default METAFLOW_KUBERNETES_TOPOLOGY.
    affinity : dict, optional, default None
        Affinity of the pods, as in a pod's spec. Default METAFLOW_KUBERNETES_AFFINITY.
    instance_type : str or list, optional, default None
        Types of nodes (label node.kubernetes.io/instance-type). Default METAFLOW_KUBERNETES_INSTANCE_TYPE.
    runtime_class : str, optional, default None
        RuntimeClass of the pods. Default METAFLOW_KUBERNETES_RUNTIME_CLASS.
    resource_claims : list or dict, optional, default None
        Devices by Dynamic Resource Allocation: ResourceClaimTemplates, of each of which every rank has a claim; or a
        dictionary of names to {"template" or "claim": ..., "request": ...}. Default METAFLOW_KUBERNETES_RESOURCE_CLAIMS.
    pod_overlay : dict or str, optional, default None
        Any other fields of the pods, merged over what was made last (docs/settings.md); a dictionary or YAML. Default
        METAFLOW_KUBERNETES_POD_OVERLAY.
    gang : str, optional, default None
        Who starts all ranks together or none: "kueue" (where there is a queue), "coscheduling" (the scheduler plugin),
        "native" (Kubernetes' own PodGroups), "auto" (what the cluster has), "none". Default METAFLOW_KUBERNETES_GANG; else Kueue
        where there is a queue, and nobody otherwise.
    backend : str, optional, default None
        What the step is in the cluster: "jobset", "job", or "appwrapper", which is an AppWrapper around one of them that
        Kueue admits as a whole. Default METAFLOW_KUBERNETES_BACKEND; else a JobSet for @parallel steps, a Job for others.
    fault_tolerance : dict, optional, default None
        How often and after what an AppWrapper starts again (docs/settings.md). Default METAFLOW_KUBERNETES_FAULT_TOLERANCE.
    """
    )

    defaults = attribute_table.defaults(CoreKubernetesDecorator.defaults)
    _is_checked = False  # once a process: is there a cluster that can run this flow?
    _hang_watch: hang_watch.HangWatch | None = None
    _spot_monitor: spot_monitor.SpotMonitor | None = None
    _from_resources: frozenset[str] = frozenset()

    def init(self) -> None:  # core calls it only where the class itself defines it
        super().init()

    # -- the launching process, and every other before it knows better

    def step_init(
        self, flow: Any, graph: Any, step: str, decos: Any, environment: Any, flow_datastore: Any, logger: Any
    ) -> None:
        self.logger = logger
        self.environment = environment
        self.step = step
        self.flow_datastore = flow_datastore
        self.is_parallel = any(getattr(deco, "IS_PARALLEL", False) for deco in decos)
        self.has_catch = any(deco.name == "catch" for deco in decos)
        step_check.require_datastore(flow_datastore.TYPE, is_shared())
        step_check.require_one_engine(step, decos)
        self.run_time_limit = get_run_time_limit_for_task(decos)
        step_check.require_run_time_limit(step, self.run_time_limit)
        self._from_resources = step_check.merge_resources(self.attributes, self.defaults, decos)
        step_check.check_attributes(step, self.attributes)
        if self.is_parallel:
            num_parallel.check_literal(graph, step)
        current_gang.attach(flow_datastore)

    def package_init(self, flow: Any, step_name: str, environment: Any) -> None:
        if importlib.util.find_spec("kubernetes") is None:  # importing it here would cost every run 0.3 s
            raise KubernetesError(
                f"The Python package 'kubernetes' is not installed. Install it: {sys.executable} -m pip install kubernetes"
            )

    def add_to_package(self) -> list[tuple[str, str]]:
        return compiled_code.for_package()

    def runtime_init(self, flow: Any, graph: Any, package: Any, run_id: str) -> None:
        super().runtime_init(flow, graph, package, run_id)
        if not KubernetesDecorator._is_checked:
            from . import run_signals, run_supervisor
            from .preflight import check_cluster, check_steps

            KubernetesDecorator._is_checked = True
            run_signals.install()
            check_cluster(check_steps(flow.name, graph))
            run_supervisor.start()

    def runtime_finished(self, exception: Exception | None) -> None:
        super().runtime_finished(exception)
        from . import run_supervisor

        run_supervisor.finish(lambda text: self.logger(text, head="", timestamp=False))

    def runtime_step_cli(self, cli_args: Any, retry_count: int, max_user_code_retries: int, ubf_context: Any) -> None:
        if self.is_parallel:
            num_parallel.require_started_in_parallel(ubf_context, self.step)
            if ubf_context == UBF_CONTROL:
                num_parallel.require_num_parallel(cli_args.task.ubf_iter.num_parallel, self.step)
        if retry_count > max_user_code_retries:
            return  # @catch's fallback runs locally
        cli_args.commands = ["kubernetes", "step"]
        cli_args.command_args.extend([self.package_metadata, self.package_sha, self.package_url])
        counting = self.effective().attributes
        cli_args.command_options.update(attribute_table.command_options(dict(counting)))
        cli_args.command_options["run-time-limit"] = self.run_time_limit
        cli_args.command_options["hostname-resolution-timeout"] = counting["hostname_resolution_timeout"]
        cli_args.entrypoint[0] = sys.executable

    def effective(self) -> Effective:
        """The attributes that count, and where each is from: with what this site says for all steps."""
        from . import site_policy

        with as_metaflow_error():
            policy = site_policy.read_policy()
            found = site_policy.effective(
                self.attributes, self.defaults, self._user_defined_attributes, self._from_resources, policy
            )
        step_check.check_attributes(self.step, dict(found.attributes))
        return found

    def launch_options(self) -> dict[str, Any]:
        """The attributes that count, as `launch_spec` takes them."""
        counting = dict(self.effective().attributes)
        flags = {name: attribute_table.is_true(counting[name]) for name in ("use_tmpfs", "tmpfs_tempdir")}
        secrets = attribute_table.command_options({"secrets": counting["secrets"]})["secrets"]
        return {**counting, **flags, "secrets": secrets, "run_time_limit": self.run_time_limit}

    # -- the task

    def task_pre_step(
        self,
        step_name: str,
        task_datastore: Any,
        metadata: Any,
        run_id: str,
        task_id: str,
        flow: Any,
        graph: Any,
        retry_count: int,
        max_retries: int,
        ubf_context: Any,
        inputs: Any,
    ) -> None:
        self._is_ours = gang_environment.is_ours()  # for good: the step's code may change the environment
        self._complete_file = os.environ.get(completion.COMPLETE)
        if retry_count > max_retries:
            caught.explain(f"{flow.name}/{run_id}/{step_name}/{task_id}", retry_count)
        if not self._is_ours:
            if "METAFLOW_KUBERNETES_WORKLOAD" in os.environ or not self.is_parallel:
                super().task_pre_step(
                    step_name, task_datastore, metadata, run_id, task_id, flow, graph,
                    retry_count, max_retries, ubf_context, inputs,
                )  # fmt: skip
            return
        self.metadata = metadata
        self.task_datastore = task_datastore
        if not attribute_table.is_true(self.attributes["tmpfs_tempdir"]):
            current._update_env({"tempdir": self.attributes["tmpfs_path"]})
        self._watch_for_a_spot_notice()
        values: dict[str, Any] = dict(task_metadata.of_pod())
        self._beat: gang_record.Beat | None = None
        if hasattr(flow, "_parallel_ubf_iter"):
            values.update(self._join_gang(flow, run_id, step_name, task_id, retry_count, ubf_context))
        metadata.register_metadata(run_id, step_name, task_id, task_metadata.entries(values, retry_count))
        self._watch_for_hangs(run_id, step_name, task_id, retry_count)

    def _join_gang(self, flow: Any, run_id: str, step: str, task_id: str, attempt: int, ubf_context: Any) -> dict[str, Any]:
        """Become a rank: record ourselves, find control, tell core's runtime who belongs to the gang."""
        self._ids = TaskIds(os.environ["MF_PARALLEL_CONTROL_TASK_ID"], int(os.environ["MF_WORLD_SIZE"]))
        self._task_id = task_id
        self._records = gang_record.Records(self.flow_datastore, run_id, step, attempt)
        rank = gang_environment.rank()
        role = "control" if ubf_context == UBF_CONTROL else "worker"
        self._record: gang_record.Record = {
            "rank": rank,
            "role": role,
            "pod": os.environ.get("METAFLOW_KUBERNETES_POD_NAME", ""),
            "pod_uid": os.environ.get("METAFLOW_KUBERNETES_POD_ID", ""),
            "node": os.environ.get("METAFLOW_KUBERNETES_NODE_NAME", ""),
            "ip": os.environ.get("METAFLOW_KUBERNETES_POD_IP", ""),
            "restarts": int(os.environ.get("METAFLOW_KUBERNETES_RESTART") or 0),
            "started": _now(),
            "finished": None,
            "done": False,
        }
        self._records.write(task_id, self._record)
        try:
            gang_environment.set_up_task(float(self.attributes["hostname_resolution_timeout"]))
        except TimeoutError as error:
            raise KubernetesError(str(error)) from error
        if ubf_context == UBF_CONTROL:
            self._beat = gang_record.Beat(self._records, task_id, self._record)
            flow._control_mapper_tasks = ["/".join((run_id, step, of_rank)) for of_rank in self._ids.all()]
            flow._control_task_is_mapper_zero = True
        return {"parallel-node-index": rank, "gang-rank": rank, "gang-role": role}

    def task_post_step(self, step_name: str, flow: Any, graph: Any, retry_count: int, max_user_code_retries: int) -> None:
        if self._is_ours and self._hang_watch is not None:
            self._hang_watch.finish()
        if not self._is_ours or self._beat is None:
            return
        try:
            gang_record.wait_for_workers(
                self._records, self._ids.all()[1:], self._record["pod_uid"], self._beat, float(self.run_time_limit)
            )
        except TimeoutError as error:
            raise KubernetesError(f"The gang of step *{step_name}* is not complete: {error}.") from error

    def task_finished(
        self, step_name: str, flow: Any, graph: Any, is_task_ok: bool, retry_count: int, max_retries: int
    ) -> None:
        if not (self._is_ours if hasattr(self, "_is_ours") else gang_environment.is_ours()):
            if "METAFLOW_KUBERNETES_WORKLOAD" in os.environ or not self.is_parallel:
                super().task_finished(step_name, flow, graph, is_task_ok, retry_count, max_retries)
            return
        # There is no guarantee that task_pre_step ran to its end before this.
        if hasattr(self, "metadata") and self.metadata.TYPE == "local" and self.flow_datastore.TYPE != "local":
            sync_local_metadata_to_datastore(DATASTORE_LOCAL_DIR, self.task_datastore)
        if getattr(self, "_record", None) is not None:
            self._leave_gang(is_task_ok)
        if self._hang_watch is not None:
            self._hang_watch.stop()
        if self._spot_monitor is not None:
            self._spot_monitor.stop()
        if is_task_ok:
            completion.state_complete(getattr(self, "_complete_file", None))

    def _watch_for_hangs(self, run_id: str, step: str, task_id: str, attempt: int) -> None:
        limit, datastore = hang_watch.limit(), self.flow_datastore
        if not limit:
            return
        answers = gang_record.Records(datastore, run_id, step, attempt, hang_watch.RANK)
        requests = gang_record.Records(datastore, run_id, step, attempt, hang_watch.REQUEST)
        control = os.environ.get("MF_PARALLEL_CONTROL_TASK_ID", task_id)
        self._hang_watch = hang_watch.HangWatch(
            limit,
            {"pod_uid": os.environ.get("METAFLOW_KUBERNETES_POD_ID", "")},
            write=lambda record: answers.write(task_id, record),
            asked=lambda: str(requests.read([control]).get(control, {}).get("token", "")),
            progress=current_gang.progress,
            is_container=not is_shared(),
        )
        self._hang_watch.start()

    def _leave_gang(self, is_task_ok: bool) -> None:
        """State that we are done, after our DONE marker: what control's barrier waits for."""
        self._record["finished"] = _now()
        if self._beat is not None:
            self._beat.stop()
        elif is_task_ok:
            self._record["control"] = gang_record.wait_for_live_control(
                self._records, self._ids.control, float(self.run_time_limit)
            )
        self._record["done"] = bool(is_task_ok)
        self._records.write(self._task_id, self._record)

    def _watch_for_a_spot_notice(self) -> None:
        if not is_shared():
            current._update_env({"spot_termination_notice": spot_monitor.NOTICE})
            self._spot_monitor = spot_monitor.SpotMonitor()
            self._spot_monitor.start()


def _now() -> str:
    return datetime.fromtimestamp(time.time(), timezone.utc).isoformat()
