"""Answer a request: calls and turns as the embedded judge does, all else by words."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..judge import Answer, Lexical, Question, Request
from ..judge.answers import choice_confidence, expected_score, likeliest, score_confidence
from ..judge.lexical_weights import VERSION
from . import likeness
from .recognised import Told, about, told
from .schema import Asked, Body

_DEADLINE_S = 60.0


def respond(body: Body) -> dict[str, Any]:
    """The whole answer to a request. The same request gets the same numbers, whatever its ids and their order."""
    what = told(body.state)
    known = _known(body.questions, what)
    answers = {
        question.id: _shaped(question, known.get(question.id) or _by_likeness(question, body.state))
        for question in body.questions
    }
    return {"model": VERSION, "answers": answers, "usage": {"input_tokens": body.tokens, "output_tokens": 0}}


def _known(questions: Sequence[Asked], what: Told) -> dict[str, Answer]:
    """Answers of the lexical judge to questions about calls and turns, by the ids they were asked under."""
    inner: dict[str, str] = {}
    rounds: list[dict[str, Question]] = []
    for question in questions:
        if (found := about(question, what)) is None:
            continue
        part, number = found
        name = f"T{number}" if part == "turn" else f"t{number}_{part}"
        inner[question.id] = name
        _into_a_round(rounds, question, name)
    answers: dict[str, Answer] = {}
    for asked in rounds:
        given = _ask(what, asked.values())
        # Several questions may be about one turn, and one round answers one of them.
        answers |= {
            question.id: given[inner[question.id]]
            for question in questions
            if inner.get(question.id) in given and asked[inner[question.id]] == _question(question, inner[question.id])
        }
    return answers


def _into_a_round(rounds: list[dict[str, Question]], question: Asked, name: str) -> None:
    """Into the first round that asks the same, or nothing, under that name."""
    wanted = _question(question, name)
    for asked in rounds:
        if asked.setdefault(name, wanted) == wanted:
            return
    rounds.append({name: wanted})


def _question(question: Asked, name: str) -> Question:
    return Question(name, question.kind, "", dict.fromkeys((option for option, _ in question.options), ""))


def _ask(what: Told, questions: Iterable[Question]) -> Mapping[str, Answer]:
    request = Request(
        state={},
        questions=tuple(questions),
        goal=what.goal,
        actions=what.actions,
        subjects=tuple(what.subjects.values()),
        turns=tuple(what.turns.values()),
    )
    return asyncio.run(Lexical().ask([request], _DEADLINE_S)).by_id


def _by_likeness(question: Asked, state: Any) -> Answer:
    names = ("true",) if question.kind == "noul" else tuple(name for name, _ in question.options)
    return Answer(dict(zip(names, likeness.weights(question, state), strict=True)))


def _shaped(question: Asked, answer: Answer) -> dict[str, Any]:
    """The answer as the service writes it; option names exactly as they were sent."""
    if question.kind == "noul":
        return {"type": "noul", "noul": answer.yes}
    probabilities = dict(answer.probabilities)
    if question.kind == "choice":
        confidence = round(choice_confidence(answer), 6)
        return {
            "type": "choice",
            "choice": likeliest(answer),
            "probabilities": probabilities,
            "confidence": confidence,
        }
    return {
        "type": "score",
        "score": round(expected_score(answer), 6),
        "legend": dict(question.options),
        "probabilities": probabilities,
        "confidence": round(score_confidence(answer), 6),
    }
