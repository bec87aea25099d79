"""A list of chat messages, parsed once: which call has which result.

`Transcript.parse` pairs calls and results inside their group (an assistant message and the tool messages that follow
it without a break). Whatever is not exactly one call with exactly one result — an open call, a doubled result, an
orphan, a result before its call, a doubled id — is recognised and left alone. Order is list order, never time, and
nothing here is kept between two passes: an exchange is known by its tool, arguments, result and its place among
equals.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from .outcome import Outcome, outcome_of
from .tokens import CHARS_PER_IMAGE, content_text, images_in, message_tokens, value_text

Message = Mapping[str, Any]
State = Literal["completed", "open", "ambiguous"]


@dataclass(frozen=True)
class Exchange:
    """One tool call and, when completed, the one result that answers it.

    `ordinal` counts all calls of the transcript from 1, in list order; question ids are made of it. `call_at` and
    `result_at` are positions in the message list, `slot` the position in the assistant message's `tool_calls`.
    """

    ordinal: int
    call_at: int
    slot: int
    tool: str = field(repr=False)
    arguments: str = field(repr=False)
    state: State
    result_at: int | None = None
    result: Any = field(default=None, repr=False)

    @cached_property
    def text(self) -> str:
        """The result as text: a string itself, the text parts of a list, JSON of anything else."""
        return content_text(self.result) if isinstance(self.result, list) else value_text(self.result)

    @cached_property
    def size(self) -> int:
        """Characters of the result."""
        return len(self.text)

    @cached_property
    def bulk(self) -> int:
        """Characters of the result, an image counted as the text that takes as much room."""
        return self.size + CHARS_PER_IMAGE * images_in(self.result)

    @cached_property
    def outcome(self) -> Outcome:
        """How the call ended, as far as the result says."""
        return outcome_of(self.result)


@dataclass(frozen=True)
class Transcript:
    """Messages (the very objects that were given) and their exchanges in list order."""

    messages: Sequence[Message] = field(repr=False)
    exchanges: tuple[Exchange, ...]

    @classmethod
    def parse(cls, messages: Sequence[Message]) -> Transcript:
        """Pair calls with results. Never raises for odd messages; they take part in no exchange."""
        exchanges: list[Exchange] = []
        at = 0
        while at < len(messages):
            calls = _calls(messages[at])
            stop = at + 1
            if calls:
                while stop < len(messages) and messages[stop].get("role") == "tool":
                    stop += 1
                exchanges.extend(_pair(messages, at, stop, calls, len(exchanges)))
            at = stop
        return cls(messages, tuple(exchanges))

    @cached_property
    def completed(self) -> tuple[Exchange, ...]:
        """Exchanges with exactly one result, oldest first."""
        return tuple(exchange for exchange in self.exchanges if exchange.state == "completed")

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Estimated tokens of each message."""
        return tuple(message_tokens(message) for message in self.messages)

    @cached_property
    def tokens(self) -> int:
        """Estimated tokens of all messages."""
        return sum(self.sizes)

    @cached_property
    def newest_assistant(self) -> int:
        """Position of the last assistant message, -1 if there is none."""
        return next((i for i in reversed(range(len(self.messages))) if self.messages[i].get("role") == "assistant"), -1)


def _calls(message: Message) -> list[Any]:
    calls = message.get("tool_calls")
    return calls if message.get("role") == "assistant" and isinstance(calls, list) else []


def _call_ids(call: Any) -> tuple[str, ...]:
    """The ids a result may name: the host accepts `id` and `call_id`."""
    if not isinstance(call, Mapping):
        return ()
    return tuple(dict.fromkeys(name for key in ("id", "call_id") if (name := _id(call.get(key)))))


def _result_id(message: Message) -> str:
    return _id(message.get("tool_call_id"))


def _id(value: Any) -> str:
    """An id as text, empty for none; some writers use numbers."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _pair(messages: Sequence[Message], at: int, stop: int, calls: list[Any], before: int) -> list[Exchange]:
    ids = [_call_ids(call) for call in calls]
    answers = _by_position(messages, at, stop, ids) or _by_id(messages, at, stop, ids)
    repeated = {name for name, count in Counter(name for names in ids for name in names).items() if count > 1}
    exchanges = []
    for slot, call in enumerate(calls):
        found = answers[slot]
        well_formed = isinstance(call, Mapping) and isinstance(call.get("function"), Mapping)
        sound = well_formed and not repeated.intersection(ids[slot])
        state: State = "open" if not found else "completed" if len(found) == 1 and sound else "ambiguous"
        result_at = found[0] if state == "completed" else None
        function = call["function"] if well_formed else {}
        exchanges.append(
            Exchange(
                ordinal=before + slot + 1,
                call_at=at,
                slot=slot,
                tool=_tool(function, messages[result_at] if result_at is not None else {}),
                arguments=value_text(function.get("arguments")),
                state=state,
                result_at=result_at,
                result=messages[result_at].get("content") if result_at is not None else None,
            )
        )
    return exchanges


def _by_position(
    messages: Sequence[Message], at: int, stop: int, ids: list[tuple[str, ...]]
) -> dict[int, list[int]] | None:
    """Pairs by place, when no call and no result of the group has an id and there are as many of each."""
    nameless = not any(ids) and not any(_result_id(messages[i]) for i in range(at + 1, stop))
    if not nameless or stop - at - 1 != len(ids):
        return None
    return {slot: [at + 1 + slot] for slot in range(len(ids))}


def _by_id(messages: Sequence[Message], at: int, stop: int, ids: list[tuple[str, ...]]) -> dict[int, list[int]]:
    results: dict[str, list[int]] = defaultdict(list)
    for position in range(at + 1, stop):
        if name := _result_id(messages[position]):
            results[name].append(position)
    return {
        slot: sorted({position for name in names for position in results.get(name, ())})
        for slot, names in enumerate(ids)
    }


def _tool(function: Mapping[str, Any], result: Message) -> str:
    """The call names its tool; rows reloaded by a host may have it on the result only."""
    for value in (function.get("name"), result.get("tool_name"), result.get("name")):
        if isinstance(value, str) and value:
            return value
    return "unknown"
