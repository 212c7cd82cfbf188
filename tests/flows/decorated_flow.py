"""A gang step with the decorators people use; its first attempt fails in one rank."""

import os

from metaflow import FlowSpec, card, current, environment, parallel, resources, retry, secrets, step, timeout

ODD = 'it\'s "odd" $HOME `id` \\ ü'


class DecoratedFlow(FlowSpec):
    @step
    def start(self):
        self.next(self.train, num_parallel=3)

    @retry(times=1, minutes_between_retries=0)
    @timeout(minutes=5)
    @resources(cpu=0.2, memory=5100)
    @environment(vars={"ODD": ODD})
    @secrets(sources=[{"type": "inline", "id": "s", "options": {"env_vars": {"TOKEN_OF_TEST": "hidden"}}}])
    @card(type="blank")
    @parallel
    @step
    def train(self):
        self.attempt, self.odd, self.secret_value = current.retry_count, os.environ["ODD"], os.environ["TOKEN_OF_TEST"]
        if current.retry_count == 0 and current.parallel.node_index == 1:
            raise ValueError("only in the first attempt")
        self.next(self.join)

    @step
    def join(self, inputs):
        self.attempts = {one.attempt for one in inputs}
        self.variables = {one.odd for one in inputs}
        self.secret = {one.secret_value for one in inputs}
        self.memory_requests = None
        self.next(self.end)

    @step
    def end(self):
        pass


if __name__ == "__main__":
    DecoratedFlow()
