"""What surrounds a result that is to be cut: what stays anyway, who else holds a name, what the task names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .goal import actions_of, goal_of, shorten
from .pieces import pieces
from .settings import Settings
from .tokens import content_text
from .transcript import Exchange, Transcript
from .vocabulary import Vocabulary, terms_of
from .wrapping import unwrap

_GOAL_CHARS = 6_000


class Line(NamedTuple):
    """A piece of a result's payload, and what it is made of."""

    start: int
    end: int
    text: str
    marks: frozenset[str]
    terms: frozenset[str]


@dataclass(frozen=True)
class Scene:
    """What a picker of lines must know of the rest of a transcript.

    Large results are those that size and age would let go. `said` maps the marks of everything else (words, arguments,
    other results) to the position of the last message that uses them, `holders` counts the large results that hold a
    mark. `goal` and `recent` weigh the terms of the task and of the last actions by how few lines of the large
    results have them, so that each adds up to 1. `lines` holds the lines of each large result, by ordinal.
    """

    said: Mapping[str, int]
    holders: Mapping[str, int]
    goal: dict[str, float]
    recent: dict[str, float]
    lines: Mapping[int, Sequence[Line]]
    vocabulary: Vocabulary

    @classmethod
    def of(cls, transcript: Transcript, settings: Settings, task: str | None) -> Scene:
        """Read the transcript once. Linear in its size."""
        large = _large(transcript, settings)
        goal = terms_of(shorten(goal_of(transcript, task), _GOAL_CHARS))
        recent = terms_of("\n".join(actions_of(transcript)))
        vocabulary = Vocabulary(goal | recent)
        lines = {exchange.ordinal: _lines(exchange, vocabulary) for exchange in large}
        holders: Counter[str] = Counter()
        holding: Counter[str] = Counter()
        for own in lines.values():
            holders.update({mark for line in own for mark in line.marks})
            for line in own:
                holding.update(line.terms)
        count = sum(map(len, lines.values()))
        return cls(
            said=_said(transcript, {exchange.result_at for exchange in large}, vocabulary),
            holders=holders,
            goal=_rare(goal, holding, count),
            recent=_rare(recent, holding, count),
            lines=lines,
            vocabulary=vocabulary,
        )

    def lines_of(self, exchange: Exchange) -> Sequence[Line]:
        """The lines of any result. What only an overflow cuts is read when it is asked for."""
        return self.lines.get(exchange.ordinal) or _lines(exchange, self.vocabulary)


def _large(transcript: Transcript, settings: Settings) -> list[Exchange]:
    completed = transcript.completed
    old = completed[: len(completed) - settings.pin_last_calls] if settings.pin_last_calls else completed
    return [exchange for exchange in old if exchange.size > settings.pin_max_chars]


def _lines(exchange: Exchange, vocabulary: Vocabulary) -> list[Line]:
    payload = unwrap(exchange.text).payload
    found = []
    for start, end in pieces(payload):
        text = payload[start:end]
        found.append(Line(start, end, text, *vocabulary.words(text)))
    return found


def _said(transcript: Transcript, cut: set[int | None], vocabulary: Vocabulary) -> dict[str, int]:
    arguments: dict[int, list[str]] = {}
    for exchange in transcript.exchanges:
        arguments.setdefault(exchange.call_at, []).append(exchange.arguments)
    found: dict[str, int] = {}
    for at, message in enumerate(transcript.messages):
        if at not in cut:
            text = "\n".join([content_text(message.get("content")), *arguments.get(at, ())])
            found.update(dict.fromkeys(vocabulary.words(text).marks, at))
    return found


def _rare(terms: Iterable[str], holding: Mapping[str, int], count: int) -> dict[str, float]:
    weights = {term: math.log1p(count / held) for term in sorted(terms) if (held := holding.get(term, 0))}
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()} if total else {}
