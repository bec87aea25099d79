"""`jev stats`: what came of cuts."""

from __future__ import annotations

import json
from typing import Any

from ..receipts import Receipt
from ..replay import read_receipts
from ..stats import LOWER_BOUND, Cell, Regrets, regrets
from ..store import Store
from ..store.outcomes import outcomes_by_pointer
from .common import NOTHING, OK, Commands, add_command, out, say, store_argument
from .store import each_store


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "stats",
        "Count what came of cuts: how many were wanted again, by tool and score, and what remains of the saving.",
        "jev stats",
        _run,
    )
    store_argument(command)
    command.add_argument("--json", action="store_true", help="one JSON object a store, a line each")


def _run(arguments: Any) -> int:
    def show(store: Store) -> int:
        rows = outcomes_by_pointer(store)
        if not rows:
            say(f"{store.folder}: no cuts on record")
            return NOTHING
        passes = [one for one in read_receipts(str(store.folder)) if isinstance(one, Receipt)]
        found = regrets(rows, passes)
        if arguments.json:
            out(json.dumps({"folder": str(store.folder), **found.to_dict()}) + "\n")
        else:
            out(f"{store.folder}\n{_described(found)}")
        return OK

    code = each_store(arguments, show)
    if not arguments.json:
        say(LOWER_BOUND)
    return code


def _described(found: Regrets) -> str:
    lines = [_HEAD.format("", "cuts", "fetched", "repeated", "again"), _row(found.total)]
    for title, cells in (("tool", found.tools), ("score (output needed)", found.bands)):
        lines += [f"  {title}", *(_row(cell) for cell in cells)]
    saving = found.saving
    lines.append(
        f"  characters: {saving.freed:,} freed, {saving.returned:,} wanted again at most, {saving.net:,} remain"
    )
    if saving.unknown:
        lines.append(f"  {saving.unknown:,} cuts have no receipt any more and count in no characters")
    return "\n".join(lines) + "\n"


_HEAD = "  {:<28}{:>8}{:>9}{:>10}{:>8}"


def _row(cell: Cell) -> str:
    name = cell.name if len(cell.name) <= 26 else cell.name[:25] + "…"
    return _HEAD.format(f"  {name}", f"{cell.cuts:,}", f"{cell.expanded:,}", f"{cell.repeated:,}", f"{cell.rate:.1%}")
