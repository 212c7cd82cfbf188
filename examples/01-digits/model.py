"""A small neural network in numpy: 64 pixels, one hidden layer, 10 digits. Its weights are one flat array.

One flat array, because then the gradient is one too, and adding up the gradients of all ranks is one call.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from ranks import Ranks

PIXELS, HIDDEN, DIGITS = 64, 32, 10
SHAPES = [(PIXELS, HIDDEN), (HIDDEN,), (HIDDEN, DIGITS), (DIGITS,)]
SIZES = [int(np.prod(shape)) for shape in SHAPES]

BATCH = 128  # over all ranks together, so that the number of ranks doesn't change what is learned
LEARNING_RATE, MOMENTUM = 0.1, 0.9


def initial_weights(seed: int) -> np.ndarray:
    """The same on every rank, as it follows from the seed."""
    random = np.random.default_rng(seed)
    parts = [random.normal(0, 1 / np.sqrt(shape[0]), shape) if len(shape) == 2 else np.zeros(shape) for shape in SHAPES]
    return np.concatenate([part.ravel() for part in parts])


def layers(weights: np.ndarray) -> list[np.ndarray]:
    return [part.reshape(shape) for part, shape in zip(np.split(weights, np.cumsum(SIZES)[:-1]), SHAPES, strict=True)]


def probabilities(weights: np.ndarray, images: np.ndarray) -> np.ndarray:
    return forward(weights, images)[1]


def forward(weights: np.ndarray, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the hidden layer and the output say about each image."""
    into_hidden, hidden_bias, into_output, output_bias = layers(weights)
    hidden = np.tanh(images @ into_hidden + hidden_bias)
    scores = hidden @ into_output + output_bias
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def loss_and_gradient(weights: np.ndarray, images: np.ndarray, digits: np.ndarray) -> np.ndarray:
    """The loss (first number) and its gradient (the others), summed, not averaged, over these images."""
    _, _, into_output, _ = layers(weights)
    hidden, guess = forward(weights, images)
    loss = -np.log(guess[np.arange(len(digits)), digits]).sum()
    error = guess - np.eye(DIGITS)[digits]
    error_hidden = (error @ into_output.T) * (1 - hidden**2)
    gradient = [images.T @ error_hidden, error_hidden.sum(axis=0), hidden.T @ error, error.sum(axis=0)]
    return np.concatenate([[loss], *[part.ravel() for part in gradient]])


def train(
    ranks: Ranks,
    images: np.ndarray,
    digits: np.ndarray,
    epochs: int,
    seed: int,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[np.ndarray, list[float]]:
    """The weights at the end, and the mean loss of every epoch. Both are the same on every rank."""
    random = np.random.default_rng(seed)  # every rank shuffles alike
    weights = initial_weights(seed)
    velocity = np.zeros_like(weights)
    losses = []
    for epoch in range(1, epochs + 1):
        order = random.permutation(len(images))
        loss = 0.0
        for first in range(0, len(order), BATCH):
            batch = order[first : first + BATCH]
            mine = batch[ranks.rank :: ranks.size]  # my share of the batch ...
            total = ranks.sum(loss_and_gradient(weights, images[mine], digits[mine]))  # ... and everybody's gradient
            loss += float(total[0])
            velocity = MOMENTUM * velocity - LEARNING_RATE * total[1:] / len(batch)
            weights = weights + velocity
        losses.append(loss / len(order))
        if epoch % 10 == 0:
            tell(f"rank {ranks.rank} of {ranks.size}: epoch {epoch}, loss {losses[-1]:.4f}")
    return weights, losses
