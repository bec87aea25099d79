"""Which session continues which, and when each was last in use. Functions over an open connection."""

from __future__ import annotations

import sqlite3

from .database import from_sql, to_sql

MAX_ANCESTORS = 1_000
"""Sessions an ancestry names at most."""


def seen(connection: sqlite3.Connection, session: str) -> float | None:
    """When the session was last in use (seconds since 1970); None when nothing is known of it."""
    row = connection.execute("SELECT seen FROM sessions WHERE session = ?", (to_sql(session),)).fetchone()
    return None if row is None else row[0]


def see(connection: sqlite3.Connection, session: str, now: float) -> None:
    """Note that the session is in use."""
    connection.execute("INSERT OR REPLACE INTO sessions (session, seen) VALUES (?, ?)", (to_sql(session), now))


def link(connection: sqlite3.Connection, child: str, parent: str, reason: str, now: float) -> bool:
    """Record that one continues the other; False, with nothing written, when that would close a ring."""
    if child in ancestry(connection, parent):
        return False
    connection.execute(
        "INSERT OR IGNORE INTO lineage (child, parent, reason, created) VALUES (?, ?, ?, ?)",
        (to_sql(child), to_sql(parent), to_sql(reason), now),
    )
    return True


def ancestry(connection: sqlite3.Connection, *sessions: str) -> list[str]:
    """Level by level from the sessions upwards, each one once, whatever loops the table may hold."""
    line = dict.fromkeys(sessions)
    level = list(line)
    while level and len(line) < MAX_ANCESTORS:
        above: list[str] = []
        for child in level:
            rows = connection.execute("SELECT parent FROM lineage WHERE child = ? ORDER BY created", (to_sql(child),))
            above.extend(from_sql(parent) for (parent,) in rows)
        level = [parent for parent in dict.fromkeys(above) if parent not in line]
        line.update(dict.fromkeys(level))
    return list(line)[:MAX_ANCESTORS]
