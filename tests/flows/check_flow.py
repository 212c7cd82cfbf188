"""Each step needs something else of the cluster: TEST_CHECK has the attributes of @kubernetes and the variables of its steps.
For `kubernetes check` alone; it never runs."""

import json
import os

from metaflow import FlowSpec, environment, kubernetes, parallel, step


def as_told(func):
    told = json.loads(os.environ.get("TEST_CHECK", "{}")).get(func.__name__)
    if told is None:
        return func
    return environment(vars=told.get("variables", {}))(kubernetes(**told.get("attributes", {}))(func))


class CheckFlow(FlowSpec):
    @as_told
    @step
    def start(self):
        self.next(self.image)

    @as_told
    @step
    def image(self):
        self.next(self.bash)

    @as_told
    @step
    def bash(self):
        self.next(self.python)

    @as_told
    @step
    def python(self):
        self.next(self.secret)

    @as_told
    @step
    def secret(self):
        self.next(self.claim)

    @as_told
    @step
    def claim(self):
        self.next(self.account)

    @as_told
    @step
    def account(self):
        self.next(self.room)

    @as_told
    @step
    def room(self):
        self.next(self.name)

    @as_told
    @step
    def name(self):
        self.next(self.port)

    @as_told
    @step
    def port(self):
        self.next(self.security)

    @as_told
    @step
    def security(self):
        self.next(self.quota)

    @as_told
    @step
    def quota(self):
        self.next(self.limits)

    @as_told
    @step
    def limits(self):
        self.next(self.queue)

    @as_told
    @step
    def queue(self):
        self.next(self.stopped)

    @as_told
    @step
    def stopped(self):
        self.next(self.rights)

    @as_told
    @step
    def rights(self):
        self.next(self.nowhere)

    @as_told
    @step
    def nowhere(self):
        self.next(self.gang, num_parallel=2)

    @as_told
    @parallel
    @step
    def gang(self):
        self.next(self.join)

    @step
    def join(self, inputs):
        self.next(self.end)

    @step
    def end(self):
        pass


if __name__ == "__main__":
    CheckFlow()
