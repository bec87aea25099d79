"""The tool `expand`: an original again, in pages. Every reply is a JSON object; what goes wrong is an `error` in plain
words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from .errors import NotStored, StoreError
from .paging import REPLY_CHARS, Room, encode, error, page
from .pins import EXPAND_TOOL
from .readable import readable
from .store import Call, Original, Store
from .store.values import is_pointer_id

__all__ = ["EXPAND_SCHEMA", "REPLY_CHARS", "Rescue", "Room", "expand"]

_TOOL_CHARS = 100
_NUMBER_DIGITS = 15
_CONTAINS_CHARS = 500
_LINE_CHARS = 500
_ECHO_CHARS = 200
_AGAIN_CHARS = (2_000, 400, 100)
_LINES = re.compile(r"\s*(\d{1,15})\s*(?:(-)\s*(\d{1,15})?\s*)?")

EXPAND_SCHEMA: Mapping[str, Any] = {
    "name": EXPAND_TOOL,
    "description": (
        "Read back the exact original of a tool output that was shortened or removed to save context. A line that "
        "starts with [hermes_jev: names its id. Long originals come in pages: pass next_offset as offset to go on, "
        "one page a turn. To read less, ask for lines or for what contains a text."
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
            "lines": {"type": "string", "description": 'Only these lines, like "120-180"; the first is 1.'},
            "contains": {
                "type": "string",
                "description": "Only lines that hold this text exactly (no pattern), each with its number.",
            },
        },
        "required": ["id"],
    },
}


class Asked(NamedTuple):
    """Checked arguments of an expand call; `lines` from 1, both included, the last None for the end."""

    id: str
    offset: int
    part: Literal["result", "arguments"]
    lines: tuple[int, int | None] | None
    contains: str


class Rescue(NamedTuple):
    """Where to look when the store cannot help: for the original itself, proved by its pointer, and for the call."""

    original: Callable[[str], Original | None] = lambda _pointer: None
    call: Callable[[str], Call | None] = lambda _pointer: None


class _BadArgument(Exception):
    """An argument cannot be used; the text is for the model."""


def expand(
    arguments: Any,
    store: Store,
    sessions: Callable[[], Collection[str] | None],
    room: Room,
    rescue: Rescue = Rescue(),  # noqa: B008 - a constant
) -> str:
    """One page of an original as a JSON object: id, part, tool, offset, next_offset (null at the end), total, format
    ("text", or "json" for an original that is not text) and text. Offsets count characters.

    With `lines` or `contains` the page is of the original as a person reads it, line by line (for a text that is JSON,
    its fields); total_lines says how many there are, and offsets count in that text.
    """
    try:
        asked = _checked(arguments)
        found = _opened(asked, store, sessions, rescue, room)
        if isinstance(found, str):
            return found
        return _reply(asked, found, room)
    except _BadArgument as bad:
        return error(str(bad))


def _opened(
    asked: Asked, store: Store, sessions: Callable[[], Collection[str] | None], rescue: Rescue, room: Room
) -> Original | str:
    """The original, or the reply that says why there is none."""
    allowed: Collection[str] | None = ()
    try:
        allowed = sessions()
        return store.get(asked.id, allowed)
    except NotStored:
        why = f"nothing is stored under {asked.id} for this session; run the call again to see its output"
    except StoreError as fault:
        why = f"{asked.id} cannot be read: {fault}"
    if (proved := rescue.original(asked.id)) is not None:
        return proved
    return _again(why, store.describe(asked.id, allowed) or rescue.call(asked.id), room.chars)


def _reply(asked: Asked, original: Original, room: Room) -> str:
    value: Any = original.result if asked.part == "result" else original.arguments
    by_line = asked.lines is not None or bool(asked.contains)
    text = readable(value) if by_line else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if asked.offset > len(text):
        raise _BadArgument(f"offset {asked.offset} is after the end; {asked.id} has {len(text)} characters")
    if refusal := room.refusal:
        return error(refusal, id=asked.id, total=len(text))
    frame: dict[str, Any] = {
        "id": asked.id,
        "part": asked.part,
        "tool": original.tool[:_TOOL_CHARS],
        "offset": asked.offset,
        "next_offset": len(text),
        "total": len(text),
        "format": "text" if by_line or isinstance(value, str) else "json",
    }
    if not by_line:
        return page(frame, text, asked.offset, len(text), room.chars)
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    first, last = _range(asked, len(starts))
    frame["total_lines"] = len(starts)
    begin = max(asked.offset, starts[first - 1])
    end = starts[last] - 1 if last < len(starts) else len(text)
    if asked.contains:
        return _matches(frame, text, starts, (begin, end), asked.contains, room.chars)
    frame |= {"offset": begin, "lines": f"{first}-{last}"}
    return page(frame, text, begin, max(begin, end), room.chars)


def _range(asked: Asked, count: int) -> tuple[int, int]:
    first, last = asked.lines or (1, None)
    if first > count:
        raise _BadArgument(f"line {first} is after the end; {asked.id} has {count} lines")
    return first, count if last is None else min(last, count)


def _matches(
    frame: dict[str, Any], text: str, starts: list[int], within: tuple[int, int], literal: str, limit: int
) -> str:
    """Lines that hold the literal, each after its number and a colon, as many as fit; a long one around the match."""
    found = list(_holding(text, starts, within, literal))
    said = literal if len(encode({"": literal})) <= _ECHO_CHARS else f"{literal[: _ECHO_CHARS // 8]}…"
    frame |= {"offset": within[0], "contains": said, "matches": len(found)}
    shown: list[str] = []
    best = encode({**frame, "next_offset": None, "text": ""})
    for at, (number, start, end) in enumerate(found):
        following = found[at + 1][1] if at + 1 < len(found) else None
        # Encoded a character may take six; the first match is shown with less around it rather than not at all.
        for width in (_LINE_CHARS, _LINE_CHARS // 6, _LINE_CHARS // 40, 1) if at == 0 else (_LINE_CHARS,):
            line = f"{number}:{_around(text[start:end], literal, width)}"
            reply = encode({**frame, "next_offset": following, "text": "\n".join([*shown, line])})
            if len(reply) <= limit:
                break
        else:
            break
        shown.append(line)
        best = reply
    return best


def _holding(text: str, starts: list[int], within: tuple[int, int], literal: str) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each line in the range that holds the literal."""
    for number, start in enumerate(starts, 1):
        end = starts[number] - 1 if number < len(starts) else len(text)
        if within[0] <= start < max(within[1], within[0] + 1) and literal in text[start:end]:
            yield number, start, end


