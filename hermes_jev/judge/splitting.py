"""Smaller requests out of one that is too large: fewer subjects, and for a single one a shorter state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .protocol import Limits, Request

TRIMMED_HEAD, TRIMMED_TAIL = 200, 100
"""Characters that a trimmed text keeps of its two ends."""

TRIMMED_LINES = 6
"""Lines that a trimmed list of texts keeps, the newest."""

_CUT = " … (cut) … "
_EXPLAINS = "context"
"""The part of a state that says how to read the rest."""

_SUBJECT = re.compile(r"([A-Za-z]+[0-9]+)(?:_(?:call|output))?")


def within(request: Request, limits: Limits) -> Iterator[Request]:
    """The request, or pieces of at most `limits.questions` questions where its subjects can be parted. A question
    with more options than the service takes is left out; a request without questions is none."""
    fitting = tuple(question for question in request.questions if len(question.criteria) <= limits.options)
    yield from split_to_fit(replace(request, questions=fitting), limits.questions)


def split_to_fit(request: Request, max_questions: int) -> Iterator[Request]:
    """The request itself, or pieces of at most `max_questions` questions where its subjects can be parted."""
    if not request.questions:
        return
    parts = split(request) if len(request.questions) > max_questions else None
    if parts is None:
        yield request
        return
    for part in parts:
        yield from split_to_fit(part, max_questions)


def split(request: Request) -> tuple[Request, Request] | None:
    """Two requests with half of the subjects each, or None for a single subject.

    The questions `t7_call` and `t7_output` have one subject, t7, and stay together; any other question is its own.
    Of the lists in a state that is a mapping, an entry with the id of a subject ("t7", "m12") goes only where that
    subject is asked about. Questions must therefore name entries by id, not by their place in the list.
    """
    subjects = list(dict.fromkeys(_subject(question.id) for question in request.questions))
    if len(subjects) < 2:
        return None
    middle = len(subjects) // 2
    return _only(request, set(subjects[:middle])), _only(request, set(subjects[middle:]))


def trim(request: Request) -> Request | None:
    """The request with every longer text of its state cut to head and tail, or None if nothing is that long."""
    state = _trimmed(request.state)
    return None if state == request.state else replace(request, state=state)


def _trimmed(value: Any) -> Any:
    if isinstance(value, str):
        short = len(value) <= TRIMMED_HEAD + len(_CUT) + TRIMMED_TAIL
        return value if short else value[:TRIMMED_HEAD] + _CUT + value[-TRIMMED_TAIL:]
    if isinstance(value, Mapping):
        return {name: part if name == _EXPLAINS else _trimmed(part) for name, part in value.items()}
    if isinstance(value, list):
        lines = value[-TRIMMED_LINES:] if all(isinstance(part, str) for part in value) else value
        return [_trimmed(part) for part in lines]
    return value


def _only(request: Request, subjects: set[str]) -> Request:
    questions = tuple(question for question in request.questions if _subject(question.id) in subjects)
    state = request.state
    if isinstance(state, Mapping):
        state = {name: _of_subjects(part, subjects) for name, part in state.items()}
    return replace(request, state=state, questions=questions)


def _of_subjects(part: Any, subjects: set[str]) -> Any:
    return [entry for entry in part if _belongs(entry, subjects)] if isinstance(part, list) else part


def _belongs(item: Any, subjects: set[str]) -> bool:
    name = item.get("id") if isinstance(item, Mapping) else None
    return not isinstance(name, str) or name in subjects or not _SUBJECT.fullmatch(name)


def _subject(question_id: str) -> str:
    match = _SUBJECT.fullmatch(question_id)
    return match[1] if match else question_id
