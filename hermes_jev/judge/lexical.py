"""The judge that needs no service: two small logistic models over the calls themselves.

It reads the subjects whole and in this process, asks nobody and costs nothing. Its probabilities are meant as such:
fitted on labelled transcripts, with nothing added or capped. On sessions outside the fit its highest tenth came true
as often as it said, and the middle more often than it said (`benchmarks/fit_lexical.py` prints both). It answers
nouls about subjects it was given and questions about turns it was given (`lexical_turns.py`); every other question
stays without an answer.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from . import lexical_turns, lexical_weights
from .lexical_features import FEATURES, Call, call_of, query_of, rows
from .protocol import Answer, Answers, Question, Request, Subject

_QUESTION = re.compile(r"t([0-9]{1,9})_(call|output)")
_LARGEST_WINDOW = 65_536
_SMALLEST_WINDOW = 2_000
_ALL_WINDOWS = 4_000_000
"""Characters read in one `ask` at most, so that many large results take seconds and not minutes."""


class Verdict(NamedTuple):
    """P(knowing the call still matters) and P(its exact output is needed again); never output above call."""

    call: float
    output: float


class Lexical:
    """An embedded `Judge`. Stateless: same requests, same numbers, in any process."""

    name = "lexical"
    version = lexical_weights.VERSION
    local = True

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        """Answer every `t<ordinal>_call` and `t<ordinal>_output` whose subject is in its request.

        Goal and actions are taken from the first request that has any. Past the deadline nothing is answered and the
        error is "transient".
        """
        started = time.perf_counter()
        subjects = _in_order(subject for request in requests for subject in request.subjects)
        window = _window(len(subjects))
        calls: list[Call] = []
        try:
            async with asyncio.timeout(deadline_s):
                for subject in subjects:
                    calls.append(call_of(subject, window))
                    await asyncio.sleep(0)
        except TimeoutError:
            return self._answers({}, started, ("transient",))
        verdicts = dict(zip(subjects, verdicts_of(calls, *_task(requests)), strict=True))
        return self._answers({**_by_id(requests, verdicts), **_about_turns(requests)}, started)

    def _answers(self, by_id: Mapping[str, Answer], started: float, errors: tuple[str, ...] = ()) -> Answers:
        return Answers(
            by_id=by_id,
            judge=self.name,
            model=self.version,
            errors=errors,
            latency_ms=round((time.perf_counter() - started) * 1000),
        )


def verdicts_of(calls: Sequence[Call], goal: str, actions: Sequence[str]) -> list[Verdict]:
    """A verdict per call; `calls` are all of one pass, oldest first."""
    found = []
    for row in rows(calls, query_of(goal, actions)):
        output = probability(lexical_weights.OUTPUT, row)
        found.append(Verdict(max(output, probability(lexical_weights.CALL, row)), output))
    return found


def probability(weights: Mapping[str, float], row: Sequence[float]) -> float:
    """The logistic model `weights` on one row of `FEATURES`, to six decimals."""
    z = weights["bias"] + sum(weights[name] * value for name, value in zip(FEATURES, row, strict=True))
    return round(1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z)), 6)


def _in_order(subjects: Iterable[Subject]) -> list[Subject]:
    """Each subject once, oldest first."""
    return sorted(dict.fromkeys(subjects), key=lambda subject: (-subject.age, subject.ordinal))


def _window(count: int) -> int:
    """Characters of each end of a result to read, when there are `count` results."""
    return max(_SMALLEST_WINDOW, min(_LARGEST_WINDOW, _ALL_WINDOWS // (2 * max(1, count))))


def _task(requests: Sequence[Request]) -> tuple[str, tuple[str, ...]]:
    for request in requests:
        if request.goal or request.actions:
            return request.goal, request.actions
    return "", ()


def _by_id(requests: Sequence[Request], verdicts: Mapping[Subject, Verdict]) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    for request in requests:
        by_ordinal = {subject.ordinal: verdicts[subject] for subject in request.subjects}
        for question in request.questions:
            verdict = by_ordinal.get(_ordinal(question))
            if verdict is not None:
                yes = verdict.call if question.id.endswith("_call") else verdict.output
                answers[question.id] = Answer({"true": yes})
    return answers


def _about_turns(requests: Sequence[Request]) -> dict[str, Answer]:
    """Answers to the questions about turns, where the turn itself was given."""
    spoken = sorted({turn.question: turn for r in requests for turn in r.turns}.values(), key=lambda turn: -turn.age)
    found = dict(zip((turn.question for turn in spoken), lexical_turns.values(spoken, _task(requests)[0]), strict=True))
    answers = {
        question.id: lexical_turns.answer(question, found[question.id])
        for request in requests
        for question in request.questions
        if question.id in found
    }
    return {name: answer for name, answer in answers.items() if answer is not None}


def _ordinal(question: Question) -> int:
    """The ordinal a noul asks about, -1 if it asks about something else."""
    found = _QUESTION.fullmatch(question.id) if question.kind == "noul" else None
    return int(found[1]) if found else -1
