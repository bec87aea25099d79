"""What a store holds, as lists: for the search index and for showing what a session has stored.

Functions over an open connection, as in `originals`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from ..errors import StoreError
from .database import from_sql, to_sql
from .originals import Original, load

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


def granted(connection: sqlite3.Connection, sessions: Collection[str]) -> int:
    """How many grants these sessions have."""
    count = 0
    for session in dict.fromkeys(sessions):
        (number,) = connection.execute("SELECT count(*) FROM grants WHERE session = ?", (to_sql(session),)).fetchone()
        count += number
    return count


def load_or_error(connection: sqlite3.Connection, pointer: str) -> Original | StoreError:
    """The original, or why it cannot be read."""
    try:
        return load(connection, pointer)
    except StoreError as error:
        return error


def _listed(row: tuple[object, ...]) -> Listed:
    match row:
        case (str() as pointer, session, tool, int() | None as chars, float() | int() as created):
            owner = None if session is None else from_sql(session)
            return Listed(pointer, owner, from_sql(tool), chars or 0, float(created))
    raise StoreError("a stored row is damaged")
