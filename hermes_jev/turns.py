"""Messages as turns: what `select` and `compact` weigh, one message at a time.

A turn is a message's text with its size and the hash of its content. A unit is what must stay or go together: an
assistant's calls and their results, or one message alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .tokens import content_text, value_text

SYSTEM = ("system", "developer")
"""Roles whose turns always stay."""


@dataclass(frozen=True)
class Turn:
    """One message. `text` is what it says, `calls` what it calls, both as plain text; `size` is UTF-8 bytes of both;
    `content` is the SHA-256 of role, text and calls."""

    index: int
    role: str
    text: str
    calls: str
    size: int
    content: str

    @property
    def shown(self) -> str:
        """All of it as one text."""
        return f"{self.text}\n{self.calls}" if self.text and self.calls else self.text or self.calls


def turns_of(messages: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """One turn a message, in order."""
    return [_turn(index, message) for index, message in enumerate(messages)]


def _turn(index: int, message: Mapping[str, Any]) -> Turn:
    role = str(message.get("role"))
    text, calls = content_text(message.get("content")), _calls(message)
    size = len(_utf8(text)) + len(_utf8(calls))
    content = hashlib.sha256(_utf8(f"{role}\0{text}\0{calls}")).hexdigest()
    return Turn(index, role, text, calls, size, content)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _calls(message: Mapping[str, Any]) -> str:
    calls = message.get("tool_calls")
    lines = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            lines.append(f"{function.get('name', '')}({value_text(function.get('arguments'))})")
    return "\n".join(lines)


def units_of(messages: Sequence[Mapping[str, Any]]) -> list[tuple[int, ...]]:
    """Indices that live or die together, by first index: an assistant's calls with the results that name them (by id,
    else by following it directly), and every other message alone."""
    owner: dict[int, int] = {}
    calling: dict[str, int] = {}
    last_calls = -1
    for index, message in enumerate(messages):
        owner[index] = index
        ids = _call_ids(message)
        if message.get("role") == "assistant":
            last_calls = index if ids else -1
            calling.update(dict.fromkeys((name for name in ids if name), index))
        elif message.get("role") in ("tool", "function"):
            named = message.get("tool_call_id")
            by_id = calling.get(named) if isinstance(named, str) else None
            owner[index] = by_id if by_id is not None else last_calls if last_calls >= 0 and not named else index
        elif message.get("role") == "user":
            last_calls = -1
    units: dict[int, list[int]] = {}
    for index, first in owner.items():
        units.setdefault(first, []).append(index)
    return [tuple(members) for _, members in sorted(units.items())]


def _call_ids(message: Mapping[str, Any]) -> list[str]:
    calls = message.get("tool_calls")
    found = []
    for call in calls if isinstance(calls, list) else ():
        name = call.get("id") if isinstance(call, Mapping) else None
        found.append(name if isinstance(name, str) else "")
    return found
