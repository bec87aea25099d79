"""Messages as the evaluation reads them: their text, the text of their arguments, their size, where to cut."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from ..tokens import content_text, value_text

Message = Mapping[str, Any]
Owner = TypeVar("Owner")

GAP = "\n\x00\n"
"""What stands between two texts of a haystack: no needle is found across it."""


def text_of(message: Message) -> str:
    """A message's own text, calls aside."""
    content = message.get("content")
    return content_text(content) if isinstance(content, str | list) else value_text(content)


def calls_of(message: Message) -> list[Mapping[str, Any]]:
    """The functions a message calls, `{}` where a call is malformed, so that places stay those of `tool_calls`."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return []
    functions = [call.get("function") if isinstance(call, Mapping) else None for call in calls]
    return [function if isinstance(function, Mapping) else {} for function in functions]


def raw_arguments(function: Mapping[str, Any]) -> str:
    """The arguments as they were written."""
    return value_text(function.get("arguments"))


def argument_values(function: Mapping[str, Any]) -> str:
    """The values inside the arguments, one a line; keys are no content. What is no JSON is taken as it is."""
    raw = raw_arguments(function)
    try:
        value = json.loads(raw or "null")
    except (ValueError, RecursionError):
        return raw
    return "\n".join(_leaves(value)) if raw else ""


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield json.dumps(value)


def written_by(message: Message) -> str:
    """All that the author of a message wrote: its text and the values of its arguments."""
    return "\n".join([text_of(message), *(argument_values(function) for function in calls_of(message))])


def size_of(messages: Iterable[Message]) -> int:
    """Characters of texts, arguments and tool names."""
    return sum(
        len(text_of(message)) + sum(len(raw_arguments(f)) + len(value_text(f.get("name"))) for f in calls_of(message))
        for message in messages
    )


def cut_at(messages: Sequence[Message], share: float) -> int:
    """The first message that is no tool result and has at least `share` of all characters before it."""
    sizes = [size_of([message]) for message in messages]
    wanted, before = share * sum(sizes), 0
    for at, message in enumerate(messages):
        if before >= wanted and message.get("role") != "tool":
            return at
        before += sizes[at]
    return len(messages)


class Haystack(Generic[Owner]):
    """Texts in order, each with an owner, searched as one."""

    def __init__(self, parts: Iterable[tuple[Owner, str]]) -> None:
        self.starts: list[int] = []
        self.owners: list[Owner] = []
        texts: list[str] = []
        at = 0
        for owner, text in parts:
            if text:
                self.starts.append(at)
                self.owners.append(owner)
                texts.append(text)
                at += len(text) + len(GAP)
        self.text = GAP.join(texts)

    def first(self, needle: str) -> int:
        """Where it stands first, -1 for nowhere."""
        return self.text.find(needle)

    def holders(self, needle: str) -> list[Owner]:
        """The owners of the texts that hold it, in order."""
        found: list[Owner] = []
        at = self.text.find(needle)
        while at >= 0:
            part = bisect.bisect_right(self.starts, at) - 1
            found.append(self.owners[part])
            at = self.text.find(needle, self.starts[part + 1]) if part + 1 < len(self.starts) else -1
        return found
