"""Numbers that say something about whether an old tool call will be needed, from the calls alone.

Every number of one pass is worked out over all its subjects together: what is rare, what is the newest copy and what
was run again later can only be seen side by side. Nothing here knows the model that weighs them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..tool_calls import Kind, fields_of, kind_of, part_of, path_of
from .lexical_terms import Words, words
from .protocol import Subject

FEATURES = (
    "age",  # ln(1 + completed calls after it)
    "size",  # ln(characters of the result / 1000), at least ln(0.1)
    "inputs",  # ln(1 + characters of the arguments / 100)
    "failed",  # the outcome is a failure
    "nearby",  # relevance to the last actions, 0..1
    "on_goal",  # relevance to the goal, 0..1
    "newest",  # ln(1 + identifiers whose newest copy is this result)
    "only",  # ln(1 + identifiers whose only copy is this result)
    "used",  # ln(1 + identifiers of the result that later inputs or actions use)
    "inputs_used",  # ln(1 + identifiers of the arguments that later inputs or actions use)
    "rerun",  # the same call again later, or the same result
    "reread",  # the same file again later, at least this part of it
    "edited",  # the file was written later
    "reads",  # the tool looks things up
    "writes",  # the tool changes things
    "shell",  # the tool runs commands
    "other",  # the tool's name says nothing
    "record",  # the result is a JSON object or list
    "old_record",  # age of a record that no coding tool made
)

_ACTIONS = 3
_GOAL_CHARS = 6_000
_ACTION_CHARS = 2_000
_K1, _B = 1.2, 0.6

_BLANK = re.compile(r"\s+")


class Query(NamedTuple):
    """What the task is about now: the goal's words and the words of the last actions."""

    goal: Words
    actions: Words


class Call(NamedTuple):
    """A subject with what its tool and arguments say."""

    subject: Subject
    kind: Kind
    path: str
    part: tuple[str, ...]
    same: tuple[str, str]
    inputs: Words
    result: Words


def query_of(goal: str, actions: Sequence[str]) -> Query:
    """The goal (its beginning and end) and the last three actions, newest last."""
    recent = [action[:_ACTION_CHARS] for action in actions[-_ACTIONS:]]
    return Query(words(goal, _GOAL_CHARS // 2), words("\n".join(recent), _ACTIONS * _ACTION_CHARS))


def call_of(subject: Subject, window: int) -> Call:
    """`subject` read once; of its result the first and last `window` characters."""
    fields = fields_of(subject.arguments)
    kind = kind_of(subject.tool)
    path = path_of(fields)
    part = part_of(fields) if path else ()
    return Call(
        subject=subject,
        kind=kind,
        path=path,
        part=part,
        same=(subject.tool, _BLANK.sub(" ", subject.arguments)),
        inputs=words(subject.arguments, 8_000),
        result=words(subject.result, window),
    )


def rows(calls: Sequence[Call], query: Query) -> list[tuple[float, ...]]:
    """One row of `FEATURES` per call. `calls` are oldest first."""
    relevance = _Relevance(calls)
    near = relevance.of(query.actions)
    on_goal = relevance.of(query.goal)
    copies = Counter(mark for call in calls for mark in call.result.marks)
    out: list[tuple[float, ...]] = []
    seen_later: set[str] = set()
    used_later: set[str] = set(query.actions.marks)
    history = _History()
    for at in range(len(calls) - 1, -1, -1):
        call = calls[at]
        marks = call.result.marks
        newest = marks - seen_later
        out.append(
            _row(
                call,
                near[at],
                on_goal[at],
                newest=len(newest),
                only=sum(copies[mark] == 1 for mark in newest),
                used=len(newest & used_later),
                inputs_used=len(call.inputs.marks & used_later),
                fate=history.fate(call),
            )
        )
        seen_later |= marks
        used_later |= call.inputs.marks
        history.add(call)
    return out[::-1]


def _row(
    call: Call, near: float, on_goal: float, *, newest: int, only: int, used: int, inputs_used: int, fate: str
) -> tuple[float, ...]:
    subject = call.subject
    age = math.log1p(max(0, subject.age))
    record = subject.result.lstrip()[:1] in ("{", "[")
    return (
        age,
        math.log(max(100, subject.size) / 1000),
        math.log1p(len(subject.arguments) / 100),
        float(subject.outcome == "failed"),
        near,
        on_goal,
        math.log1p(newest),
        math.log1p(only),
        math.log1p(used),
        math.log1p(inputs_used),
        float(fate == "rerun"),
        float(fate == "reread"),
        float(fate == "edited"),
        float(call.kind == "reads"),
        float(call.kind == "writes"),
        float(call.kind == "shell"),
        float(call.kind == "other"),
        float(record),
        age if record and not call.path and call.kind != "shell" else 0.0,
    )


class _History:
    """The calls after the one that is looked at, read from the newest backwards."""

    def __init__(self) -> None:
        self._same: set[tuple[str, str]] = set()
        self._results: set[str] = set()
        self._read: dict[str, set[tuple[str, ...]]] = {}
        self._written: set[str] = set()

    def fate(self, call: Call) -> str:
        """What later calls did to this one: rerun, reread, edited, or nothing ("")."""
        if call.same in self._same or call.subject.result in self._results:
            return "rerun"
        if not call.path or call.kind == "writes":
            return ""
        parts = self._read.get(call.path, set())
        if () in parts or call.part in parts:
            return "reread"
        return "edited" if call.path in self._written else ""

    def add(self, call: Call) -> None:
        self._same.add(call.same)
        if call.subject.size >= 200:
            self._results.add(call.subject.result)
        if not call.path:
            return
        if call.kind == "writes":
            self._written.add(call.path)
        else:
            self._read.setdefault(call.path, set()).add(call.part)


class _Relevance:
    """BM25 of each call (its result and its arguments) for a query, as a share of the best score there can be."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._documents = [(call.result, call.inputs) for call in calls]
        self._lengths = [result.length + inputs.length for result, inputs in self._documents]
        self._average = max(1.0, sum(self._lengths) / max(1, len(calls)))
        self._holding = Counter(term for result, inputs in self._documents for term in _both(result, inputs))

    def of(self, query: Words) -> list[float]:
        count = len(self._documents)
        weights = {
            term: math.log1p((count - held + 0.5) / (held + 0.5))
            for term in sorted(query.terms)
            if (held := self._holding[term])
        }
        best = sum(weights.values()) * (_K1 + 1)
        if not best:
            return [0.0] * count
        return [self._score(at, weights) / best for at in range(count)]

    def _score(self, at: int, weights: Mapping[str, float]) -> float:
        result, inputs = self._documents[at]
        damp = _K1 * (1 - _B + _B * self._lengths[at] / self._average)
        score = 0.0
        for term, weight in weights.items():
            if often := result.terms.get(term, 0) + inputs.terms.get(term, 0):
                score += weight * often * (_K1 + 1) / (often + damp)
        return score


def _both(result: Words, inputs: Words) -> Iterator[str]:
    yield from result.terms
    yield from (term for term in inputs.terms if term not in result.terms)


__all__ = ["FEATURES", "Call", "Query", "call_of", "kind_of", "query_of", "rows"]
