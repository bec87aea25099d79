"""Reading chat messages the way the checks need it. Pure; knows nothing of the package under test."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Message = Mapping[str, Any]

NOTICE = "[hermes_jev: "
_POINTER = re.compile(r'expand\(id="([^"\s]+)"')
_USER_BLOCK = re.compile(r"\n*\[OUT-OF-BAND USER MESSAGE.*?\[/OUT-OF-BAND USER MESSAGE\]", re.S)
_WRAPPER_OPEN = re.compile(r"\A<untrusted_tool_result[^>]*>\n?(?:.{0,1000}?\n\n)?", re.S)
_WRAPPER_CLOSE = re.compile(r"\n?</untrusted_tool_result>\s*\Z")


class Call(NamedTuple):
    """A tool call and the place of its assistant message."""

    at: int
    id: str | None
    name: str
    arguments: Any


class Shortened(NamedTuple):
    """A shortened result taken apart: all but the last line, and the notice."""

    body: str
    notice: str


def calls(messages: Sequence[Message]) -> list[Call]:
    """Every call of every assistant turn, in order: the place in this list, plus one, is the ordinal."""
    found = []
    for at, message in enumerate(messages):
        listed = message.get("tool_calls") if message.get("role") == "assistant" else None
        for call in listed if isinstance(listed, list) else ():
            fields = call if isinstance(call, Mapping) else {}
            given = fields.get("function")
            function = given if isinstance(given, Mapping) else {}
            found.append(Call(at, fields.get("id"), str(function.get("name", "")), function.get("arguments")))
    return found


def results(messages: Sequence[Message], call_id: str | None = None) -> list[tuple[int, Message]]:
    """(place, message) of the tool messages, all or those with that id."""
    return [
        (at, message)
        for at, message in enumerate(messages)
        if message.get("role") == "tool" and (call_id is None or message.get("tool_call_id") == call_id)
    ]


def text_of(content: Any) -> str:
    """The text of a content value: a string, the text parts of a list, JSON of anything else."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if isinstance(part, Mapping) and "text" in part)
    return "" if content is None else json.dumps(content, ensure_ascii=False)


def shortened(content: Any) -> Shortened | None:
    """The parts of a text that ends with a notice, None for any other content."""
    text = text_of(content)
    body, _, line = text.rpartition("\n")
    return Shortened(body, line) if line.startswith(NOTICE) else None


def pointer(content: Any) -> str | None:
    """The id that the notice at the end of this content names."""
    parts = shortened(content)
    found = _POINTER.search(parts.notice) if parts else None
    return found[1] if found else None


def payload(body: str) -> str:
    """A result's own words: without the host's wrapper and the user's words that the host glued to it."""
    without = _USER_BLOCK.sub("", body)
    if not without.startswith("<untrusted_tool_result"):
        return without
    return _WRAPPER_CLOSE.sub("", _WRAPPER_OPEN.sub("", without))


def tokens(messages: Sequence[Message]) -> int:
    """The host's rough estimate: four characters a token, over text, images and calls."""
    total = 0
    for message in messages:
        content = message.get("content")
        total += len(text_of(content))
        parts = content if isinstance(content, list) else []
        total += 6_000 * sum(1 for part in parts if isinstance(part, Mapping) and "image" in str(part.get("type")))
        total += sum(len(call.name) + len(str(call.arguments or "")) for call in calls([message]))
    return (total + 3) // 4


def public(message: Message) -> dict[str, Any]:
    """The message without the host's private keys: a real pass takes them off."""
    return {key: value for key, value in message.items() if not str(key).startswith("_")}


class Slot(NamedTuple):
    """One tool message before and after. `after` is None when it is gone."""

    id: str | None
    before: Message
    after: Message | None

    @property
    def was(self) -> Any:
        """The content before."""
        return self.before.get("content")

    @property
    def now(self) -> Any:
        """The content after, None when the message is gone."""
        return self.after.get("content") if self.after is not None else None


def slots(before: Sequence[Message], after: Sequence[Message]) -> list[Slot]:
    """The tool messages of `before`, each with the one that stands for it in `after`: the n-th with the same id."""
    left: dict[str | None, list[Message]] = {}
    for _, message in results(after):
        left.setdefault(message.get("tool_call_id"), []).append(message)
    seen: dict[str | None, int] = {}
    found = []
    for _, message in results(before):
        call_id = message.get("tool_call_id")
        number = seen.get(call_id, 0)
        seen[call_id] = number + 1
        others = left.get(call_id, [])
        found.append(Slot(call_id, message, others[number] if number < len(others) else None))
    return found


def strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value, keys included; JSON inside a string is decoded too."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):
            try:
                inner = json.loads(value)
            except (ValueError, RecursionError):
                return
            yield from strings(inner)
    elif value is not None:
        yield json.dumps(value)


def sequence_faults(messages: Sequence[Message]) -> list[str]:
    """What is wrong with calls and results: each result must stand directly after its assistant turn, each call must
    be answered once. Calls of the last turn may be open, as long as nothing but results follows it."""
    faults = []
    waiting: list[str | None] = []
    answered: list[str | None] = []
    for at, message in enumerate(messages):
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id")
            if call_id in waiting:
                waiting.remove(call_id)
                answered.append(call_id)
            else:
                kind = "a second result" if call_id in answered else "a result without its call before it"
                faults.append(f"message {at} ({call_id}): {kind}")
            continue
        if waiting:
            faults.append(f"before message {at}: no result for {waiting}")
        waiting = [call.id for call in calls([message])]
        answered = []
    return faults
