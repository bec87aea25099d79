"""The store is kept within its limits: on demand, and by the engine once a day after a pass, for a moment.

What stands in a conversation that Hermes keeps never leaves: its rows are read, never written.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
import time
from collections.abc import Collection, Iterable
from contextlib import closing
from pathlib import Path

from .drops import RECORD_TOOL
from .errors import StoreError
from .settings import Settings
from .store import Limits, Store, Swept
from .store.keeps import kept_whole

DAY_S = 86_400.0
BOUND_S = 0.3
"""Seconds that a user may wait for the daily removal; what it puts off is done after the next pass."""

LOOK_S = 2.0
"""Seconds that a user may wait, once a day and only when something is old, for the look into Hermes' conversations."""

_STEPS = 10_000
"""Steps of SQLite's machine between two looks at the clock: some milliseconds."""

_POINTER = re.compile(r"r-[a-z2-7]{10,52}")


def limits(settings: Settings) -> Limits:
    """The limits that the settings name."""
    return Limits(settings.store_max_age_days * DAY_S, settings.store_max_bytes)


def tend(
    store: Store, settings: Settings, sessions: Collection[str], homes: Iterable[Path], limit_s: float | None = None
) -> Swept | None:
    """Remove what is older or more than the settings allow, but nothing that is live.

    `sessions` are in use now; `homes` are Hermes homes whose conversations may name pointers; `limit_s` bounds the time
    in seconds. None when the store cannot be used now, which it says.
    """
    asked = list(homes)

    def live() -> Collection[str] | None:
        found = in_use(store, asked, None if limit_s is None else LOOK_S)
        if found is None:
            store.say("Hermes' conversations could not be read (in time): nothing old was removed; see jev store gc")
        return found

    try:
        return store.sweep(limits(settings), live, [name for name in sessions if name], limit_s)
    except StoreError as error:
        store.say(f"the store was not tended: {error}")
        return None


def tend_daily(store: Store, settings: Settings, sessions: Collection[str], homes: Iterable[Path]) -> Swept | None:
    """As `tend`, for a moment, when the last sweep that was finished is a day old; else None."""
    try:
        last = store.swept()
    except StoreError:
        return None  # the pass before this has said what is wrong with the store
    # A clock that was set back makes the last sweep lie ahead.
    if last is not None and abs(store.now() - last) < DAY_S:
        return None
    return tend(store, settings, sessions, homes, BOUND_S)


def in_use(store: Store, homes: Iterable[Path], limit_s: float | None = None) -> frozenset[str] | None:
    """The pointers that conversations of these homes name, themselves or by a record of turns that left, and those that
    a person wants whole; None when a conversation cannot be read, or not within `limit_s` seconds."""
    found = standing(homes, limit_s)
    return None if found is None else found | kept_whole(store) | _of_turns(store, found)


def standing(homes: Iterable[Path], limit_s: float | None = None) -> frozenset[str] | None:
    """The pointers in active rows of these homes' conversations; None when one of them cannot be read, or not within
    `limit_s` seconds."""
    deadline = math.inf if limit_s is None else time.monotonic() + limit_s
    found: set[str] = set()
    for home in homes:
        database = home / "state.db"
        if not database.is_file():
            continue
        try:
            found.update(_pointers(database, deadline))
        except sqlite3.Error:
            return None
    return frozenset(found)


def _of_turns(store: Store, found: Collection[str]) -> frozenset[str]:
    """The pointers of turns that left whole and are named in a conversation: a line names a few of them, the record
    behind it all."""
    records = [one.pointer for one in store.listed(None) if one.tool == RECORD_TOOL]
    more: set[str] = set()
    for pointer, original in zip(records, store.originals(records, None), strict=True):
        if isinstance(original, StoreError):
            continue
        named = set(_POINTER.findall(json.dumps(original.result)))
        if not named.isdisjoint(found):
            more |= {pointer, *named}
    return frozenset(more)


def _pointers(database: Path, deadline: float) -> set[str]:
    address = f"{database.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=1, isolation_level=None)) as connection:
        connection.text_factory = bytes
        connection.set_progress_handler(lambda: time.monotonic() >= deadline, _STEPS)
        # instr() looks behind the NUL with which the host marks content that is not text; LIKE would stop there.
        # A shortened input stands in the call itself.
        rows = connection.execute(
            "SELECT content, tool_calls FROM messages WHERE active = 1"
            " AND (instr(content, 'hermes_jev: ') > 0 OR instr(tool_calls, 'hermes_jev: ') > 0)"
        )
        texts = (cell.decode("utf-8", "replace") for row in rows for cell in row if isinstance(cell, bytes))
        return {pointer for text in texts for pointer in _POINTER.findall(text)}
