"""The lines of a text that look like facts: errors, exit codes, places in files, identifiers, definitions.

A line is worth what it shows, and one of each shape is enough: lines that differ in their numbers only count as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LINE_CHARS = 200
"""Longer lines are passed over: one would take the place of all others."""


class _Sign(NamedTuple):
    """What a line may show, and what that is worth. Only a text in which one of `hints` stands is searched for it."""

    worth: int
    hints: tuple[str, ...]
    form: re.Pattern[str]


_SIGNS = (
    _Sign(
        4,
        ("error", "exception", "fail", "fatal", "panic", "traceback", "denied", "✗", "❌"),
        re.compile(r"\w*error\b|\w*exception\b|\bfail(?:ed|ure|ures|s)?\b|\b(?:fatal|panic|traceback|denied)\b|✗|❌"),
    ),
    _Sign(
        3,
        ("exit", "not found", "no such", "warn", "assert"),
        re.compile(r"\bexit(?:ed)?[ _](?:code|status)\b|\bnot found\b|\bno such\b|\bwarn(?:ing)?\b|\bassert"),
    ),
    _Sign(2, (":", "line "), re.compile(r"\.[a-z]{1,5}:\d|\bline \d")),
    _Sign(1, ("/",), re.compile(r"\w/\w|://")),
    _Sign(
        1,
        ("def ", "class ", "func", "fn ", "const ", "export ", "interface ", "struct "),
        re.compile(r"(?:async )?(?:def|class|func|function|fn|const|export|interface|struct)\s+\w"),
    ),
    _Sign(1, ("=", ": "), re.compile(r"^[\w.\"' -]{2,40}[:=]\s*\S")),
)
_ID = re.compile(r"\b[0-9a-f]{7,64}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-|\b[A-Z]{2,8}-\d|#\d{3}")
_ID_WORTH = 2
_NO_DIGITS = dict.fromkeys(range(ord("0"), ord("9") + 1))


class _Line(NamedTuple):
    worth: int
    place: int
    text: str


def fact_lines(text: str, budget: int) -> list[str]:
    """Whole lines of `text`, in order, that together hold at most `budget` characters; the most telling ones, and of
    equals the last."""
    chosen: list[_Line] = []
    left = budget
    for found in sorted(_found(text), key=lambda found: (-found.worth, -found.place)):
        if len(found.text) <= left:
            chosen.append(found)
            left -= len(found.text)
    return [found.text for found in sorted(chosen, key=lambda found: found.place)]


def _found(text: str) -> Iterator[_Line]:
    """The lines that show something, one of each shape."""
    shapes: set[str] = set()
    low = text.lower()
    signs = [sign for sign in _SIGNS if any(hint in low for hint in sign.hints)]
    for place, line in enumerate(text.splitlines()):
        words = line.strip()
        if not words or len(words) > LINE_CHARS:
            continue
        shape = words.translate(_NO_DIGITS)
        if shape in shapes:
            continue
        shapes.add(shape)
        if worth := _worth(words, signs, has_digits=shape != words):
            yield _Line(worth, place, words)


def _worth(words: str, signs: Sequence[_Sign], *, has_digits: bool) -> int:
    low = words.lower()
    worth = _ID_WORTH if has_digits and _ID.search(words) else 0
    return worth + sum(sign.worth for sign in signs if sign.form.search(low))
