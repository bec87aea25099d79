"""What came of cuts, counted: how many were wanted again, by tool and by score, and what remains of the saving."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from .calibration import BANDS, band_of
from .receipts import Receipt
from .store.outcomes import OutcomeRow

LOWER_BOUND = (
    "Wanted again: fetched with expand, or the same call made again with nothing written in between. What was missed "
    "and not asked for leaves no trace, so these are lower bounds of what was cut wrongly."
)


class Cell(NamedTuple):
    """The cuts of one kind, and how many of them were wanted again, in which way."""

    name: str
    cuts: int
    expanded: int
    repeated: int

    @property
    def rate(self) -> float:
        """Share of the cuts that were wanted again."""
        return (self.expanded + self.repeated) / self.cuts if self.cuts else 0.0


class Saving(NamedTuple):
    """Characters. `freed` by cuts; `returned` by those that were wanted again, each once with its whole original;
    `unknown` cuts have no receipt any more, and count in neither."""

    freed: int
    returned: int
    unknown: int

    @property
    def net(self) -> int:
        """What remains."""
        return self.freed - self.returned


class Regrets(NamedTuple):
    """All cuts together, by tool (the most cut first) and by score band (lowest first), and the saving."""

    total: Cell
    tools: tuple[Cell, ...]
    bands: tuple[Cell, ...]
    saving: Saving

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "total": _plain(self.total),
            "tools": [_plain(cell) for cell in self.tools],
            "bands": [_plain(cell) for cell in self.bands],
            "characters": {**self.saving._asdict(), "net": self.saving.net},
            "note": LOWER_BOUND,
        }


def _plain(cell: Cell) -> dict[str, Any]:
    return {**cell._asdict(), "rate": round(cell.rate, 6)}


def regrets(rows: Sequence[tuple[str, OutcomeRow]], receipts: Iterable[Receipt]) -> Regrets:
    """Count rows (pointer, outcome). `receipts` say how much each cut freed."""
    found = [row for _, row in rows]
    tools = _cells(found, lambda row: row.tool)
    bands = _cells(found, lambda row: -1 if row.score is None else band_of(row.score))
    return Regrets(
        total=_cell("all", found),
        tools=tuple(_cell(name, own) for name, own in sorted(tools.items(), key=lambda one: (-len(one[1]), one[0]))),
        bands=tuple(_cell(band_name(band), own) for band, own in sorted(bands.items())),
        saving=_saving(rows, receipts),
    )


def band_name(band: int) -> str:
    """A score band in words; -1 are cuts that a rule or the window ladder made."""
    if band < 0:
        return "by rule"
    edges = (0.0, *BANDS, 1.0)
    return f"{edges[band]:g} to {edges[band + 1]:g}"


def _cells(rows: Sequence[OutcomeRow], key: Callable[[OutcomeRow], Any]) -> dict[Any, list[OutcomeRow]]:
    found: dict[Any, list[OutcomeRow]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _cell(name: str, rows: Sequence[OutcomeRow]) -> Cell:
    ways = Counter(row.regret for row in rows)
    return Cell(name, len(rows), ways["expand"], ways["again"])


def _saving(rows: Sequence[tuple[str, OutcomeRow]], receipts: Iterable[Receipt]) -> Saving:
    sizes: dict[str, tuple[int, int]] = {}
    for receipt in receipts:
        for one in receipt.decisions:
            if one.pointer and one.action in ("truncate", "remove", "drop"):
                before, after = sizes.get(one.pointer, (0, one.chars_after))
                sizes[one.pointer] = max(before, one.chars_before), min(after, one.chars_after)
    freed = returned = unknown = 0
    for pointer, row in rows:
        if pointer not in sizes:
            unknown += 1
            continue
        before, after = sizes[pointer]
        freed += before - after
        returned += before if row.regret else 0
    return Saving(freed, returned, unknown)
