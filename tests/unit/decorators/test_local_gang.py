"""Workers of a local gang are real processes."""

import subprocess
import sys
import time

import pytest

from metaflow_extensions.kubernetes_ext.decorators import parallel_decorator
from metaflow_extensions.kubernetes_ext.decorators.host_errors import KubernetesError
from metaflow_extensions.kubernetes_ext.decorators.parallel_decorator import WorkerFailure


def process(code: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-S", "-c", code])


def test_all_that_end_well_are_waited_for() -> None:
    workers = [process("pass"), process("import time; time.sleep(0.2)")]
    failure = WorkerFailure(workers)
    failure.watch()
    failure.wait()
    assert [worker.returncode for worker in workers] == [0, 0]


def test_the_failed_worker_is_named_and_the_others_are_stopped() -> None:
    workers = [process("import time; time.sleep(60)"), process("raise SystemExit(3)")]
    failure = WorkerFailure(workers)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        failure.watch()
        while True:
            time.sleep(0.05)
    assert "Worker 1 (rank 2)" in failure.text
    parallel_decorator.stop(workers)
    assert all(worker.returncode is not None for worker in workers)


def test_a_failure_after_rank_0_is_done_is_an_error() -> None:
    failure = WorkerFailure([process("import time; time.sleep(0.3); raise SystemExit(4)")])
    failure.watch()
    with pytest.raises(KubernetesError, match="exit code 4"):
        failure.wait()
