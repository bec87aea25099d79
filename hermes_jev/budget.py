"""A byte budget over units of turns: what stays, and the digest of what does not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .turns import Turn

DIGEST_SHARE = 4
"""The digest takes at most one such part of what is left of the budget."""


@dataclass(frozen=True)
class Unit:
    """Turns that live or die together. `value` is in [0, 1]; `protected` ones always stay."""

    members: tuple[int, ...]
    size: int
    value: float
    protected: bool

    @property
    def newest(self) -> int:
        """The index of its last turn."""
        return self.members[-1]


def spend(units: Sequence[Unit], target_bytes: int) -> tuple[set[int], int]:
    """Indices of the turns that stay, and the bytes left of the budget (negative when what is protected alone is over
    it). By value, then the newer first; a unit that does not fit is passed over for smaller ones."""
    kept: set[int] = set()
    left = target_bytes
    for unit in units:
        if unit.protected:
            kept.update(unit.members)
            left -= unit.size
    for unit in sorted(units, key=lambda unit: (-unit.value, -unit.newest)):
        if not unit.protected and unit.size <= left:
            kept.update(unit.members)
            left -= unit.size
    return kept, left


def digest_of(omitted: Iterable[Turn], values: Mapping[int, float], room: int) -> str:
    """Whole lines of omitted turns, best turn first, within `room` UTF-8 bytes; empty when none fits."""
    turns = sorted(omitted, key=lambda turn: (-values.get(turn.index, 0.0), -turn.index))
    if not turns:
        return ""
    lines = [f"[{len(turns):,} messages were left out; lines from them, the most valuable first]"]
    used = _bytes(lines[0])
    for turn in turns:
        for number, line in enumerate(line for line in turn.shown.splitlines() if line.strip()):
            entry = f"{turn.role}: {line}" if number == 0 else f"  {line}"
            size = _bytes(entry) + 1
            if used + size > room:
                break
            lines.append(entry)
            used += size
        if used + 16 > room:
            break
    return "\n".join(lines) if len(lines) > 1 else ""


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def digest_place(dropped: Iterable[int], units: Sequence[Unit], kept: set[int]) -> int:
    """The index before which the digest stands: that of the first dropped turn, or of the surviving unit around it,
    since nothing may come between a call and its results."""
    place = min(dropped)
    moved = True
    while moved:
        moved = False
        for unit in units:
            if unit.members[0] < place <= unit.newest and unit.members[0] in kept:
                place, moved = unit.members[0], True
    return place
