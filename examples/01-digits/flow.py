"""Learn to read handwritten digits, data-parallel over the ranks of a gang.

    python flow.py run                       on this machine, with Metaflow alone
    python flow.py run --with kubernetes     on Kubernetes, one pod per rank
    examples/run 01-digits                   the same on the local development cluster, everything installed for you

Every rank takes its share of each batch and works out its gradient; the ranks add up their gradients (ranks.py) and
all take the same step (model.py). So four ranks learn exactly what one would: the join checks that.
"""

from metaflow import FlowSpec, Parameter, card, current, parallel, step


class DigitsFlow(FlowSpec):
    ranks = Parameter("ranks", help="how many ranks train together", default=4)
    epochs = Parameter("epochs", help="how often every image is seen", default=40)
    seed = Parameter("seed", help="of the first weights and of the order of the images", default=7)
    port = Parameter("port", help="where rank 0 listens for the others", default=29400)

    @step
    def start(self):
        """1797 images of 8 x 8 pixels come with scikit-learn; a quarter of them is kept for the test."""
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split

        images, digits = load_digits(return_X_y=True)
        images = images / 16.0
        split = train_test_split(images, digits, test_size=0.25, random_state=0, stratify=digits)
        self.images, self.test_images, self.digits, self.test_digits = split
        print(f"{len(self.images)} images to learn from, {len(self.test_images)} to be tested on")
        self.next(self.train, num_parallel=self.ranks)

    @parallel
    @step
    def train(self):
        """Runs once on every rank, all at the same time."""
        from model import train
        from ranks import Ranks

        me = current.parallel
        gang = f"{current.run_id}/{me.control_task_id}/{current.retry_count}"
        with Ranks(me.node_index, me.num_nodes, me.main_ip, self.port, gang) as ranks:
            self.weights, self.losses = train(ranks, self.images, self.digits, self.epochs, self.seed, tell=print)
        self.next(self.evaluate)

    @card(type="blank")
    @step
    def evaluate(self, inputs):
        """The join: it sees what every rank has kept."""
        import numpy as np
        from model import probabilities, train
        from ranks import Ranks
        from report import COLUMNS, fill, gang_rows, print_table

        self.merge_artifacts(inputs, include=["test_images", "test_digits", "losses", "weights"])  # all alike, or it raises
        self.guesses = probabilities(self.weights, self.test_images).argmax(axis=1)
        self.accuracy = float(np.mean(self.guesses == self.test_digits))

        first, size = inputs[0], len(list(inputs))
        with Ranks(0, 1, "", 0, "") as alone:
            alone_weights, _ = train(alone, first.images, first.digits, self.epochs, self.seed)
        self.difference = float(np.abs(self.weights - alone_weights).max())
        if self.difference > 1e-8:
            raise ValueError(f"{size} ranks learned something else than one alone: {self.difference:.1e} apart.")

        self.gang = gang_rows(current.gang.tasks) if hasattr(current, "gang") else []  # where each rank ran
        if self.gang:
            print_table(COLUMNS, self.gang)
        fill(
            current.card,
            accuracy=self.accuracy,
            difference=self.difference,
            losses=self.losses,
            images=self.test_images,
            digits=self.test_digits,
            guesses=self.guesses,
            ranks=size,
            gang=self.gang,
        )
        self.next(self.end)

    @step
    def end(self):
        self.result = (
            f"accuracy {self.accuracy:.4f} on {len(self.test_digits)} images it had never seen; "
            f"weights within {self.difference:.0e} of those of one rank alone"
        )
        print(self.result)


if __name__ == "__main__":
    DigitsFlow()
