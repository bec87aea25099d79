"""Remote judges of turns that answer from a table, for the tests of select and compact."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hermes_jev.judge.protocol import Answer, Answers, Question, Request
from hermes_jev.turn_questions import LEVELS


class Tabled:
    """Answers each question by `answer(question id)`; None is no answer. Requests for which `fails(number)` holds are
    not answered at all. Remembers what it was sent."""

    name = "jev"
    version = "tabled-1"
    local = False

    def __init__(
        self,
        answer: Callable[[str], Mapping[str, float] | None],
        fails: Callable[[int], bool] = lambda number: False,
    ) -> None:
        self._answer, self._fails = answer, fails
        self.sent: list[Request] = []

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        answers: dict[str, Answer] = {}
        failed = 0
        for request in requests:
            number = len(self.sent)
            self.sent.append(request)
            if self._fails(number):
                failed += 1
                continue
            found = {question.id: self._answer(question.id) for question in request.questions}
            answers |= {name: Answer(value) for name, value in found.items() if value is not None}
        return Answers(
            by_id=answers,
            judge=self.name,
            model=self.version,
            requests=len(requests),
            failed=failed,
            errors=("transient",) * failed,
            input_tokens=1_000 * (len(requests) - failed),
        )

    @property
    def questions(self) -> list[Question]:
        return [question for request in self.sent for question in request.questions]

    @property
    def turns(self) -> list[dict[str, Any]]:
        """What was said of each turn."""
        return [item for request in self.sent if isinstance(request.state, dict) for item in request.state["turns"]]


class Whole(Tabled):
    """Gives every question the same answer, whatever its form."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(lambda name: None)
        self._whole = answer

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        answers = await super().ask(requests, deadline_s)
        return replace(answers, by_id={q.id: self._whole for request in requests for q in request.questions})


def fate(name: str, sure: float = 1.0) -> dict[str, float]:
    """A choice with this probability for one fate, the rest shared by the others."""
    rest = (1 - sure) / 2
    return {other: sure if other == name else rest for other in ("keep", "summarize", "drop")}


def level(place: int) -> dict[str, float]:
    """A score that is sure of one level."""
    return {name: 1.0 if at == place else 0.0 for at, name in enumerate(LEVELS)}


FLAT = dict.fromkeys(LEVELS, 0.2)
"""A score that says nothing."""