def _around(line: str, literal: str, width: int) -> str:
    if len(line) <= width:
        return line
    middle = line.index(literal)
    start = max(0, min(middle - width // 4, len(line) - width))
    end = start + width
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"


def _checked(arguments: Any) -> Asked:
    if not isinstance(arguments, Mapping):
        raise _BadArgument("expand takes an object with an id")
    pointer = arguments.get("id")
    if not isinstance(pointer, str) or not is_pointer_id(pointer.strip()):
        raise _BadArgument("id is a text like r-abcdefghij, as a line that starts with [hermes_jev: names it")
    part = arguments.get("part") or "result"
    if part not in ("result", "arguments"):
        raise _BadArgument('part is "result" or "arguments"')
    contains = arguments.get("contains")
    if contains is not None and (not isinstance(contains, str) or len(contains) > _CONTAINS_CHARS or "\n" in contains):
        raise _BadArgument(f"contains is a text of at most {_CONTAINS_CHARS} characters within one line")
    return Asked(
        pointer.strip(),
        _offset(arguments.get("offset", 0)),
        "arguments" if part == "arguments" else "result",
        _lines(arguments.get("lines")),
        contains or "",
    )


def _offset(offset: Any) -> int:
    if isinstance(offset, str) and offset.isdecimal() and len(offset) <= _NUMBER_DIGITS:
        offset = int(offset)
    offset = 0 if offset is None else offset
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        raise _BadArgument("offset is a whole number of characters, 0 or more")
    return offset


def _lines(lines: Any) -> tuple[int, int | None] | None:
    if lines is None or lines == "":
        return None
    if isinstance(lines, int) and not isinstance(lines, bool):
        lines = str(lines)
    found = _LINES.fullmatch(lines) if isinstance(lines, str) and lines.isascii() else None
    first = int(found[1]) if found else 0
    last = int(found[3]) if found and found[3] else first if found and not found[2] else None
    if first < 1 or (last is not None and last < first):
        raise _BadArgument('lines is a text like "120-180": first and last line, from 1')
    return first, last


def _again(message: str, call: Call | None, limit: int) -> str:
    """The error with the call to run again, its input as far as the reply may hold it."""
    if call is None:
        return error(message)
    for chars in _AGAIN_CHARS:
        reply = error(message, run_again={"tool": call.tool[:_TOOL_CHARS], "arguments": call.arguments[:chars]})
        if len(reply) <= limit:
            return reply
    return error(message)
