"""What a remote judge is told of a conversation and of each tool call: in words, redacted, and no more than is allowed.

`Redacted` describes a call in full detail. `Metadata` tells names of tools, shapes of inputs, sizes, ages and outcomes
and not a word of what was said, given or returned. Numbers are put into words here, so that nobody has to reckon.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

from .egress import Gate
from .fact_lines import fact_lines
from .goal import GOAL_CHARS, request_places
from .outcome import Outcome
from .questions import CONTEXT
from .references import References
from .shapes import shape_of_arguments
from .tokens import content_text
from .transcript import Exchange, Message, Transcript

INPUT_LEVELS = (1_000, 200, 60)
"""Characters: how much of an input is shown, from the most to the least, as the budget needs."""

SEEN_INPUT_CHARS = 200
"""A verdict counts only when at least this much of the input was seen, or all of it."""
HEAD_CHARS = 400
TAIL_CHARS = 300
FACT_CHARS = 300
REACH = 3_000
"""Characters at each end of an output in which the lines of fact are looked for."""

_EVENTS = 24
_EVENT_CHARS = 160
_EVENT_INPUT_CHARS = 60
_FOCUS_CHARS = 600
_TOOL_CHARS = 100
_TOOLS = 8
_SIZES = ((3_000, "short"), (10_000, "medium"), (50_000, "long"))

Stage = Literal["whole", "head_tail", "input_cut", "metadata"]
"""How much of a call the judge sees: all; of a long output head, tail and lines of fact; too little of its input;
nothing of what it says."""

COUNTS: frozenset[str] = frozenset(("whole", "head_tail", "metadata"))
"""Stages at which an answer counts. An answer about metadata alone may only keep: see `judged`."""

WITHHELD = (
    " What was said, given and returned is withheld: only names of tools, shapes of inputs, sizes, ages and outcomes "
    "are told."
)


@dataclass(frozen=True)
class Subject:
    """What a description is about: the conversation, what the human wants, and a topic to favour."""

    transcript: Transcript
    goal: str = field(repr=False)
    focus: str = field(repr=False)


@dataclass(frozen=True)
class Item:
    """One call, described; the input as it is told at most, and whether that is all of it."""

    head: Mapping[str, str]
    input: str
    whole_input: bool
    rest: Mapping[str, Any]
    seen: Stage

    def fields(self, input_chars: int) -> dict[str, Any]:
        """What is sent, with this much of the input."""
        cut = len(self.input) > input_chars or not self.whole_input
        shown = f"{self.input[:input_chars]} … (cut)" if cut else self.input
        return {**self.head, "input": shown, **self.rest}

    def stage(self, input_chars: int) -> Stage:
        """How much is seen with this much of the input."""
        enough = input_chars >= SEEN_INPUT_CHARS or (self.whole_input and len(self.input) <= input_chars)
        return self.seen if enough or self.seen == "metadata" else "input_cut"


class Describer(Protocol):
    """Tells what may be told. Both methods raise RedactionError for what cannot be redacted."""

    def frame(self) -> dict[str, Any]:
        """What every request carries: how to read it, the goal, and the newest events."""
        ...

    def item(self, exchange: Exchange) -> Item:
        """One call in full detail."""
        ...


@dataclass(frozen=True)
class Facts:
    """What can be counted about the calls of one transcript, in words."""

    transcript: Transcript

    @cached_property
    def _references(self) -> References:
        return References(self.transcript)

    @cached_property
    def _requests(self) -> tuple[int, ...]:
        return request_places(self.transcript)

    def words(self, exchange: Exchange) -> dict[str, str]:
        """Outcome, size, age, the request it served, and what later calls have to do with it."""
        since = sum(1 for at in self._requests if at > exchange.call_at)
        return {
            "outcome": outcome_words(exchange.outcome),
            "size": size_words(exchange.text),
            "age": age_words(age_of(exchange, self.transcript)),
            "made_for": ("the present request", "the request before")[since] if since < 2 else "an earlier request",
            "later": self._references.later(exchange).words(),
        }


def age_of(exchange: Exchange, transcript: Transcript) -> int:
    """Calls after this one."""
    return len(transcript.exchanges) - exchange.ordinal


def age_words(calls: int) -> str:
    """How many calls ago."""
    return "the newest call" if calls == 0 else "1 call ago" if calls == 1 else f"{calls} calls ago"


def outcome_words(outcome: Outcome) -> str:
    """How a call ended."""
    if outcome.status == "ok":
        return "ended without an error"
    if outcome.status == "failed":
        return f"failed ({outcome.detail})" if outcome.detail else "failed"
    return "ended; the result does not say how"


def size_words(text: str) -> str:
    """How long an output is."""
    lines = text.count("\n") + (not text.endswith("\n"))
    word = next((word for most, word in _SIZES if len(text) <= most), "very long")
    return f"{word}: {len(text):,} characters in {lines:,} {'line' if lines == 1 else 'lines'}"


def _ended(exchange: Exchange) -> str:
    if exchange.state == "open":
        return "still running"
    if exchange.state == "ambiguous":
        return "its result is unclear"
    return f"{outcome_words(exchange.outcome)}, {exchange.size:,} characters"


class Teller(Protocol):
    """The words of one event of the timeline."""

    def said(self, role: str, text: str) -> str:
        """Of a message."""
        ...

    def called(self, exchange: Exchange) -> str:
        """Of a call."""
        ...


def timeline(transcript: Transcript, teller: Teller) -> list[str]:
    """The newest events, oldest first; the earlier ones are folded into one line."""
    by_call: dict[int, list[Exchange]] = {}
    for exchange in transcript.exchanges:
        by_call.setdefault(exchange.call_at, []).append(exchange)
    lines: list[str] = []
    for at in reversed(range(len(transcript.messages))):
        lines.extend(reversed(list(_events(transcript.messages[at], by_call.get(at, ())[-_EVENTS:], teller))))
        if len(lines) >= _EVENTS:
            lines.append(f"({at} earlier messages are not shown)") if at else None
            break
    return lines[::-1]


def _events(message: Message, calls: Sequence[Exchange], teller: Teller) -> Iterator[str]:
    role = message.get("role")
    if role not in ("user", "assistant"):
        return
    if text := content_text(message.get("content")).strip():
        yield teller.said(str(role), text)
    for exchange in calls:
        yield teller.called(exchange)


def folded(transcript: Transcript, gate: Gate) -> str:
    """All calls of the conversation in one line."""
    tools = Counter(exchange.tool for exchange in transcript.exchanges)
    named = [f"{gate.start(tool, _TOOL_CHARS)} {count}" for tool, count in tools.most_common(_TOOLS)]
    more = [f"others {sum(tools.values()) - sum(count for _, count in tools.most_common(_TOOLS))}"]
    return f"tool calls so far: {', '.join(named + more if len(tools) > _TOOLS else named)}"


@dataclass(frozen=True)
class _Told:
    subject: Subject
    gate: Gate

    @cached_property
    def _facts(self) -> Facts:
        return Facts(self.subject.transcript)


class Redacted(_Told):
    """Everything, through the gate."""

    def frame(self) -> dict[str, Any]:
        """Goal and events in their own words, shortened."""
        what = self.subject
        frame: dict[str, Any] = {"context": CONTEXT, "goal": self._ends(what.goal, GOAL_CHARS)}
        if what.focus:
            frame["focus"] = self._ends(what.focus, _FOCUS_CHARS)
        return {**frame, "folded": folded(what.transcript, self.gate), "timeline": timeline(what.transcript, self)}

    def item(self, exchange: Exchange) -> Item:
        """Input, the ends of the output and, between them, the lines that look like facts."""
        head = {"id": f"t{exchange.ordinal}", "tool": self.gate.start(exchange.tool, _TOOL_CHARS)}
        shown, whole = self.gate.arguments(exchange.arguments, INPUT_LEVELS[0])
        rest: dict[str, Any] = dict(self._facts.words(exchange))
        first, last = self.gate.head_and_tail(exchange.text, REACH, REACH)
        if not last and len(first) <= HEAD_CHARS + TAIL_CHARS:
            return Item(head, shown, whole, {**rest, "output": first}, "whole")
        middle, rest["output"] = first[HEAD_CHARS:], f"{first[:HEAD_CHARS]} …"
        tail = last or middle
        middle = f"{_whole_lines(middle)}\n{_whole_lines(last[:-TAIL_CHARS])}" if last else middle[:-TAIL_CHARS]
        if lines := fact_lines(middle, FACT_CHARS):
            rest["output_lines"] = lines
        rest["output_end"] = f"… {tail[-TAIL_CHARS:]}"
        return Item(head, shown, whole, rest, "head_tail")

    def said(self, role: str, text: str) -> str:
        """The start of a message."""
        return f"{role}: {self.gate.start(text, _EVENT_CHARS)}"

    def called(self, exchange: Exchange) -> str:
        """Tool, the start of its input, and how it ended."""
        shown, _ = self.gate.arguments(exchange.arguments, _EVENT_INPUT_CHARS)
        return f"t{exchange.ordinal} {self.gate.start(exchange.tool, _TOOL_CHARS)} {shown}: {_ended(exchange)}"

    def _ends(self, text: str, limit: int) -> str:
        head, tail = self.gate.head_and_tail(text, limit * 2 // 3, limit // 3)
        return f"{head} … {tail}" if tail else head


def _whole_lines(text: str) -> str:
    """The text without its first and last line, which a cut may have halved."""
    start, end = text.find("\n"), text.rfind("\n")
    return text[start + 1 : end] if 0 <= start < end else ""


class Metadata(_Told):
    """Not a word of what was said, given or returned. Names of tools and of inputs' fields still pass the gate."""

    def frame(self) -> dict[str, Any]:
        """That the goal is withheld, and the kinds of the newest events."""
        what = self.subject
        return {
            "context": CONTEXT + WITHHELD,
            "goal": f"withheld; {len(what.goal):,} characters",
            "folded": folded(what.transcript, self.gate),
            "timeline": timeline(what.transcript, self),
        }

    def item(self, exchange: Exchange) -> Item:
        """The shape of the input and what can be counted."""
        head = {"id": f"t{exchange.ordinal}", "tool": self.gate.start(exchange.tool, _TOOL_CHARS)}
        shape = json.dumps(shape_of_arguments(exchange.arguments, self.gate.text), ensure_ascii=False)
        return Item(head, shape, True, self._facts.words(exchange), "metadata")

    def said(self, role: str, text: str) -> str:
        """How long a message is."""
        return f"{role}: {len(text):,} characters"

    def called(self, exchange: Exchange) -> str:
        """Tool and how it ended."""
        return f"t{exchange.ordinal} {self.gate.start(exchange.tool, _TOOL_CHARS)}: {_ended(exchange)}"
