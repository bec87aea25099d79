"""Answers to questions about anything else, by words alone: which option's words stand in the state.

This is no understanding: where no word is shared, the answer is flat, and says so by a confidence of 0.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..judge.lexical_terms import words
from .schema import Asked

_CHARS = 100_000
_SHARP = 4.0
_ASKED = 1.5
"""How much the words of a question itself say for a yes, beside those of its two sides."""

_PATH = re.compile(r"`([A-Za-z_][\w-]*(?:\[[0-9]{1,6}\]|\.[A-Za-z_][\w-]*)*)`")
_STEP = re.compile(r"([\w-]+)|\[([0-9]+)\]")


def weights(question: Asked, state: Any) -> tuple[float, ...]:
    """P(true) of a noul, alone; else one probability for each option, in order. They are rounded to six decimals."""
    there = words(_evidence(question.instructions, state), _CHARS).terms
    texts = [_terms(f"{name} {_plain(text)}" if question.kind == "choice" else text) for name, text in question.options]
    shares = _shares(texts, there)
    if question.kind == "noul":
        sides = dict(zip((name for name, _ in question.options), shares, strict=True))
        (asked,) = _shares([_terms(question.instructions)], there)
        z = _SHARP * (sides.get("true", 0.0) - sides.get("false", 0.0)) + _ASKED * asked
        return (round(1 / (1 + math.exp(-z)), 6),)
    powers = [math.exp(_SHARP * share) for share in shares]
    return tuple(round(power / math.fsum(powers), 6) for power in powers)


def _shares(texts: Sequence[Iterable[str]], there: Mapping[str, int]) -> list[float]:
    """The share of each text's words that stand in the state; words that several texts have say less."""
    spread = Counter(term for text in texts for term in text)
    found = []
    for text in texts:
        rare = {term: math.log1p(len(texts) / spread[term]) for term in text}
        present = math.fsum(weight for term, weight in rare.items() if term in there)
        found.append(present / math.fsum(rare.values()) if rare else 0.0)
    return found


def _terms(value: Any) -> list[str]:
    return sorted(words(_plain(value), _CHARS).terms)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _evidence(instructions: Any, state: Any) -> str:
    """What the instructions point to in backticks, else the whole state."""
    named = [found for path in _PATH.findall(_plain(instructions)) for found in _at(path, state)]
    return "\n".join(map(_plain, named)) if named else _plain(state)


def _at(path: str, state: Any) -> list[Any]:
    """The piece of the state at a path like `items[3].text`; an entry of a list in the state goes by its `id` too."""
    place = state
    for name, number in _STEP.findall(path):
        if name and isinstance(place, dict) and name in place:
            place = place[name]
        elif number and isinstance(place, list) and int(number) < len(place):
            place = place[int(number)]
        else:
            return _by_id(path, state)
    return [place]


def _by_id(name: str, state: Any) -> list[Any]:
    lists = [value for value in state.values() if isinstance(value, list)] if isinstance(state, dict) else []
    return [entry for value in lists for entry in value if isinstance(entry, dict) and entry.get("id") == name]
