"""The input of a call, shortened: long values leave the JSON, short ones stay, and it is valid JSON as before.

Everything else keeps its bytes, since a value is replaced where it stands instead of writing the object anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from .policy import CLEARLY_SHORTER

LONG_CHARS = 400
"""A text of more characters leaves the input; so does what it stands for in JSON."""
LONG_VALUE_CHARS = 2_000
"""A list or object that is still longer once its long texts have left leaves too."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BLANK = re.compile(r"\s*")
_NOTICE = re.compile(
    r'"\[hermes_jev: [\d,]+ characters, stored: expand\(id=\\"(r-[a-z2-7]+)\\", part=\\"arguments\\"\)\]"'
)


class _Span(NamedTuple):
    start: int
    end: int
    value: Any


def shortened(arguments: str, pointer: str) -> str | None:
    """The input with its long values replaced by a notice that names `pointer`; None where it is no JSON object or
    would not be clearly shorter."""
    if len(arguments) <= CLEARLY_SHORTER + LONG_CHARS:
        return None
    try:
        members = list(_members(arguments))
    except (ValueError, RecursionError):
        return None
    parts: list[str] = []
    done = 0
    for member in members:
        parts += [arguments[done : member.start], _short(arguments[member.start : member.end], member.value, pointer)]
        done = member.end
    text = "".join((*parts, arguments[done:]))
    return text if len(arguments) - len(text) >= CLEARLY_SHORTER else None


def pointers_in(arguments: str) -> list[str]:
    """The pointers that notices in an input name, by their form."""
    return _NOTICE.findall(arguments) if "[hermes_jev: " in arguments else []


def _members(text: str) -> Iterator[_Span]:
    """Where each value of the object stands. Raises ValueError for anything but one JSON object."""
    if not isinstance(json.loads(text, parse_constant=_refuse), dict):
        raise ValueError("no object")
    decoder = json.JSONDecoder(parse_constant=_refuse)
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        _, at = decoder.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        value, end = decoder.raw_decode(text, start)
        yield _Span(start, end, value)
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _short(raw: str, value: Any, pointer: str) -> str:
    if isinstance(value, str):
        return _notice(len(value), pointer) if len(value) > LONG_CHARS else raw
    if len(raw) <= LONG_CHARS:
        return raw
    text = _STRING.sub(lambda found: _short_text(found, pointer), raw)
    return text if len(text) <= LONG_VALUE_CHARS else _notice(len(raw), pointer)


def _short_text(found: re.Match[str], pointer: str) -> str:
    raw = found[0]
    after = _skip(found.string, found.end())
    is_key = found.string[after : after + 1] == ":"
    if is_key or len(raw) <= LONG_CHARS + 2:
        return raw
    size = len(json.loads(raw))
    return _notice(size, pointer) if size > LONG_CHARS else raw


def _notice(size: int, pointer: str) -> str:
    return json.dumps(f'[hermes_jev: {size:,} characters, stored: expand(id="{pointer}", part="arguments")]')


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")
