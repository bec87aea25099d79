"""What a store holds, as lists: for the search index and for showing what a session has stored.

Functions over an open connection, as in `originals`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Literal, NamedTuple

from ..errors import NotStored, StoreError
from .database import from_sql, to_sql
from .originals import NOT_STORED, Original, load, may_open

_AT_ONCE = 500


class Listed(NamedTuple):
    """One original as a session has it: its pointer, that session (None when nobody was granted it), the tool, the
    characters of the result, and when it was stored (seconds since 1970)."""

    pointer: str
    session: str | None
    tool: str
    chars: int
    created: float


_COLUMNS = (
    "SELECT o.pointer, g.session, o.tool, c.chars, coalesce(g.created, o.created) FROM originals o"
    " {join} grants g ON g.pointer = o.pointer LEFT JOIN contents c ON c.sha = o.result_sha"
)


def listed(connection: sqlite3.Connection, sessions: Collection[str] | None) -> list[Listed]:
    """Oldest first. Raises StoreError for a damaged row."""
    rows: list[tuple[object, ...]] = []
    if sessions is None:
        rows = connection.execute(_COLUMNS.format(join="LEFT JOIN")).fetchall()
    else:
        names = [to_sql(session) for session in dict.fromkeys(sessions)]
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            where = f" WHERE g.session IN ({','.join('?' * len(some))})"
            rows += connection.execute(_COLUMNS.format(join="JOIN") + where, some).fetchall()
    return sorted((_listed(row) for row in rows), key=lambda one: (one.created, one.pointer))


class Fingerprint(NamedTuple):
    """How many outputs sessions have, and a sum that changes with which ones; 0 for many, where it would take long."""

    outputs: int
    checksum: int


_SUMMED_UP_TO = 2_000
_SUM = "cast(created * 1000 AS INTEGER) + 31 * unicode(substr(pointer, 3)) + 961 * unicode(substr(pointer, 4))"


def fingerprint(
    connection: sqlite3.Connection, sessions: Collection[str], table: Literal["grants", "outputs"]
) -> Fingerprint:
    """Of a table of the truth or of the index, which have it in common when they hold the same outputs."""
    names = [to_sql(session) for session in dict.fromkeys(sessions)]
    counts = (connection.execute(f"SELECT count(*) FROM {table} WHERE session = ?", (name,)) for name in names)
    count = sum(rows.fetchone()[0] for rows in counts)
    if count > _SUMMED_UP_TO:
        return Fingerprint(count, 0)
    sums = (connection.execute(f"SELECT sum({_SUM}) FROM {table} WHERE session = ?", (name,)) for name in names)
    return Fingerprint(count, sum(rows.fetchone()[0] or 0 for rows in sums))


def load_or_error(
    connection: sqlite3.Connection, pointer: str, sessions: Collection[str] | None
) -> Original | StoreError:
    """The original, or why it cannot be read; NotStored when none of the sessions may open it."""
    try:
        if not (sessions is None or may_open(connection, pointer, sessions)):
            raise NotStored(NOT_STORED)
        return load(connection, pointer)
    except StoreError as error:
        return error


def _listed(row: tuple[object, ...]) -> Listed:
    match row:
        case (str() as pointer, session, tool, int() | None as chars, float() | int() as created):
            owner = None if session is None else from_sql(session)
            return Listed(pointer, owner, from_sql(tool), chars or 0, float(created))
    raise StoreError("a stored row is damaged")
