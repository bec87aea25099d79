"""A score answer as a value between 0 and 1, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from .answers import expected_score, score_confidence
from .protocol import Answer


class Value(NamedTuple):
    """A score as a value in [0, 1]. `confidence` is None when the answer does not say; `source` is who gave it; `raw`
    is the value before doubt raised it."""

    value: float
    confidence: float | None
    source: Literal["judge", "recency"]
    raw: float | None = None


def value_of(answer: Answer, levels: Sequence[str]) -> Value | None:
    """The expected rank of a score answer over `levels`, from low to high; of an answer that only names a level or
    only gives a score, that one. None when it cannot be reduced."""
    confidence: float | None = None
    if answer.probabilities:
        if list(answer.probabilities) != list(levels) or not any(answer.probabilities.values()):
            return None
        rank, confidence = expected_score(answer), round(score_confidence(answer), 6)
    elif answer.score is not None:
        rank, confidence = answer.score, answer.confidence
    elif answer.level in levels:
        rank = float(levels.index(answer.level))
    else:
        return None
    value = round(rank / (len(levels) - 1), 6)
    return Value(value, confidence, "judge", value) if 0.0 <= value <= 1.0 else None
