"""Two steps side by side: a long one on Kubernetes, and a local one that fails as soon as the other runs."""

import os
import time

from metaflow import FlowSpec, kubernetes, step


class SiblingFlow(FlowSpec):
    @step
    def start(self):
        self.signal = os.path.abspath("slow-runs")
        self.next(self.slow, self.bad)

    @kubernetes(cpu=0.1, memory=200, disk=10)
    @step
    def slow(self):
        open(self.signal, "w").close()
        time.sleep(300)
        self.next(self.join)

    @step
    def bad(self):
        while not os.path.exists(self.signal):
            time.sleep(0.1)
        if self.signal:
            raise ValueError("the sibling fails")
        self.next(self.join)

    @step
    def join(self, inputs):
        self.next(self.end)

    @step
    def end(self):
        pass


if __name__ == "__main__":
    SiblingFlow()
