"""A gang between two plain steps, for most of the tests. What its ranks do is decided by parameters."""

import json
import os
import re
import sys
import time

from metaflow import FlowSpec, Parameter, current, kubernetes, parallel, step


def gang_only(func):
    """Put only the gang on Kubernetes, with the attributes in TEST_GANG_ONLY, as after "--with kubernetes:". Pods don't see it."""
    options = os.environ.get("TEST_GANG_ONLY", "" if "METAFLOW_KUBERNETES_WORKLOAD" in os.environ else None)
    if options is None:
        return func
    pairs = [pair.partition("=") for pair in re.split(r",(?=\w+=)", options) if pair]
    return kubernetes(**{name: json.loads(text) if text[:1] in ("{", "[") else text for name, _, text in pairs})(func)


class GangFlow(FlowSpec):
    size = Parameter("size", type=int, default=4)
    fail_rank = Parameter("fail-rank", type=int, default=-1, help="this rank fails")
    how = Parameter("how", default="exit", help="exit, raise or memory")
    fail_until = Parameter("fail-until", type=int, default=99, help="only in attempts below this")
    fail_once = Parameter("fail-once", default="", help="a file: only who makes it fails")
    seconds = Parameter("seconds", type=float, default=0.0, help="how long every rank takes")
    fail_after = Parameter("fail-after", type=float, default=0.0, help="seconds before the failing rank fails")

    @step
    def start(self):
        self.before = "start"
        self.next(self.train, num_parallel=self.size)

    @gang_only
    @parallel
    @step
    def train(self):
        gang = current.parallel
        self.rank, self.size_seen, self.control_id = gang.node_index, gang.num_nodes, gang.control_task_id
        self.main_ip, self.task_id_seen, self.attempt = gang.main_ip, current.task_id, current.retry_count
        self.is_parallel = current.is_parallel
        self.environment = {name: value for name, value in os.environ.items() if name.startswith(("MF_", "TEST_"))}
        print(f"hello from rank {gang.node_index} of {gang.num_nodes}", flush=True)
        if gang.node_index == self.fail_rank and current.retry_count < self.fail_until and self.is_first():
            time.sleep(self.fail_after)
            print("about to fail", flush=True)
            self.fail()
        time.sleep(self.seconds)
        self.next(self.join)

    def is_first(self):
        try:
            if self.fail_once:
                os.close(os.open(self.fail_once, os.O_CREAT | os.O_EXCL))
            return True
        except FileExistsError:
            return False

    def fail(self):
        if self.how == "raise":
            raise ValueError("a wrong value")
        if self.how == "memory":
            hog = bytearray()
            while True:
                hog.extend(b"x" * 20_000_000)
        sys.stdout.flush()
        os._exit(3)

    @step
    def join(self, inputs):
        self.ranks = sorted(one.rank for one in inputs)
        self.sizes = {one.size_seen for one in inputs}
        self.control_ids = {one.control_id for one in inputs}
        self.main_ips = {one.main_ip for one in inputs}
        self.task_ids = {one.rank: one.task_id_seen for one in inputs}
        self.attempts = {one.attempt for one in inputs}
        self.flags = {one.is_parallel for one in inputs}
        self.environments = {one.rank: one.environment for one in inputs}
        self.before = {one.before for one in inputs}
        self.gang_tasks = [dict(task._asdict()) for task in current.gang.tasks] if hasattr(current, "gang") else []
        self.next(self.end)

    @step
    def end(self):
        print("ranks", self.ranks)


if __name__ == "__main__":
    GangFlow()
