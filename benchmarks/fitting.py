"""What both fits of weights need beside their own models."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Prior = Sequence[tuple[float, float]]
"""Mean and standard deviation of each weight."""


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """x with matrix · x = right, by Gaussian elimination."""
    size = len(right)
    table = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(table[k][i]))
        table[i], table[pivot] = table[pivot], table[i]
        for k in range(i + 1, size):
            factor = table[k][i] / table[i][i]
            table[k] = [a - factor * b for a, b in zip(table[k], table[i], strict=True)]
    x = [0.0] * size
    for i in reversed(range(size)):
        x[i] = (table[i][size] - sum(table[i][j] * x[j] for j in range(i + 1, size))) / table[i][i]
    return x


def most_probable(
    rows: Sequence[tuple[Sequence[float], bool, float]], prior: Prior, start: Sequence[float] | None = None
) -> list[float]:
    """The weights of a logistic model that are most probable under a Gaussian prior, by Newton's method from `start`
    on. A row is its numbers, its label, and how much it counts."""
    beta = list(start or (middle for middle, _ in prior))
    for _ in range(50):
        gradient = [(m - b) / d**2 for b, (m, d) in zip(beta, prior, strict=True)]
        hessian = [[d**-2 if i == j else 0.0 for j in range(len(beta))] for i, (_, d) in enumerate(prior)]
        for x, label, counts in rows:
            p = sigmoid(sum([b * v for b, v in zip(beta, x, strict=True)]))
            filled = [i for i, value in enumerate(x) if value]
            curve = counts * p * (1 - p)
            for i in filled:
                gradient[i] += counts * (label - p) * x[i]
                for j in filled:
                    hessian[i][j] += curve * x[i] * x[j]
        step = solve(hessian, gradient)
        beta = [b + s for b, s in zip(beta, step, strict=True)]
        if max(map(abs, step)) < 1e-8:
            break
    return beta


def sigmoid(z: float) -> float:
    """The probability of these odds."""
    return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


def auc(pairs: Iterable[tuple[float, bool]]) -> float:
    """Chance that a score with the label is above one without it, ties half; NaN without both kinds."""
    listed = list(pairs)
    yes = [score for score, label in listed if label]
    no = [score for score, label in listed if not label]
    if not yes or not no:
        return math.nan
    return sum((a > b) + 0.5 * (a == b) for a in yes for b in no) / (len(yes) * len(no))


def mean(values: Iterable[float]) -> float:
    """NaN of nothing."""
    listed = list(values)
    return sum(listed) / len(listed) if listed else math.nan
