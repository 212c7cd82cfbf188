"""A good gang, and a step after it that fails unless the file `healed` lies beside the datastore."""

import os

from metaflow import FlowSpec, current, parallel, step


class LateFailureFlow(FlowSpec):
    @step
    def start(self):
        self.next(self.train, num_parallel=3)

    @parallel
    @step
    def train(self):
        self.rank = current.parallel.node_index
        print(f"rank {self.rank} works")
        self.next(self.join)

    @step
    def join(self, inputs):
        self.ranks = sorted(one.rank for one in inputs)
        self.next(self.check)

    @step
    def check(self):
        if not os.path.exists(os.path.join(os.environ["METAFLOW_DATASTORE_SYSROOT_LOCAL"], "healed")):
            raise ValueError("not yet")
        self.next(self.end)

    @step
    def end(self):
        print("ranks", self.ranks)


if __name__ == "__main__":
    LateFailureFlow()
