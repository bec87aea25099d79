"""What both fits of weights need beside their own models."""

from __future__ import annotations

import math
from collections.abc import Iterable


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


def mean(values: Iterable[float]) -> float:
    """NaN of nothing."""
    listed = list(values)
    return sum(listed) / len(listed) if listed else math.nan
