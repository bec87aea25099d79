"""The embedded judge on turns: how much later work depends on a message, from the conversation alone.

The numbers come from what the text shows: words of later messages and of the task that this one holds and few others
do, strings that nobody writes by chance (paths, ids, numbers) that come up again, words that set rules or name
failures, the speaker, and how far back it stands. The weights are set by hand and said here; they are not fitted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from .lexical_terms import Words, words
from .protocol import Answer, Question, Spoken

_WINDOW = 4_000
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
    """One value in [0, 1] a turn; `turns` oldest first."""
    read = [words(turn.text, _WINDOW) for turn in turns]
    spread = Counter(term for text in read for term in text.terms)
    after = _later(read)
    wanted = words(task, _WINDOW)
    found = []
    for turn, text, (later_terms, later_marks) in zip(turns, read, after, strict=True):
        z = _BIAS + _SPEAKER.get(turn.role, 0.0) + _AGE * math.log1p(turn.age) / 3
        z += _TASK * _shared(text, wanted.terms, spread, len(read))
        z += _LATER * _shared(text, later_terms, spread, len(read))
        z += _MARKS * min(1.0, sum(1 for mark in text.marks if mark in later_marks) / 3)
        z += _RULES * bool(_RULE.search(turn.text)) + _FAILURES * bool(_FAILURE.search(turn.text[-2_000:]))
        z += _SMALL_TALK * bool(len(turn.text) < 80 and _CHATTER.fullmatch(turn.text))
        found.append(round(1 / (1 + math.exp(-z)), 6))
    return found


def _later(read: Sequence[Words]) -> list[tuple[Mapping[str, int], set[str]]]:
    """Per turn the terms and marks of the newest turns, itself left out: what the work is at now."""
    recent = 8
    terms: dict[str, int] = {}
    marks: set[str] = set()
    for text in read[-recent:]:
        terms.update(text.terms)
        marks.update(text.marks)
    found: list[tuple[Mapping[str, int], set[str]]] = []
    for place in range(len(read)):
        if place < len(read) - recent:
            found.append((terms, marks))
        else:
            rest = read[place + 1 :]
            found.append(({term: 1 for text in rest for term in text.terms}, {m for text in rest for m in text.marks}))
    return found


def _shared(text: Words, wanted: Mapping[str, int], spread: Mapping[str, int], count: int) -> float:
    """How much of the rare words of `wanted` the text holds, in [0, 1]."""
    if not wanted or not text.terms:
        return 0.0
    common = text.terms.keys() & wanted.keys()
    weight = sum(math.log1p(count / spread[term]) for term in common)
    return min(1.0, weight / (4 * math.log1p(count)))


def answer(question: Question, value: float) -> Answer | None:
    """A value as the answer to a question about the turn: a score spreads it over the two nearest levels; a choice
    keeps with that probability and drops what is certainly not needed."""
    if question.kind == "score":
        return Answer(_levels(value, len(question.criteria)))
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


def _levels(value: float, count: int) -> dict[str, float]:
    place = value * (count - 1)
    low = min(int(place), count - 2)
    share = place - low
    return {
        str(level): round(1 - share if level == low else share if level == low + 1 else 0.0, 6)
        for level in range(count)
    }
