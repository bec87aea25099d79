"""The digest of a selection: kept turns whole, the gist of others, nothing of the rest, within a size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from .notice import excerpt
from .turns import Turn

Fate = Literal["keep", "summarize", "drop"]

GIST_CHARS = 400
_GAP = "\n\n"


def digest(turns: Sequence[Turn], fates: Mapping[int, Fate], limit: int) -> str:
    """`[KEEP VERBATIM] role: text` and `[background] role: first 400 characters […]`, blank-line joined, oldest first,
    at most `limit` characters. What does not fit leaves whole, the oldest background turns first, then the oldest kept
    ones; the first line says how many left."""
    entries = {turn.index: _entry(turn, fates[turn.index]) for turn in turns if fates.get(turn.index, "drop") != "drop"}
    going = sorted(entries, key=lambda index: (fates[index] == "keep", index))
    size = sum(len(entry) for entry in entries.values()) + len(_GAP) * max(0, len(entries) - 1)
    gone = 0
    for index in going:
        if size + _line_room(gone) <= limit:
            break
        size -= len(entries.pop(index)) + len(_GAP)
        gone += 1
    lines = [entries[index] for index in sorted(entries)]
    if gone:
        lines.insert(0, _left(gone))
    text = _GAP.join(lines)
    return text if len(text) <= limit else ""


def _left(count: int) -> str:
    return f"[{count:,} earlier turns left out to fit]" if count > 1 else "[1 earlier turn left out to fit]"


def _line_room(gone: int) -> int:
    return len(_left(gone)) + len(_GAP) if gone else 0


def _entry(turn: Turn, fate: Fate) -> str:
    if fate == "keep":
        return f"[KEEP VERBATIM] {turn.role}: {turn.text}"
    start = excerpt(turn.text, GIST_CHARS)
    return f"[background] {turn.role}: {start}" + (" […]" if len(start) < len(turn.text) else "")
