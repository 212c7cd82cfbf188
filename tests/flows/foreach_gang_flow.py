"""A foreach whose body has a gang, a plain step before it and one after."""

from gang_flow import gang_only
from metaflow import FlowSpec, current, parallel, step


class ForeachGangFlow(FlowSpec):
    @step
    def start(self):
        self.names = ["a", "b"]
        self.next(self.prepare, foreach="names")

    @step
    def prepare(self):
        self.name_of_branch = self.input
        self.next(self.train, num_parallel=2)

    @gang_only
    @parallel
    @step
    def train(self):
        self.mine = (self.name_of_branch, current.parallel.node_index)
        self.next(self.gather)

    @step
    def gather(self, inputs):
        self.gang = sorted(one.mine for one in inputs)
        self.next(self.after)

    @step
    def after(self):
        self.next(self.join)

    @step
    def join(self, inputs):
        self.result = sorted(one.gang for one in inputs)
        print("result", self.result)
        self.next(self.end)

    @step
    def end(self):
        pass


if __name__ == "__main__":
    ForeachGangFlow()
