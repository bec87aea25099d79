"""What a check finds."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["ok", "note", "problem"]
Area = Literal["settings", "judge", "store", "hermes", "probe"]


class Finding(NamedTuple):
    """One sentence about one thing. A problem makes the whole unhealthy; `code` is a stable word for machines."""

    level: Level
    area: Area
    code: str
    text: str


def ok(area: Area, code: str, text: str) -> Finding:
    """As it should be."""
    return Finding("ok", area, code, text)


def note(area: Area, code: str, text: str) -> Finding:
    """Worth knowing, and no fault."""
    return Finding("note", area, code, text)


def problem(area: Area, code: str, text: str) -> Finding:
    """A fault, and what to do about it."""
    return Finding("problem", area, code, text)
