"""A small model whose every step depends on the one before: linear regression by stochastic gradient descent."""

import time

import numpy as np

FEATURES = 8


def first_weights():
    return np.zeros(FEATURES)


def improved(weights, rank, number, pause):
    """One step of this rank. Its batch follows from the step's number, so that a step is the same whenever it is made."""
    random = np.random.default_rng([rank, number])
    batch = random.normal(size=(32, FEATURES))
    wanted = batch @ np.arange(FEATURES) + random.normal(scale=0.1, size=32)
    time.sleep(pause)
    return weights - 0.01 * batch.T @ (batch @ weights - wanted) / len(batch)
