"""@parallel: core's decorator with deterministic task ids everywhere, and a local gang that ends as one.

On Kubernetes core's hooks serve as they are. Locally core starts the workers under ids of its own (`<id>_node_<i>`) and
waits for them one after the other; here they are `<id>-worker-<i>`, as on Kubernetes, and the first failure ends the gang.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from metaflow.plugins.parallel_decorator import ParallelDecorator as CoreParallelDecorator
from metaflow.unbounded_foreach import UBF_CONTROL, UBF_TASK

from ..spec.names import TaskIds
from . import current_gang, num_parallel
from .host_errors import KubernetesError

GRACE_SECONDS = 10.0


class ParallelDecorator(CoreParallelDecorator):
    __doc__ = CoreParallelDecorator.__doc__

    def step_init(
        self, flow: Any, graph: Any, step_name: str, decorators: Any, environment: Any, flow_datastore: Any, logger: Any
    ) -> None:
        super().step_init(flow, graph, step_name, decorators, environment, flow_datastore, logger)
        self.step = step_name
        current_gang.attach(flow_datastore)
        num_parallel.check_literal(graph, step_name)

    def runtime_step_cli(self, cli_args: Any, retry_count: int, max_user_code_retries: int, ubf_context: Any) -> None:
        num_parallel.require_started_in_parallel(ubf_context, self.step)
        if ubf_context == UBF_CONTROL:
            num_parallel.require_num_parallel(cli_args.task.ubf_iter.num_parallel, self.step)
        super().runtime_step_cli(cli_args, retry_count, max_user_code_retries, ubf_context)

    def task_decorate(
        self, step_func: Any, flow: Any, graph: Any, retry_count: int, max_user_code_retries: int, ubf_context: Any
    ) -> Callable[[], None]:
        def step_with_setup() -> None:
            self.setup_distributed_env(flow)
            step_func()

        is_local = os.environ.get("METAFLOW_RUNTIME_ENVIRONMENT", "local") == "local"
        is_fallback = retry_count > max_user_code_retries  # @catch's, after the last attempt: there is nothing to run
        if ubf_context != UBF_CONTROL or not is_local or is_fallback:
            return step_with_setup
        environment = getattr(self.environment, "base_env", self.environment)
        return lambda: run_local_gang(flow, environment, step_with_setup, retry_count, ",".join(self.input_paths))


def run_local_gang(flow: Any, environment: Any, step_func: Callable[[], None], retry_count: int, input_paths: str) -> None:
    """Be rank 0 here and start the other ranks as processes; returns when all have ended well."""
    from metaflow import current

    size = num_parallel.require_num_parallel(flow._parallel_ubf_iter.num_parallel, current.step_name)
    ids = TaskIds(current.task_id, size)
    os.environ.update(
        MF_PARALLEL_NUM_NODES=str(size),
        MF_PARALLEL_MAIN_IP="127.0.0.1",
        MF_PARALLEL_CONTROL_TASK_ID=current.task_id,
    )
    flow._control_mapper_tasks = ["/".join((current.run_id, current.step_name, task_id)) for task_id in ids.all()]
    workers = [
        subprocess.Popen(
            worker_command(environment, current.run_id, current.step_name, ids.of_rank(rank), rank, retry_count, input_paths),
            env={**os.environ, "MF_PARALLEL_NODE_INDEX": str(rank)},
        )
        for rank in range(1, size)
    ]
    failure = WorkerFailure(workers)
    try:
        os.environ["MF_PARALLEL_NODE_INDEX"] = "0"
        failure.watch()
        step_func()
        failure.wait()
    finally:
        failure.end()
        stop(workers)


def worker_command(
    environment: Any, run_id: str, step: str, task_id: str, rank: int, retry_count: int, input_paths: str
) -> list[str]:
    """The command line of this very step, as another rank."""
    from metaflow.cli_args import cli_args

    options = dict(
        cli_args.step_kwargs,
        split_index=str(rank),
        run_id=run_id,
        task_id=task_id,
        input_paths=input_paths,
        ubf_context=UBF_TASK,
        retry_count=str(retry_count),
    )
    executable = environment.executable(step)
    if executable in ("python", "python3"):  # no environment of its own: the interpreter of this rank, not the one on the path
        executable = sys.executable
    return list(cli_args.step_command(executable, sys.argv[0], step, step_kwargs=options))


class WorkerFailure:
    """The first worker that failed. While rank 0's own code runs, it interrupts that: the others wait for a peer in vain.

    The interruption is a signal, since only that wakes a sleep or a read; not SIGINT, which a shell's background jobs ignore.
    """

    def __init__(self, workers: list[subprocess.Popen[bytes]]) -> None:
        self._text = ""
        self._left = dict(enumerate(workers))
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="local-gang", daemon=True)
        self._handler_before: Any = signal.SIG_DFL

    def watch(self) -> None:
        """From now on a failure raises KubernetesError in the main thread, which this must be."""
        self._handler_before = signal.signal(signal.SIGUSR2, self._interrupt)
        self._thread.start()

    def wait(self) -> None:
        """Return when all have ended well; a failure raises."""
        self._thread.join()

    def end(self) -> None:
        self._is_over.set()
        signal.signal(signal.SIGUSR2, self._handler_before)

    def _interrupt(self, number: int, frame: Any) -> None:
        raise KubernetesError(self._text)

    def _run(self) -> None:
        while self._left and not self._is_over.is_set():
            for index, worker in list(self._left.items()):
                code = worker.poll()
                if code == 0:
                    del self._left[index]
                elif code is not None and not self._is_over.is_set():
                    self._text = f"Worker {index} (rank {index + 1}) of the local gang failed with exit code {code}."
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR2)
                    return
            self._is_over.wait(0.05)


def stop(workers: list[subprocess.Popen[bytes]]) -> None:
    """End what still runs: SIGTERM, then SIGKILL."""
    running = [worker for worker in workers if worker.poll() is None]
    for worker in running:
        worker.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    for worker in running:
        try:
            worker.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
