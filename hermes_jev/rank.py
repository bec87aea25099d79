"""In which order results are cut: least worth per character first.

Thresholds say what may go; this says what goes first, wherever a pass stops before all of it is gone. Worth is the
chance that a result is needed again: what a rule found out, else what the judge said, and, the less the judge tells
results apart, the more what age, use and kind of tool say by themselves. Results that changed things count double.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from .rules import Rule, Ruling
from .tool_calls import Kind, fields_of, kind_of, path_of
from .transcript import Exchange, Transcript

SIZE_POWER = 0.75
"""Worth is divided by this power of the characters: large results are needed more often, not in proportion."""

RULED: Mapping[Rule, float] = {
    "duplicate": 0.001,
    "near duplicate": 0.002,
    "run again": 0.005,
    "read again": 0.005,
    "older snapshot": 0.005,
    "expanded": 0.005,
    "written since": 0.02,
}
"""Worth of what a rule settles. Measured on public transcripts (`benchmarks/rank_report.py`): only a file that was
written since was still needed at all, a tenth as often per character as what no rule settles."""

UNANSWERED = 0.5
CHANGED_THINGS = 2.0
"""Factor for the results of tools that change things: what they record cannot be looked up again."""

_LEAST, _MOST = 0.001, 0.999
_AGE = -0.7
_IN_USE = 0.5
_RECENT_CALLS = 10

T = TypeVar("T")


class Standing(NamedTuple):
    """What the transcript says of an exchange without its result being read: completed calls after it, what its tool
    does, and how many of the last ten calls name its file."""

    age: int
    kind: Kind
    in_use: int


def standings(transcript: Transcript) -> dict[int, Standing]:
    """The standing of every completed exchange, by ordinal."""
    completed = transcript.completed
    recent = [exchange.arguments for exchange in completed[-_RECENT_CALLS:]]
    found: dict[int, Standing] = {}
    for place, exchange in enumerate(completed):
        age = len(completed) - 1 - place
        name = path_of(fields_of(exchange.arguments)).rpartition("/")[2]
        later = recent[-age:] if age > 0 else []
        in_use = sum(name in arguments for arguments in later) if name else 0
        found[exchange.ordinal] = Standing(age, kind_of(exchange.tool), in_use)
    return found


def worths(
    exchanges: Sequence[Exchange],
    outputs: Mapping[int, float],
    rulings: Mapping[int, Ruling],
    standing: Mapping[int, Standing],
) -> dict[int, float]:
    """The worth of each exchange, by ordinal; `outputs` are P(output needed) where the judge gave an answer."""
    doubt = _doubt(list(outputs.values()))
    found: dict[int, float] = {}
    for exchange in exchanges:
        ordinal = exchange.ordinal
        known = standing.get(ordinal, Standing(0, "other", 0))
        factor = CHANGED_THINGS if known.kind == "writes" else 1.0
        if (ruling := rulings.get(ordinal)) is not None:
            found[ordinal] = RULED[ruling.rule] * factor
            continue
        said = min(max(outputs.get(ordinal, UNANSWERED), _LEAST), _MOST)
        by_itself = _AGE * math.log1p(known.age) + _IN_USE * math.log1p(known.in_use)
        found[ordinal] = said * factor * math.exp(doubt * by_itself)
    return found


def _doubt(outputs: Sequence[float]) -> float:
    """How little the judge tells results apart: 1 where all answers are one, 0 from a spread of one logit on."""
    if len(outputs) < 2:
        return 1.0
    logits = [math.log(p / (1 - p)) for p in (min(max(p, _LEAST), _MOST) for p in outputs)]
    middle = sum(logits) / len(logits)
    return max(0.0, 1.0 - math.sqrt(sum((value - middle) ** 2 for value in logits) / len(logits)))


def key(worth: float, size: int, ordinal: int) -> tuple[float, int]:
    """Sorts what goes first to the front: least worth per character, older first among equals."""
    return worth / max(1, size) ** SIZE_POWER, ordinal


def until(ordered: Sequence[T], need: float, frees: Callable[[T], float], worth: Callable[[T], float]) -> Iterator[T]:
    """The first of `ordered` that together free `need`, in any unit. Where the next one frees more than what is still
    needed, whichever loses least for just that much goes instead, so that a huge result does not go for a small rest.
    One by one: what frees nothing by the time it is its turn is passed over.
    """
    rest = list(reversed(ordered))
    sorted_for = math.inf
    while rest and need > 0:
        # Sorted anew only when the need has halved since: a handful of times, however many results there are.
        if frees(rest[-1]) > need and need < sorted_for / 2:
            sorted_for = need
            rest.sort(key=lambda one: -worth(one) / max(1e-9, min(frees(one), sorted_for)) ** SIZE_POWER)
        one = rest.pop()
        if (gain := frees(one)) > 0:
            need -= gain
            yield one
