"""A text as pieces that can stand alone: its lines, and parts of lines that are too long to be shown whole.

Minified JSON, a page on one line, or an object printed with its line ends escaped have no short lines. They fall into
parts of at most `LONGEST` characters where a reader would break them: at an escaped line end, else after a separator,
else between words. Pieces are ranges of the text, in order; what lies between two of them is line ends and blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 200
"""Characters; a longer line is shown in parts."""

_SHORTEST = 40
_LINE = re.compile(r"[^\n]+")
# From the start of a run of backslashes only, or a long run would be tried from each of its places.
_ESCAPED_END = re.compile(r"(?<!\\)\\+(?:r\\*)?n")
_SEPARATOR = re.compile(r"[,;.|>\]})]\s|,|[;}\]>]|\s")


def pieces(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each piece of `text`, without blank ones. Linear."""
    for found in _LINE.finditer(text):
        start, end = found.span()
        if end - start > LONGEST:
            yield from _parts(text, start, end)
        elif not found[0].isspace():
            yield start, end


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """One long line, broken where a reader would break it."""
    begin = start
    for mark in _ESCAPED_END.finditer(text, start, end):
        yield from _short(text, begin, mark.start())
        begin = mark.end()
    yield from _short(text, begin, end)


def _short(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > LONGEST:
        stop = _break(text, start, start + LONGEST)
        yield from _solid(text, start, stop)
        start = stop
    yield from _solid(text, start, end)


def _break(text: str, start: int, limit: int) -> int:
    """After the last separator before `limit`, the strongest kind that leaves a part of some length. Two halves of a
    surrogate pair stay together."""
    best = 0
    strong = 0
    for found in _SEPARATOR.finditer(text, start + _SHORTEST, limit):
        best = found.end()
        if len(found[0]) == 2 or found[0] in ",;}]>":
            strong = best
    if strong or best:
        return strong or best
    return limit - 1 if "\udc00" <= text[limit] <= "\udfff" else limit


def _solid(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The range without the blanks around it, unless nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end
