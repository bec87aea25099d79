"""The embedded judge on turns: how much later work depends on a message, from the conversation alone.

The numbers come from what the text shows: words of later messages and of the task that this one holds and few others
do, strings that nobody writes by chance (paths, ids, numbers) that come up again, words that set rules or name
failures, the speaker, and how far back it stands. The weights are set by hand and said here; they are not fitted.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from .lexical_terms import Words, words
from .protocol import Answer, Question, Spoken

_WINDOW = 2_000
"""Characters of each end that are read."""
_RECENT = 8
"""The newest turns show what the work is at."""
_RULE = re.compile(
    r"\b(?:must|never|always|do not|don't|should|prefer|decided|decision|require[sd]?|important|note:|todo|agreed|"
    r"instead of|because|plan)\b|必须|不要|总是|决定|muss|nicht|immer|siempre|nunca",
    re.I,
)
_FAILURE = re.compile(
    r"\b(?:error|failed|failure|exception|traceback|denied|not found)\b|exit (?:code|status):? [1-9]", re.I
)
_CHATTER = re.compile(
    r"\W*(?:ok(?:ay)?|yes|no|sure|thanks?|thank you|great|nice|cool|hi|hello|hey|good (?:morning|job)|done|perfect|"
    r"you're welcome|got it|sounds good|lol)\W*(?:\b[\w']+\W*){0,6}",
    re.I,
)
_SPEAKER = {"user": 0.55, "assistant": 0.0, "tool": -0.55, "function": -0.55}
_BIAS, _TASK, _LATER, _MARKS, _RULES, _FAILURES, _SMALL_TALK, _AGE = -1.15, 1.6, 1.5, 1.3, 0.9, 0.35, -1.8, -0.25


def values(turns: Sequence[Spoken], task: str) -> list[float]:
    """One value in [0, 1] a turn; `turns` oldest first. Of each text only the numbers of the words that count are
    held, so that long conversations take little room."""
    later = _later([words(turn.text, _WINDOW) for turn in turns[-_RECENT:]])
    task_terms = words(task, _WINDOW).terms.keys()
    number = {term: at for at, term in enumerate(sorted(task_terms | later[0].terms))}
    wanted = frozenset(_numbers(task_terms, number))
    read = [_Read.of(words(turn.text, _WINDOW), number, later[0].marks) for turn in turns]
    spread = Counter(term for text in read for term in text.terms)
    rare = {term: math.log1p(len(read) / count) for term, count in spread.items()}
    most = 4 * math.log1p(len(read))
    after = [frozenset(_numbers(text.terms, number)) for text in later]
    found = []
    for place, (turn, text) in enumerate(zip(turns, read, strict=True)):
        newer = max(0, place + len(later) - len(turns))
        z = _BIAS + _SPEAKER.get(turn.role, 0.0) + _AGE * math.log1p(turn.age) / 3
        z += _TASK * _shared(text.terms, wanted, rare, most)
        z += _LATER * _shared(text.terms, after[newer], rare, most)
        z += _MARKS * min(1.0, len(text.marks & later[newer].marks) / 3)
        z += _RULES * bool(_RULE.search(turn.text)) + _FAILURES * bool(_FAILURE.search(turn.text[-2_000:]))
        z += _SMALL_TALK * bool(len(turn.text) < 80 and _CHATTER.fullmatch(turn.text))
        found.append(round(1 / (1 + math.exp(-z)), 6))
    return found


class _Later(NamedTuple):
    terms: frozenset[str]
    marks: frozenset[str]


class _Read(NamedTuple):
    """A text's words by number, and its marks that count."""

    terms: array[int]
    marks: frozenset[str]

    @classmethod
    def of(cls, text: Words, number: Mapping[str, int], marks: frozenset[str]) -> _Read:
        return cls(_numbers(text.terms, number), text.marks & marks)


def _later(newest: Sequence[Words]) -> list[_Later]:
    """What the newest turns hold together, without the first of them, without the first two, …, and without all."""
    found = [_Later(frozenset(), frozenset())]
    for text in reversed(newest):
        found.append(_Later(found[-1].terms | text.terms.keys(), found[-1].marks | text.marks))
    return found[::-1]


def _numbers(terms: Iterable[str], number: Mapping[str, int]) -> array[int]:
    return array("I", sorted(number[term] for term in terms if term in number))


def _shared(terms: Iterable[int], wanted: AbstractSet[int], rare: Mapping[int, float], most: float) -> float:
    """How much the shared words weigh, the rare ones most, in [0, 1]."""
    return min(1.0, math.fsum(rare[term] for term in terms if term in wanted) / most)


def answer(question: Question, value: float) -> Answer | None:
    """A value as the answer to a question about the turn: a score spreads it over the two nearest levels; a choice
    keeps with that probability and drops what is certainly not needed."""
    if question.kind == "score":
        return Answer(_levels(value, tuple(question.criteria)))
    if question.kind == "choice" and set(question.criteria) == {"keep", "summarize", "drop"}:
        gone = (1 - value) ** 3
        return Answer(
            {
                "keep": round(value, 6),
                "summarize": round(1 - value - gone * (1 - value), 6),
                "drop": round(gone * (1 - value), 6),
            }
        )
    return None


def _levels(value: float, names: Sequence[str]) -> dict[str, float]:
    place = value * (len(names) - 1)
    low = min(int(place), len(names) - 2)
    share = round(place - low, 6)
    found = dict.fromkeys(names, 0.0)
    found[names[low]], found[names[low + 1]] = round(1 - share, 6), share
    return found
