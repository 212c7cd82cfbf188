"""What tells a task that it is one rank of a gang: the environment variables, as core sets them today.

The client puts the names that are alike in all ranks into the manifest (`manifest_variables`); the rest is computed in
the task (`set_up_task`), so that @torchrun, @deepspeed, @metaflow_ray and @mpi, which know only core's, keep working.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

# Says that this package made the workload, and with which contract: without it the task was launched by core, Argo, ...
CONTRACT = "METAFLOW_KUBERNETES_EXT"
CONTRACT_VERSION = "1"

DEFAULT_PORT = 29500  # of torch.distributed


def is_ours() -> bool:
    return os.environ.get(CONTRACT) == CONTRACT_VERSION and "METAFLOW_KUBERNETES_WORKLOAD" in os.environ


def manifest_variables(control_task_id: str, size: int, port: int | None) -> dict[str, str]:
    """The variables that every rank of a gang of `size` gets literally. MF_MASTER_ADDR is control's DNS name, beside them."""
    return {
        "MF_MASTER_PORT": str(port or DEFAULT_PORT),
        "MF_WORLD_SIZE": str(size),
        "MF_PARALLEL_NUM_NODES": str(size),
        "MF_PARALLEL_CONTROL_TASK_ID": control_task_id,
    }


def rank() -> int:
    """0 is control, worker i is rank i + 1."""
    return 0 if "MF_CONTROL_INDEX" in os.environ else int(os.environ["MF_WORKER_REPLICA_INDEX"]) + 1


def set_up_task(
    timeout: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Set MF_PARALLEL_MAIN_IP and MF_PARALLEL_NODE_INDEX. Workers wait up to `timeout` seconds for control's name.

    Raises TimeoutError. getaddrinfo, not gethostbyname: the address may be IPv6.
    """
    os.environ["MF_PARALLEL_NODE_INDEX"] = str(rank())
    os.environ["MF_PARALLEL_MAIN_IP"] = resolve(os.environ["MF_MASTER_ADDR"], timeout, sleep, clock)


def resolve(name: str, timeout: float, sleep: Callable[[float], None], clock: Callable[[], float]) -> str:
    deadline = clock() + timeout
    delay = 0.1
    while True:
        try:
            addresses = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            return str(sorted(addresses, key=lambda found: found[0] != socket.AF_INET)[0][4][0])
        except socket.gaierror as error:
            if clock() + delay > deadline:
                raise TimeoutError(
                    "The control rank's name %s has not resolved for %d seconds (%s). Its pod may not have started: "
                    "look at the control rank first. @kubernetes(hostname_resolution_timeout=...) is the limit."
                    % (name, timeout, error)
                ) from error
            sleep(delay)
            delay = min(delay * 1.5, 2.0)
