"""A judge that knows what was needed, and errs as often as it is told: does a better judge make a better engine?"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..judge import Answer, Answers, Request
from .case import Case


@dataclass(frozen=True)
class Oracle:
    """Answers every noul about a call: 1 where its result is needed, 0 where not; a share `noise` of the answers is
    chance instead. `needed` maps ordinals. Local, free, the same in any process."""

    needed: Mapping[int, bool]
    noise: float = 0.0
    seed: int = 0
    label: str = ""
    name: str = "oracle"
    local: bool = True

    @property
    def version(self) -> str:
        """Another case is another judge: its verdicts are not to be reused."""
        return f"{self.label} {self.noise} {self.seed}"

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        """An answer to each question, at once."""
        by_id = {
            question.id: Answer({"true": self._answer(question.id)})
            for request in requests
            for question in request.questions
        }
        return Answers(by_id=by_id, judge=self.name, model=self.version)

    def _answer(self, question: str) -> float:
        ordinal = int(question[1:].partition("_")[0])
        errs, chance = self._draw(ordinal, "errs"), self._draw(ordinal, "chance")
        return chance if errs < self.noise else float(self.needed.get(ordinal, False))

    def _draw(self, ordinal: int, what: str) -> float:
        """A number in [0, 1); more noise errs on the same calls and others, never on other calls instead."""
        digest = hashlib.sha256(f"{self.seed} {self.label} {ordinal} {what}".encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48


@dataclass(frozen=True)
class Zero:
    """Answers zero to everything: nothing is ever needed."""

    name: str = "zero"
    version: str = "1"
    local: bool = True

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        """Zeros."""
        by_id = {question.id: Answer({"true": 0.0}) for request in requests for question in request.questions}
        return Answers(by_id=by_id, judge=self.name, model=self.version)


def oracle_of(case: Case, noise: float, seed: int) -> Oracle:
    """The oracle of one case."""
    needed = {exchange.ordinal: case.needed.get(place, 0) > 0 for place, exchange in case.results.items()}
    return Oracle(needed, noise, seed, f"{case.session.id} {case.share}")
