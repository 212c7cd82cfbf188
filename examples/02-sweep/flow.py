"""Try a grid of settings at the same time, one task each, and keep the best.

python flow.py run                       on this machine, with Metaflow alone
python flow.py run --with kubernetes     on Kubernetes, one pod per setting
examples/run 02-sweep                    the same on the local development cluster, everything installed for you
"""

from metaflow import FlowSpec, Parameter, card, current, step


class SweepFlow(FlowSpec):
    folds = Parameter("folds", help="of the cross-validation", default=5)

    @step
    def start(self):
        self.settings = [{"C": c, "gamma": gamma} for c in (0.1, 1, 10) for gamma in (0.01, 0.05, 0.2)]
        self.next(self.score, foreach="settings")

    @step
    def score(self):
        """How well a support vector machine with this setting reads digits it was not trained on."""
        from sklearn.datasets import load_digits
        from sklearn.model_selection import cross_val_score
        from sklearn.svm import SVC

        images, digits = load_digits(return_X_y=True)
        self.setting = self.input
        self.accuracy = float(cross_val_score(SVC(**self.setting), images / 16, digits, cv=self.folds).mean())
        print(f"C={self.setting['C']:<4} gamma={self.setting['gamma']:<5} accuracy {self.accuracy:.4f}")
        self.next(self.choose)

    @card(type="blank")
    @step
    def choose(self, inputs):
        from metaflow.cards import Markdown, Table

        self.scores = sorted(((each.accuracy, each.setting) for each in inputs), key=lambda score: score[0], reverse=True)
        self.accuracy, self.best = self.scores[0]
        current.card.append(Markdown(f"# C = {self.best['C']}, gamma = {self.best['gamma']} reads best"))
        rows = [[setting["C"], setting["gamma"], f"{accuracy:.2%}"] for accuracy, setting in self.scores]
        current.card.append(Table(rows, headers=["C", "gamma", f"accuracy ({self.folds}-fold)"]))
        self.next(self.end)

    @step
    def end(self):
        self.result = f"the best of {len(self.scores)} settings is {self.best}, accuracy {self.accuracy:.4f}"
        print(self.result)


if __name__ == "__main__":
    SweepFlow()
