"""Why something was cut and what it cost: one record a pass, without a word of content."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel, ConfigDict

Outcome = Literal["compacted", "nothing_to_prune", "judge_failed", "capacity", "error"]
Done = Literal["keep", "truncate", "remove", "drop", "arguments", "text"]
"""What happened: to a result; with `drop` to a call and its result together; to a call's input; to a message."""


class DecisionRecord(BaseModel):
    """One exchange, or one message (ordinal 0). `content` is the hash of tool, arguments and result; sizes are
    characters, of the input where `action` is `arguments`; `call` and `output` are the judge's probabilities; `stage`
    says how much of the result it saw."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ordinal: int
    tool: str
    content: str
    action: Done
    reason: str
    pointer: str = ""
    chars_before: int
    chars_after: int
    call: float | None = None
    output: float | None = None
    stage: str = ""
    judge: str = ""
    cached: bool = False


class Receipt(BaseModel):
    """One pass. Tokens are estimates; `used_before` is what the prompt counted; `cost` is in US dollars."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    outcome: Outcome
    why: str = ""
    mode: Literal["active", "shadow"] = "active"
    partial: bool = False
    judge: str = ""
    model: str = ""
    question_version: str = ""
    goal_hash: str = ""
    call_threshold: float = 0.0
    output_threshold: float = 0.0
    messages: int = 0
    calls: int = 0
    pinned: dict[str, int] = {}
    window: int | None = None
    used_before: int = 0
    used_after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    chars_before: int = 0
    chars_after: int = 0
    requests: int = 0
    failed_requests: int = 0
    input_tokens: int = 0
    cost: float = 0.0
    latency_ms: int = 0
    problems: tuple[str, ...] = ()
    decisions: tuple[DecisionRecord, ...] = ()

    @property
    def rungs(self) -> tuple[str, ...]:
        """The rungs of the ladder that were climbed, in order of their first cut."""
        named = (decision.reason for decision in self.decisions if decision.action != "keep")
        return tuple(dict.fromkeys(reason for reason in named if reason.startswith("ladder: ")))

    def count(self, action: Done) -> int:
        """How many exchanges or messages got this action."""
        return sum(1 for decision in self.decisions if decision.action == action)

    def to_json(self, *, decisions: bool = True) -> str:
        """The receipt as one line of JSON; escaped, since a tool's name may hold what UTF-8 has no form for."""
        return json.dumps(self.model_dump(exclude=None if decisions else {"decisions"}))

    def summary(self) -> str:
        """One line for a log or a terminal."""
        cut, gone = self.count("truncate"), self.count("remove")
        would = "would be " if self.mode == "shadow" else ""
        line = f"{self.outcome}: {cut} {would}shortened, {gone} {would}removed, {self.count('keep')} left"
        further: dict[Done, str] = {"drop": "calls gone", "arguments": "inputs cut", "text": "messages cut"}
        line += "".join(f", {number} {what}" for action, what in further.items() if (number := self.count(action)))
        if self.rungs:
            line += f"; ladder: {', '.join(rung.removeprefix('ladder: ') for rung in self.rungs)}"
        if self.chars_before:
            line += f"; {self.chars_before:,} → {self.chars_after:,} characters"
        if self.judge:
            line += f"; judge {self.judge}, {self.requests} requests"
        if self.partial:
            line += "; partial"
        notes = [note for note in (self.why, *self.problems) if note]
        return line + (f" ({'; '.join(notes)})" if notes else "")
