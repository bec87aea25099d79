"""Transcripts from files: what can be read, and what is said when it cannot.

A document is a JSON array of messages, an object with `messages`, or JSON lines of either (one message a line, or one
session a line, as `hermes sessions export` writes). What is written back has the shape that was read. A session file
of Claude Code is read as chat messages, and written as such.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from .claude_code import conversations, is_session
from .errors import InputError

ROLES = ("system", "developer", "user", "assistant", "tool", "function")

Shape = Literal["array", "object", "lines", "sessions"]


@dataclass(frozen=True)
class Document:
    """What was read. `parts` are lists of messages: one, or one a session. `frames` are the objects around them;
    `archived` are the rows of each that a host took out of the conversation before, which are written back first."""

    shape: Shape
    parts: tuple[list[Any], ...]
    frames: tuple[Mapping[str, Any], ...] = ()
    archived: tuple[Sequence[Any], ...] = ()

    def dump(self, parts: Sequence[list[Any]]) -> str:
        """The document with these messages in place of its own, as JSON text with a final newline."""
        archived = self.archived or ((),) * len(parts)
        if self.shape == "array":
            return to_json(parts[0]) + "\n"
        if self.shape == "object":
            return to_json({**self.frames[0], "messages": [*archived[0], *parts[0]]}) + "\n"
        if self.shape == "sessions":
            whole = ([*old, *part] for old, part in zip(archived, parts, strict=True))
            rows = [{**frame, "messages": part} for frame, part in zip(self.frames, whole, strict=True)]
        else:
            rows = parts[0]
        return "".join(to_json(row) + "\n" for row in rows)


def to_json(value: Any) -> str:
    """JSON as readable as it can be: characters as they are, escapes only where UTF-8 has no form for them."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text


def read_document(data: bytes, name: str) -> Document:
    """Parse bytes. Raises InputError with one line that names the file, the line and what is wrong."""
    text = _decode(data, name)
    if not text.strip():
        raise InputError(f"{name}: empty; a JSON array of messages is needed")
    start = text.lstrip()[0]
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if start == "{" and _is_json(lines[0][1]) and (len(lines) > 1 or is_session([json.loads(lines[0][1])])):
        return _from_lines(lines, name)
    value = _parse(text, name, 1)
    if isinstance(value, list):
        _check(value, name, lambda at: _line_of(text, at))
        return Document("array", (value,))
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        _check(value["messages"], name, lambda at: _line_of(text, at))
        return _framed("object", [value])
    if isinstance(value, dict) and "role" in value:
        _check([value], name, lambda _: lines[0][0])
        return Document("lines", ([value],))
    raise InputError(f"{name}: line {lines[0][0]}: a JSON array of messages, or an object with `messages`, is needed")


def _framed(shape: Shape, frames: Sequence[Mapping[str, Any]]) -> Document:
    """An export may list rows that are no longer part of the conversation, marked as not active."""

    def rows(frame: Mapping[str, Any], archived: bool) -> list[Any]:
        return [row for row in frame["messages"] if (row.get("active", 1) == 0) is archived]

    parts, aside = (tuple(rows(frame, archived) for frame in frames) for archived in (False, True))
    return Document(shape, parts, tuple(frames), aside)


def require_messages(messages: Any) -> None:
    """Raises InputError unless `messages` is a list of chat messages."""
    if not isinstance(messages, list):
        raise InputError(f"messages: a list is needed, not {type(messages).__name__}")
    _check(messages, "messages", None)


def _from_lines(lines: Iterable[tuple[int, str]], name: str) -> Document:
    rows = [(number, _parse(line, name, number)) for number, line in lines]
    if all(isinstance(row, dict) and isinstance(row.get("messages"), list) for _, row in rows):
        for number, row in rows:
            _check(row["messages"], name, lambda _, number=number: number)
        return _framed("sessions", [row for _, row in rows])
    values = [row for _, row in rows]
    if is_session(values):
        found = conversations(values)
        frames = tuple({"id": session} for session in found)
        return Document("sessions" if len(found) > 1 else "lines", tuple(found.values()), frames)
    _check(values, name, lambda at: rows[at][0])
    return Document("lines", (values,))


def _check(messages: Sequence[Any], name: str, line_of: Any) -> None:
    for at, message in enumerate(messages):
        problem = _problem(message)
        if problem:
            line = line_of(at) if line_of else None
            where = f"{name}: line {line}" if line else name
            raise InputError(f"{where}: message {at + 1}: {problem}")


def _problem(message: Any) -> str:
    if not isinstance(message, Mapping):
        return f"an object with a role is needed, not {_kind(message)}"
    role = message.get("role")
    if role is None:
        return "it has no role"
    if role not in ROLES:
        shown = role if isinstance(role, str) and len(role) <= 30 else _kind(role)
        return f"unknown role {shown!r}; known are {', '.join(ROLES)}"
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        return f"tool_calls is a list, not {_kind(calls)}"
    return ""


def _kind(value: Any) -> str:
    kinds = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"{name}: line {line}: not UTF-8 text") from None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:20]} is too large a number")
    return value


def _parse(text: str, name: str, line: int) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}: line {line + error.lineno - 1}: not JSON: {error.msg}") from None
    except ValueError as error:
        raise InputError(f"{name}: line {line}: not JSON: {error}") from None
    except RecursionError:
        raise InputError(f"{name}: line {line}: nested too deeply") from None


_GAP = re.compile(r"[\s,:]*")


def _line_of(text: str, index: int) -> int | None:
    """The line on which element `index` of the document's array of messages starts."""
    try:
        at = _messages_start(text)
        for _ in range(index):
            _, at = _value_at(text, at)
    except ValueError:
        return None
    return text.count("\n", 0, _skip(text, at)) + 1


def _messages_start(text: str) -> int:
    """Where the first message of an array, or of an object's own `messages`, may start."""
    at = _skip(text, 0)
    if text[at] == "[":
        return at + 1
    at += 1
    while True:
        key, at = _value_at(text, at)
        if key == "messages":
            return _skip(text, at) + 1
        _, at = _value_at(text, at)


def _value_at(text: str, at: int) -> tuple[Any, int]:
    return json.JSONDecoder().raw_decode(text, _skip(text, at))


def _skip(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at
