"""Uses a decorator of another extension that subclasses core's @parallel."""

from metaflow import FlowSpec, launcher, step


class ThirdPartyFlow(FlowSpec):
    @step
    def start(self):
        self.next(self.train, num_parallel=3)

    @launcher
    @step
    def train(self):
        self.next(self.join)

    @step
    def join(self, inputs):
        print("launched", sorted(one.launched for one in inputs))
        self.next(self.end)

    @step
    def end(self):
        pass


if __name__ == "__main__":
    ThirdPartyFlow()
