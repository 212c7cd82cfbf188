"""Two steps that fail in every attempt, and a flow that goes on: a gang of which rank 1 ends by itself, and a plain step."""

import os

from metaflow import FlowSpec, catch, current, kubernetes, parallel, retry, step


class CatchFlow(FlowSpec):
    @step
    def start(self):
        self.next(self.train, num_parallel=2)

    @catch(var="failed", print_exception=False)
    @retry(times=1, minutes_between_retries=0)
    @kubernetes(cpu=0.1, memory=200, disk=10)
    @parallel
    @step
    def train(self):
        print(f"attempt {current.retry_count} of rank {current.parallel.node_index}", flush=True)
        if current.parallel.node_index == 1:
            os._exit(3)
        self.next(self.join)

    @step
    def join(self, inputs):
        self.tasks = [one.failed for one in inputs]
        self.next(self.plain)

    @kubernetes(cpu=0.1, memory=200, disk=10)
    @catch(var="failed", print_exception=False)
    @step
    def plain(self):
        print("about to leave", flush=True)
        os._exit(4)
        self.next(self.end)

    @step
    def end(self):
        print("gang:", len(self.tasks), self.tasks[0].type.split(".")[-1], self.tasks[0].exception)
        print("plain:", self.failed.exception)


if __name__ == "__main__":
    CatchFlow()
