"""examples/01-digits with a rank that hangs the gang. Its modules `model` and `ranks` must lie beside this file."""

import os
import re

import numpy as np
from metaflow import FlowSpec, Parameter, current, kubernetes, parallel, step


def gang_only(func):
    """See gang_flow.py."""
    options = os.environ.get("TEST_GANG_ONLY", "" if "METAFLOW_KUBERNETES_WORKLOAD" in os.environ else None)
    if options is None:
        return func
    return kubernetes(**dict(pair.split("=") for pair in options.split(",") if pair))(func)


class HangFlow(FlowSpec):
    how = Parameter("how", default="skip", help="skip: rank 2 leaves one sum out. lock: it never lets go of Python's lock.")

    @step
    def start(self):
        random = np.random.default_rng(1)
        self.images, self.digits = random.random((256, 64)), random.integers(0, 10, 256)
        self.next(self.train, num_parallel=4)

    @gang_only
    @parallel
    @step
    def train(self):
        from model import train
        from ranks import Ranks

        how = self.how

        class HangingRanks(Ranks):
            sums = 0

            def sum(self, mine):
                self.sums += 1
                if how == "skip":
                    current.gang.progress(f"sum {self.sums}")
                if self.rank == 2 and self.sums == 5:
                    if how == "skip":
                        return mine * self.size
                    re.match(r"(a+)+$", "a" * 60 + "b")
                return super().sum(mine)

            def wait_for_end(self):
                """Rank 0 lets the others go."""
                for rank in sorted(self._peers):
                    if self.rank == 0:
                        self._send(rank, np.zeros(1))
                    else:
                        self._receive(rank, (1,))

        me = current.parallel
        with HangingRanks(me.node_index, me.num_nodes, me.main_ip, 29400, current.run_id, patience=3600) as ranks:
            print(f"hello from rank {me.node_index}", flush=True)
            for epoch in range(3):
                train(ranks, self.images, self.digits, 2, seed=epoch)
            ranks.wait_for_end()
        self.next(self.join)

    @step
    def join(self, inputs):
        self.next(self.end)

    @step
    def end(self):
        pass


if __name__ == "__main__":
    HangFlow()
