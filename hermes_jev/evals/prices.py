"""What tokens cost, with a prompt cache."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..errors import InputError


class Prices(NamedTuple):
    """US dollars for a million tokens: of a prompt as such, of an answer, of a prompt read from the cache and of one
    written to it."""

    input: float = 3.0
    output: float = 15.0
    cached: float = 0.3
    written: float = 3.75

    def call(self, prompt: float, known: float, answer: float) -> float:
        """Dollars of a call whose prompt begins with `known` tokens of the one before; the rest is written."""
        return (self.cached * known + self.written * (prompt - known) + self.output * answer) / 1e6

    def plain(self, prompt: float, answer: float) -> float:
        """Dollars of a call without a cache."""
        return (self.input * prompt + self.output * answer) / 1e6


def prices_from(text: str) -> Prices:
    """Four numbers with commas: input, output, cached, written. Raises InputError."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != len(Prices._fields) or not all(0 <= value < math.inf for value in values):
        raise InputError(f"prices {text[:60]!r}: four numbers are needed: {', '.join(Prices._fields)}")
    return Prices(*values)
