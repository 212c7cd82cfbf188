"""Environment variables with the texts in texts.json, which only the client has; what arrives of them and of tags is kept."""

import json
import os

from metaflow import FlowSpec, current, environment, kubernetes, parallel, step

TEXTS = []
if os.path.exists("texts.json"):
    with open("texts.json", encoding="utf-8") as file:
        TEXTS = json.load(file)


class TextsFlow(FlowSpec):
    @step
    def start(self):
        self.next(self.train, num_parallel=2)

    @environment(vars={f"TEXT_{number}": text for number, text in enumerate(TEXTS)})
    @kubernetes(cpu=0.1, memory=200, disk=10)
    @parallel
    @step
    def train(self):
        self.variables = {name: value for name, value in os.environb.items() if name.startswith(b"TEXT_")}
        self.tags = sorted(current.tags)
        self.next(self.join)

    @step
    def join(self, inputs):
        self.variables = [one.variables for one in inputs]
        self.tags = [one.tags for one in inputs]
        self.next(self.end)

    @step
    def end(self):
        pass


if __name__ == "__main__":
    TextsFlow()
