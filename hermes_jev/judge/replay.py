"""A judge that says again what is on record, by content; what is not on record it does not answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .protocol import Answer, Answers, Question, Request


@dataclass(frozen=True)
class Recorded:
    """`scores` maps content hashes to {"call", "output"} of a tool call (P(yes) of both questions) or {"raw",
    "confidence"} of a message (its value and confidence, in [0, 1]). `missing` collects the contents that were asked
    about and have no score."""

    scores: Mapping[str, Mapping[str, Any]]
    missing: set[str] = field(default_factory=set, compare=False)

    @property
    def name(self) -> str:
        """What receipts call it."""
        return "recorded"

    @property
    def version(self) -> str:
        """Another record is another judge, so that no stored verdict of one answers for the other."""
        return hashlib.sha256(json.dumps(self.scores, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def local(self) -> bool:
        """Nothing is sent."""
        return True

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        """Everything that is on record. Never raises."""
        found: dict[str, Answer] = {}
        for request in requests:
            asked = {question.id: question for question in request.questions}
            for subject in request.subjects:
                names = {"call": f"t{subject.ordinal}_call", "output": f"t{subject.ordinal}_output"}
                found |= self._call(subject.content, {part: asked[name] for part, name in names.items()})
            for turn in request.turns:
                found |= self._turn(turn.content, asked[turn.question])
        return Answers(by_id=found, judge=self.name, model=self.version)

    def _call(self, content: str, asked: Mapping[str, Question]) -> Iterable[tuple[str, Answer]]:
        score = self.scores.get(content, {})
        if _share(score.get("output")) is None:
            self.missing.add(content)
            return ()
        answers = {part: _share(score.get(part)) for part in asked}
        return [(asked[part].id, Answer({"true": value})) for part, value in answers.items() if value is not None]

    def _turn(self, content: str, question: Question) -> Iterable[tuple[str, Answer]]:
        score = self.scores.get(content, {})
        value = _share(score.get("raw"))
        if value is None or question.kind != "score":
            self.missing.add(content)
            return ()
        rank = value * (len(question.criteria) - 1)
        return [(question.id, Answer(score=rank, confidence=_share(score.get("confidence"))))]


def _share(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0:
        return float(value)
    return None
