"""A flow whose compilation for Argo must not change: a gang, a foreach of plain steps, resources, environment."""

from metaflow import FlowSpec, card, environment, kubernetes, parallel, resources, retry, step, timeout


class ArgoFlow(FlowSpec):
    @kubernetes(memory=500, labels={"team": "a"})
    @step
    def start(self):
        self.next(self.train, num_parallel=3)

    @retry(times=2)
    @timeout(hours=1)
    @resources(cpu=2, memory=8000, gpu=1)
    @kubernetes(image="python:3.11", secrets=["s"], node_selector="a=b", tolerations=[{"key": "k", "operator": "Exists"}])
    @parallel
    @step
    def train(self):
        self.next(self.join)

    @card
    @kubernetes(shared_memory=64, use_tmpfs=True)
    @step
    def join(self, inputs):
        self.next(self.split)

    @kubernetes
    @step
    def split(self):
        self.items = [1, 2]
        self.next(self.each, foreach="items")

    @environment(vars={"A": "b"})
    @kubernetes(persistent_volume_claims={"p": "/mnt/p"}, port=1234)
    @step
    def each(self):
        self.next(self.collect)

    @kubernetes
    @step
    def collect(self, inputs):
        self.next(self.end)

    @kubernetes
    @step
    def end(self):
        pass


if __name__ == "__main__":
    ArgoFlow()
