"""The lines of a text that look like facts: errors, exit codes, places in files, identifiers, definitions.

A line is worth what it shows, and one of each shape is enough: lines that differ in their numbers only count as one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LINE_CHARS = 200
"""Longer lines are passed over: one would take the place of all others."""

_SIGNS: tuple[tuple[int, re.Pattern[str]], ...] = (
    (4, re.compile(r"\b(?:\w*error|\w*exception|fail(?:ed|ure|ures|s)?|fatal|panic|traceback|denied)\b|✗|❌", re.I)),
    (3, re.compile(r"\bexit(?:ed)?[ _](?:code|status)\b|\bnot found\b|\bno such\b|\bwarn(?:ing)?\b|\bassert", re.I)),
    (2, re.compile(r"[\w/.-]+\.[a-z]{1,5}:\d+|\bline \d+\b")),
    (2, re.compile(r"\b(?=[0-9a-f-]*\d)(?=[0-9a-f-]*[a-f])[0-9a-f][0-9a-f-]{6,63}\b|\b[A-Z]{2,8}-\d+\b|#\d{3,}")),
    (1, re.compile(r"(?:[\w.@+-]+/)+[\w.@+-]+|\bhttps?://")),
    (1, re.compile(r"^\s*(?:async )?(?:def|class|func|function|fn|const|let|export|interface|type|struct)\s+\w")),
    (1, re.compile(r"^\s*[\w.\"' -]{2,40}\s*[:=]\s*\S")),
)
_DIGITS = re.compile(r"\d+")


class _Line(NamedTuple):
    worth: int
    place: int
    text: str


def fact_lines(text: str, budget: int) -> list[str]:
    """Whole lines of `text`, in order, that together hold at most `budget` characters; the most telling ones, and of
    equals the last."""
    best: dict[str, _Line] = {}
    for place, line in enumerate(text.splitlines()):
        words = line.strip()
        if not words or len(words) > LINE_CHARS:
            continue
        worth = sum(weight for weight, sign in _SIGNS if sign.search(words))
        shape = _DIGITS.sub("0", words)
        if worth and shape not in best:
            best[shape] = _Line(worth, place, words)
    chosen: list[_Line] = []
    left = budget
    for found in sorted(best.values(), key=lambda found: (-found.worth, -found.place)):
        if len(found.text) <= left:
            chosen.append(found)
            left -= len(found.text)
    return [found.text for found in sorted(chosen, key=lambda found: found.place)]
