"""All controllers of a cluster, in the order in which they look at a change."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from ..cluster import Cluster
from .delays import Delays
from .garbage import GarbageCollector
from .job_controller import JobController
from .jobset_controller import JobSetController
from .manager import Manager, utc_now
from .namespace import NamespaceController
from .nodes import NodeLifecycle
from .queue_player import QueuePlayer
from .scheduler import Scheduler
from .ttl import TtlController


def control_plane(cluster: Cluster, delays: Delays, now: Callable[[], datetime.datetime] = utc_now) -> Manager:
    """Jobs come before the garbage collector: a Job on its way out releases its pods before they are deleted."""
    store = cluster.store
    return Manager(
        store,
        [
            NamespaceController(store, now),
            JobSetController(cluster, now),
            JobController(cluster, now, delays),
            GarbageCollector(store),
            Scheduler(store, now),
            NodeLifecycle(store, now, delays),
            TtlController(store, now),
            QueuePlayer(cluster, now),
        ],
    )
