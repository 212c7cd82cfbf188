"""Undecorated, for --with kubernetes."""

from metaflow import FlowSpec, step


class PlainFlow(FlowSpec):
    @step
    def start(self):
        self.items = [1, 2, 3]
        self.next(self.each, foreach="items")

    @step
    def each(self):
        self.square = self.input**2
        self.next(self.join)

    @step
    def join(self, inputs):
        self.squares = sorted(each.square for each in inputs)
        self.next(self.end)

    @step
    def end(self):
        print("squares", self.squares)


if __name__ == "__main__":
    PlainFlow()
