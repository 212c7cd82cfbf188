"""Worker 0 is done at once in the first start and fails in a second one, while rank 0 takes its time in the first only.

The file `second-start` beside the datastore says which start it is (client and pods share the file system).
"""

import os
import sys
import time

from metaflow import FlowSpec, current, parallel, step


class TwoStartsFlow(FlowSpec):
    @step
    def start(self):
        self.marker = os.path.join(os.environ["METAFLOW_DATASTORE_SYSROOT_LOCAL"], "second-start")
        self.next(self.train, num_parallel=3)

    @parallel
    @step
    def train(self):
        self.rank = current.parallel.node_index
        is_second = os.path.exists(self.marker)
        print(f"rank {self.rank} runs, second start: {is_second}", flush=True)
        if self.rank == 1 and is_second:
            time.sleep(3)
            sys.exit(5)
        if self.rank == 0 and not is_second:
            time.sleep(8)
        self.next(self.join)

    @step
    def join(self, inputs):
        self.next(self.end)

    @step
    def end(self):
        pass


if __name__ == "__main__":
    TwoStartsFlow()
