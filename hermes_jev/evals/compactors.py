"""Who shortens a growing conversation, and when: what a replay puts between two calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from ..job import Job
from ..judge import Judge
from ..policy import prompt_room, should_compact
from ..prune import run
from ..quiet import GROWTH, Quiet
from ..rolling import Rolling
from ..settings import Settings
from ..store import Store
from ..tokens import message_tokens
from .plans import placeholder
from .prices import Prices
from .stock import stock_prune
from .texts import text_of


class Pass(NamedTuple):
    """What a pass left, and what it cost beside the calls themselves. `trigger` are the tokens from which it ran."""

    messages: list[Any]
    requests: int = 0
    dollars: float = 0.0


class Compactor(Protocol):
    """Stateful: one instance a session."""

    @property
    def trigger(self) -> float:
        """Tokens of a prompt from which it acts; infinity for never."""
        ...

    def before_call(self, messages: list[Any], tokens: int) -> Pass | None:
        """A chance to shorten the prompt that is about to go out; None when it does not act."""
        ...

    def after_call(self, tokens: int, turn_over: bool) -> None:
        """The prompt went out and was counted; `turn_over` says that a human spoke since the call before."""
        ...


class Never:
    """No compaction, whatever the window."""

    trigger = float("inf")

    def before_call(self, messages: list[Any], tokens: int) -> Pass | None:
        """Nothing."""
        return None

    def after_call(self, tokens: int, turn_over: bool) -> None:
        """Nothing."""


class LastStubs:
    """All results but the last `kept` become placeholders: from `trigger` tokens on, or with 0 before every call."""

    def __init__(self, kept: int, trigger: float) -> None:
        self.kept, self.trigger = kept, trigger

    def before_call(self, messages: list[Any], tokens: int) -> Pass | None:
        """Stubs what is not one yet."""
        if tokens < self.trigger:
            return None
        places = [at for at, message in enumerate(messages) if message.get("role") == "tool"]
        old = set(places[: -self.kept] if self.kept else places)
        after = [self._stub(message) if at in old else message for at, message in enumerate(messages)]
        return Pass(after) if any(a is not b for a, b in zip(after, messages, strict=True)) or self.trigger else None

    def _stub(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        size = len(text_of(message))
        stub = placeholder(size)
        return {**message, "content": stub} if size > 2 * len(stub) else message

    def after_call(self, tokens: int, turn_over: bool) -> None:
        """Nothing."""


class Stock:
    """The stock engine of Hermes 0.19 by its rules: its prune, then one summary of the middle. No model is asked here:
    the summary is filler of the length the host asks for, and costs what reading the middle and writing it costs."""

    HEAD = 3
    TAIL_SHARE = 0.2
    TAIL_MESSAGES = 20
    LEAST_TAIL = 8
    SUMMARY_SHARE = 0.2
    LEAST_SUMMARY, MOST_SUMMARY = 2_000, 10_000
    READ_CHARS = 6_000

    def __init__(self, window: int, trigger: float, prices: Prices) -> None:
        self.window, self.trigger, self._prices = window, trigger, prices
        self._summary: Any = None

    def before_call(self, messages: list[Any], tokens: int) -> Pass | None:
        """Prune, then summarise what lies between head and tail."""
        if tokens < self.trigger:
            return None
        budget = self.TAIL_SHARE * self.trigger
        pruned = stock_prune(messages, int(budget), self.TAIL_MESSAGES)
        head = int(bool(pruned) and pruned[0].get("role") == "system") + (0 if self._summary else self.HEAD)
        while head < len(pruned) and pruned[head].get("role") == "tool":
            head += 1
        tail = self._tail_start(pruned, head, 1.5 * budget)
        middle = pruned[head:tail]
        if not middle:
            return Pass(pruned)
        content = sum(map(message_tokens, middle))
        most = min(0.05 * self.window, self.MOST_SUMMARY)
        length = int(max(self.LEAST_SUMMARY, min(self.SUMMARY_SHARE * content, most)))
        read = sum(min(message_tokens(m), self.READ_CHARS // 4) for m in middle)
        self._summary = {"role": "user", "content": _filler(length)}
        after = [*pruned[:head], self._summary, *pruned[tail:]]
        return Pass(after, requests=1, dollars=self._prices.plain(read, length))

    def _tail_start(self, messages: Sequence[Mapping[str, Any]], head: int, budget: float) -> int:
        """Where the tail starts: so many tokens, the last human words in any case, never inside a group."""
        start, held = len(messages), 0
        while start > head and (held <= budget or len(messages) - start < self.LEAST_TAIL):
            start -= 1
            held += message_tokens(messages[start])
        users = [at for at in range(head, len(messages)) if messages[at].get("role") == "user"]
        start = min(start, users[-1]) if users else start
        while start > head and messages[start].get("role") == "tool":
            start -= 1
        return start

    def after_call(self, tokens: int, turn_over: bool) -> None:
        """Nothing."""


def _filler(tokens: int) -> str:
    """Text of about so many estimated tokens, all of it short words."""
    return " ".join(["summary"] * max(1, round(tokens / 1.13)))


class Engine:
    """This engine in a window, asked before every call as a host asks it, quiet after a pass as in a host."""

    def __init__(self, judge: Judge, store: Store, settings: Settings, window: int) -> None:
        self._judge, self._store, self._settings, self._window = judge, store, settings, window
        self._room = prompt_room(window, settings)
        self._quiet = Quiet()
        self._rolling = Rolling()

    @property
    def trigger(self) -> float:
        """Where the settings put it."""
        return self._settings.trigger_percent * self._room

    def before_call(self, messages: list[Any], tokens: int) -> Pass | None:
        """A pass when one is due."""
        level = should_compact(tokens, self._window, self._settings)
        job = Job(
            settings=self._settings, judge=self._judge, store=self._store, session="eval", window=self._window,
            used=tokens, overflow=tokens > self._room,
        )  # fmt: skip
        if self._quiet.holds(tokens, GROWTH * self._room, level == "urgent") or level == "no":
            return self._rolled(messages, job) if self._settings.schedule == "rolling" else None
        pruned = run(messages, job)
        receipt = pruned.receipt
        if pruned.messages is messages:
            self._quiet = self._quiet.after_nothing(pruned.calls_until_worth, level == "urgent")
        else:
            enough = receipt.used_after < self.trigger
            self._quiet = self._quiet.after_change(pruned.calls_until_worth, level == "urgent", enough)
        return Pass(pruned.messages, receipt.requests, receipt.cost)

    def _rolled(self, messages: list[Any], job: Job) -> Pass | None:
        """What newer hosts ask for after each round of tools."""
        tokens = job.used or 0
        if not self._rolling.due(tokens, self._window):
            return None
        pruned = run(messages, replace(job, rolling=True))
        self._rolling.looked(tokens, pruned.receipt.tokens_before - pruned.receipt.tokens_after)
        if pruned.messages is messages:
            return None
        return Pass(pruned.messages, pruned.receipt.requests, pruned.receipt.cost)

    def after_call(self, tokens: int, turn_over: bool) -> None:
        """The provider's count, which is the estimate here."""
        if turn_over:
            self._quiet.turn_over()
        self._quiet.response(tokens, self.trigger)
