"""Train through preemptions: a rank saves where it is now and then and when it is told to stop, and goes on from there.

    examples/run 04-preemption               on the local development cluster, with an eviction in the middle
    python flow.py run --with kubernetes     on Kubernetes; evict one of its pods yourself (README.md)

A disruption (an eviction, a preemption, a lost node) costs no attempt of @retry: all ranks start again, up to
@kubernetes(max_restarts=...) times. What they have learned by then is what they have saved themselves (checkpoints.py).
"""

from metaflow import FlowSpec, Parameter, current, parallel, step


class PreemptionFlow(FlowSpec):
    ranks = Parameter("ranks", help="how many ranks train, each on its own share", default=2)
    steps = Parameter("steps", help="how many steps each of them makes", default=100)
    pause = Parameter("pause", help="seconds that a step takes beside its arithmetic", default=0.1)

    @step
    def start(self):
        self.next(self.train, num_parallel=self.ranks)

    @parallel
    @step
    def train(self):
        """Runs once on every rank, and again after a disruption."""
        from checkpoints import Checkpoints, StopSignal
        from model import first_weights, improved

        me = current.parallel
        checkpoints = Checkpoints(f"{current.flow_name}/{current.run_id}/{current.step_name}/{me.node_index}")
        stop = StopSignal()
        saved = checkpoints.load() or {"step": 0, "weights": first_weights()}
        self.first_step, weights = saved["step"], saved["weights"]
        print(f"begins at step {self.first_step}", flush=True)
        for number in range(self.first_step, self.steps):
            weights = improved(weights, me.node_index, number, self.pause)
            if (number + 1) % 10 == 0:
                print(f"step {number + 1}", flush=True)
            if stop.is_set or (number + 1) % 25 == 0:  # between two steps, where all that is saved belongs together
                checkpoints.save({"step": number + 1, "weights": weights})
            if stop.is_set:
                print(f"saved at step {number + 1}", flush=True)
                stop.leave()
        self.weights = weights
        self.next(self.compare)

    @step
    def compare(self, inputs):
        """The join: what each rank has learned is what it would have learned without a break."""
        import numpy as np
        from model import first_weights, improved

        self.first_steps = [rank.first_step for rank in inputs]
        for index, rank in enumerate(inputs):
            weights = first_weights()
            for number in range(rank.steps):
                weights = improved(weights, index, number, pause=0)
            if not np.array_equal(weights, rank.weights):
                raise ValueError(f"Rank {index} has learned something else than without a break.")
        self.next(self.end)

    @step
    def end(self):
        begun = ", ".join(f"rank {index} at step {first}" for index, first in enumerate(self.first_steps))
        self.result = f"the last start began with {begun}; the weights are those of a run without a break"
        print(self.result)


if __name__ == "__main__":
    PreemptionFlow()
