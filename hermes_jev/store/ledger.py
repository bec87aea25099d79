"""What judges said and what passes did. Functions over an open connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..errors import StoreError
from .database import from_sql, to_sql

MAX_VERDICTS = 50_000
"""Rows of the verdict cache; the oldest beyond this leave."""


class StoredVerdict(NamedTuple):
    """P(call still matters) and P(output still needed), None where unanswered, and how the judge saw the exchange."""

    call: float | None
    output: float | None
    stage: str
    calls_seen: int
    judge: str


class StoredReceipt(NamedTuple):
    """One receipt: its number in this store, its session, when (seconds since 1970), its JSON text."""

    id: int
    session: str | None
    created: float
    body: str


def verdicts(connection: sqlite3.Connection, keys: Iterable[str]) -> dict[str, StoredVerdict]:
    """The verdicts under these keys. Raises StoreError for a damaged one."""
    found: dict[str, StoredVerdict] = {}
    for key in keys:
        row = connection.execute(
            "SELECT call, output, stage, calls_seen, judge FROM verdicts WHERE key = ?", (to_sql(key),)
        ).fetchone()
        if row is not None:
            found[key] = _verdict(row)
    return found


def save_verdicts(connection: sqlite3.Connection, verdicts: Mapping[str, StoredVerdict], created: float) -> None:
    """Put verdicts in place of older ones, and let the oldest go."""
    rows = [
        (to_sql(key), one.call, one.output, to_sql(one.stage), one.calls_seen, to_sql(one.judge), created)
        for key, one in verdicts.items()
    ]
    connection.executemany("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    # A replaced row gets a new number, so the numbers tell age even when the clock was set back.
    connection.execute(
        "DELETE FROM verdicts WHERE rowid IN (SELECT rowid FROM verdicts ORDER BY rowid DESC LIMIT -1 OFFSET ?)",
        (MAX_VERDICTS,),
    )


def add_receipt(connection: sqlite3.Connection, session: str | None, body: str, created: float) -> int:
    """Append a receipt; its number."""
    cursor = connection.execute(
        "INSERT INTO receipts (session, created, body, bytes) VALUES (?, ?, ?, ?)",
        (None if session is None else to_sql(session), created, to_sql(body), len(body)),
    )
    return cursor.lastrowid or 0


def receipts(connection: sqlite3.Connection, session: str | None, limit: int) -> list[StoredReceipt]:
    """The newest receipts of a session, or of all."""
    where, values = ("", ()) if session is None else ("WHERE session = ?", (to_sql(session),))
    rows = connection.execute(
        f"SELECT id, session, created, body FROM receipts {where} ORDER BY id DESC LIMIT ?", (*values, max(limit, 0))
    )
    return [
        StoredReceipt(number, None if owner is None else from_sql(owner), created, from_sql(body))
        for number, owner, created, body in rows
    ]


def _verdict(row: tuple[object, ...]) -> StoredVerdict:
    match row:
        case (float() | None as call, float() | None as output, stage, int() as calls_seen, judge):
            return StoredVerdict(call, output, from_sql(stage), calls_seen, from_sql(judge))
    raise StoreError("a stored verdict is damaged")
