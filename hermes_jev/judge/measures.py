"""Numbers of an answer, recomputed from its probabilities: argmax, mean level, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from .dialects import choice_confidence, expected_score, score_confidence
from .protocol import Answer

__all__ = ["Value", "choice_confidence", "expected_score", "score_confidence", "value_of"]


class Value(NamedTuple):
    """A score as a value in [0, 1]. `confidence` is None when the answer does not say; `source` is who gave it; `raw`
    is the value before doubt raised it."""

    value: float
    confidence: float | None
    source: Literal["judge", "recency"]
    raw: float | None = None


def value_of(answer: Answer, levels: Sequence[str]) -> Value | None:
    """The expected rank of a score answer over `levels`, from low to high; None when it cannot be reduced."""
    if not answer.probabilities:
        return None
    value = expected_score(answer) / (len(levels) - 1)
    if not 0.0 <= value <= 1.0:
        return None
    return Value(round(value, 6), round(score_confidence(answer), 6), "judge", round(value, 6))
