"""Why something was cut and what it cost: one record a pass, without a word of content."""

from __future__ import annotations

import json
import math
from typing import Literal

from pydantic import BaseModel, ConfigDict

from .prompt_cache import Rewrite

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


class CacheRecord(BaseModel):
    """What a pass does to the provider's prompt cache, by the prices of the settings: the position of the first message
    that changed, the tokens before it that stay cached, those behind it that are written once more, what is gone, US
    dollars for the one and saved by the other at each later call, and after how many calls that is even (None: never).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    first_changed: int
    prefix_tokens: int
    rewritten_tokens: int
    freed_tokens: int
    rewrite_usd: float
    saved_usd_per_call: float
    break_even_calls: float | None

    @classmethod
    def of(cls, rewrite: Rewrite) -> CacheRecord:
        """The arithmetic as it is kept."""
        return cls(
            first_changed=rewrite.first,
            prefix_tokens=rewrite.prefix,
            rewritten_tokens=rewrite.rewritten,
            freed_tokens=rewrite.freed,
            rewrite_usd=round(rewrite.once, 6),
            saved_usd_per_call=round(rewrite.saved, 6),
            break_even_calls=round(rewrite.break_even, 1) if math.isfinite(rewrite.break_even) else None,
        )

    def text(self) -> str:
        """In words."""
        even = "never pays" if self.break_even_calls is None else f"even after {self.break_even_calls:.0f} calls"
        return (
            f"cache: {self.prefix_tokens:,} tokens stay, {self.rewritten_tokens:,} written again for "
            f"${self.rewrite_usd:.4f}, {even}"
        )


class Receipt(BaseModel):
    """One pass. Tokens are estimates; `used_before` is what the prompt counted; `cost` is in US dollars; `cache` is
    what the cuts mean for the provider's prompt cache."""

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
    cache: CacheRecord | None = None
    problems: tuple[str, ...] = ()
    decisions: tuple[DecisionRecord, ...] = ()

    @property
    def rungs(self) -> tuple[str, ...]:
        """The rungs of the deep pass and of the ladder that were climbed, in order of their first cut."""
        named = (decision.reason for decision in self.decisions if decision.action != "keep")
        return tuple(dict.fromkeys(reason for reason in named if reason.startswith(("ladder: ", "deep pass: "))))

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
        for way in ("deep pass", "ladder"):
            if named := [rung.removeprefix(f"{way}: ") for rung in self.rungs if rung.startswith(f"{way}: ")]:
                line += f"; {way}: {', '.join(named)}"
        if self.chars_before:
            line += f"; {self.chars_before:,} → {self.chars_after:,} characters"
        if self.cache is not None:
            line += f"; {self.cache.text()}"
        if self.judge:
            line += f"; judge {self.judge}, {self.requests} requests"
        if self.partial:
            line += "; partial"
        notes = [note for note in (self.why, *self.problems) if note]
        return line + (f" ({'; '.join(notes)})" if notes else "")
