"""The tools the agent calls. Every reply is a JSON object; what goes wrong is an `error` in plain words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from .errors import NotStored, StoreError
from .pins import EXPAND_TOOL
from .store import Call, Store
from .store.values import is_pointer_id

CHARS_PER_TOKEN = 4
REPLY_CHARS = 20_000
_TOOL_CHARS = 100
_OFFSET_DIGITS = 15
_AGAIN_CHARS = (2_000, 400, 100)
_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
LEAST_REPLY_CHARS = 600
"""Under this a page is mostly its own frame: better refused with a reason."""

EXPAND_SCHEMA: Mapping[str, Any] = {
    "name": EXPAND_TOOL,
    "description": (
        "Read back the exact original of a tool output that was shortened or removed to save context. A line that "
        "starts with [hermes_jev: names its id. Long originals come in pages: pass next_offset as offset to go on, "
        "one page a turn."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The id in the line, like r-abcdefghij."},
            "offset": {"type": "integer", "description": "Character to start at; 0 is the beginning.", "minimum": 0},
            "part": {
                "type": "string",
                "enum": ["result", "arguments"],
                "description": "The call's result (the default) or its input.",
            },
        },
        "required": ["id"],
    },
}


@dataclass(frozen=True)
class Room:
    """How long a reply may be. `window` and `used` are tokens; None where they are not known."""

    window: int | None = None
    used: int | None = None

    @property
    def chars(self) -> int:
        """Characters of the encoded reply: under half the free window, a tenth of the window, and 20,000, since the
        host cuts larger tool replies. A token counts as four characters."""
        limits = [REPLY_CHARS]
        if self.window and self.window > 0:
            limits.append(CHARS_PER_TOKEN * self.window // 10)
            if self.used and self.used > 0:
                limits.append(CHARS_PER_TOKEN * max(0, self.window - self.used) // 2)
        return min(limits)


class Asked(NamedTuple):
    """Checked arguments of an expand call."""

    id: str
    offset: int
    part: Literal["result", "arguments"]


class _BadArgument(Exception):
    """An argument cannot be used; the text is for the model."""


def expand(arguments: Any, store: Store, sessions: Callable[[], Collection[str] | None], room: Room) -> str:
    """One page of an original as a JSON object: id, part, tool, offset, next_offset (null at the end), total, format
    ("text", or "json" for an original that is not text) and text. Offsets count characters."""
    try:
        asked = _checked(arguments)
    except _BadArgument as error:
        return _error(str(error))
    allowed: Collection[str] | None = ()
    try:
        allowed = sessions()
        original = store.get(asked.id, allowed)
    except NotStored:
        return _error(f"nothing is stored under {asked.id} for this session; run the call again to see its output")
    except StoreError as error:
        return _damaged(f"{asked.id} cannot be read: {error}", store.describe(asked.id, allowed), room.chars)
    value: Any = original.result if asked.part == "result" else original.arguments
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if asked.offset > len(text):
        return _error(f"offset {asked.offset} is after the end; {asked.id} has {len(text)} characters")
    if room.chars < LEAST_REPLY_CHARS:
        return _error(
            "the window is too full for a page; after the next compaction there is room again",
            id=asked.id,
            total=len(text),
        )
    frame = {
        "id": asked.id,
        "part": asked.part,
        "tool": original.tool[:_TOOL_CHARS],
        "offset": asked.offset,
        "next_offset": len(text),
        "total": len(text),
        "format": "text" if isinstance(value, str) else "json",
    }
    return _page(frame, text, asked.offset, room.chars)


def _checked(arguments: Any) -> Asked:
    if not isinstance(arguments, Mapping):
        raise _BadArgument("expand takes an object with an id")
    pointer = arguments.get("id")
    if not isinstance(pointer, str) or not is_pointer_id(pointer.strip()):
        raise _BadArgument("id is a text like r-abcdefghij, as a line that starts with [hermes_jev: names it")
    offset = arguments.get("offset", 0)
    if isinstance(offset, str) and offset.isdecimal() and len(offset) <= _OFFSET_DIGITS:
        offset = int(offset)
    offset = 0 if offset is None else offset
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        raise _BadArgument("offset is a whole number of characters, 0 or more")
    part = arguments.get("part") or "result"
    if part not in ("result", "arguments"):
        raise _BadArgument('part is "result" or "arguments"')
    return Asked(pointer.strip(), offset, "arguments" if part == "arguments" else "result")


def _damaged(message: str, call: Call | None, limit: int) -> str:
    """The error with the call to run again, its input as far as the reply may hold it."""
    if call is None:
        return _error(message)
    for chars in _AGAIN_CHARS:
        reply = _error(message, run_again={"tool": call.tool[:_TOOL_CHARS], "arguments": call.arguments[:chars]})
        if len(reply) <= limit:
            return reply
    return _error(message)


def _error(message: str, **more: Any) -> str:
    return _encode({"error": message, **more})


def _encode(reply: Mapping[str, Any]) -> str:
    """JSON with characters as they are, so that a page holds more; escaped where UTF-8 has no form for them."""
    text = json.dumps(reply, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(reply)
    return text


def _page(frame: dict[str, Any], text: str, offset: int, limit: int) -> str:
    """The longest page whose encoded reply has at most `limit` characters."""
    low, high = offset + 1, min(len(text), offset + limit)
    best = _reply(frame, text, offset, _whole(text, offset, high))
    if len(best) <= limit:
        return best
    best = _reply(frame, text, offset, _whole(text, offset, min(len(text), low)))
    while low <= high:
        middle = (low + high) // 2
        reply = _reply(frame, text, offset, _whole(text, offset, middle))
        if len(reply) <= limit:
            best, low = reply, middle + 1
        else:
            high = middle - 1
    return best


def _reply(frame: dict[str, Any], text: str, offset: int, end: int) -> str:
    more = end if end < len(text) else None
    return _encode({**frame, "next_offset": more, "text": text[offset:end]})


def _whole(text: str, offset: int, end: int) -> int:
    """JSON reads two lone surrogates that stand together as one character, so a page ends between them."""
    if found := _SPLIT_PAIR.search(text, offset, end):
        return found.start() + 1
    return end
