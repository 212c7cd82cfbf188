"""Workers of a local gang are real processes."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from metaflow_extensions.kubernetes_ext.decorators import parallel_decorator
from metaflow_extensions.kubernetes_ext.decorators.host_errors import KubernetesError
from metaflow_extensions.kubernetes_ext.decorators.parallel_decorator import WorkerFailure


def process(code: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-S", "-c", code])


@pytest.fixture
def watch() -> Iterator[Callable[..., WorkerFailure]]:
    made: list[WorkerFailure] = []

    def start(*workers: "subprocess.Popen[bytes]") -> WorkerFailure:
        made.append(WorkerFailure(list(workers)))
        made[-1].watch()
        return made[-1]

    yield start
    for failure in made:
        failure.end()


def test_all_that_end_well_are_waited_for(watch: Callable[..., WorkerFailure]) -> None:
    workers = [process("pass"), process("import time; time.sleep(0.2)")]
    watch(*workers).wait()
    assert [worker.returncode for worker in workers] == [0, 0]


def test_a_failed_worker_interrupts_rank_0_and_is_named(watch: Callable[..., WorkerFailure]) -> None:
    workers = [process("import time; time.sleep(60)"), process("raise SystemExit(3)")]
    with pytest.raises(KubernetesError, match=r"Worker 1 \(rank 2\) .* exit code 3"):  # noqa: PT012
        watch(*workers)
        time.sleep(60)
    parallel_decorator.stop(workers)
    assert all(worker.returncode is not None for worker in workers)


def test_a_failure_after_rank_0_is_done_is_an_error(watch: Callable[..., WorkerFailure]) -> None:
    with pytest.raises(KubernetesError, match="exit code 4"):
        watch(process("import time; time.sleep(0.3); raise SystemExit(4)")).wait()
