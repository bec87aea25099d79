"""What leaves the store, and when: by age, by size, and all that one session alone has.

Functions over an open connection; the caller owns the transaction. Live originals never leave by age or size: those a
session may open that was seen within the age limit, or that continues into one that was, and those whose pointers the
caller names because they stand in a conversation.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from .database import from_sql, to_sql

RECEIPT_SHARE = 0.1
"""Share of the size limit that receipts may take."""


@dataclass(frozen=True)
class Limits:
    """How old, in seconds since it was last used, and how big, in bytes of the file, the store may become."""

    max_age_s: float
    max_bytes: int


class Swept(NamedTuple):
    """What a sweep removed: pointers of originals, numbers of receipts and verdicts; `bytes` is what the file uses now,
    `finished` whether nothing was put off."""

    pointers: tuple[str, ...] = ()
    receipts: int = 0
    verdicts: int = 0
    bytes: int = 0
    finished: bool = True


class Candidate(NamedTuple):
    """An original that may leave, and when it was last cut (seconds since 1970): it stays if that changes."""

    pointer: str
    used: float


def live_sessions(connection: sqlite3.Connection, seen_since: float, more: Collection[str] = ()) -> set[str]:
    """The sessions seen since then and those of `more`, with all that they continue."""
    rows = connection.execute("SELECT session FROM sessions WHERE seen >= ?", (seen_since,))
    waiting = [*more, *(from_sql(session) for (session,) in rows)]
    above: dict[str, list[str]] = {}
    for child, parent in connection.execute("SELECT child, parent FROM lineage"):
        above.setdefault(from_sql(child), []).append(from_sql(parent))
    live: set[str] = set()
    while waiting:
        session = waiting.pop()
        if session not in live:
            live.add(session)
            waiting.extend(above.get(session, ()))
    return live


def candidates(
    connection: sqlite3.Connection, used_before: float, live: Collection[str], pointers: Collection[str]
) -> Iterator[Candidate]:
    """Originals last used before then that are not live, least recently used first."""
    rows = connection.execute(
        "SELECT o.pointer, o.used, g.session FROM originals o LEFT JOIN grants g ON g.pointer = o.pointer"
        " WHERE o.used < ? ORDER BY o.used, o.pointer",
        (used_before,),
    )
    for (pointer, used), granted in groupby(rows, key=itemgetter(0, 1)):
        sessions = (from_sql(session) for _, _, session in granted if session is not None)
        if pointer not in pointers and not any(session in live for session in sessions):
            yield Candidate(pointer, used)


def drop(connection: sqlite3.Connection, one: Candidate, live: Collection[str]) -> bool:
    """Remove an original if it is still as it was chosen; whether it was."""
    row = connection.execute("SELECT used FROM originals WHERE pointer = ?", (one.pointer,)).fetchone()
    granted = connection.execute("SELECT session FROM grants WHERE pointer = ?", (one.pointer,)).fetchall()
    if row != (one.used,) or any(from_sql(session) in live for (session,) in granted):
        return False
    remove_original(connection, one.pointer)
    return True


def remove_original(connection: sqlite3.Connection, pointer: str) -> None:
    """Remove one original with all that belongs to it; a content that another one has stays."""
    row = connection.execute("SELECT arguments_sha, result_sha FROM originals WHERE pointer = ?", (pointer,)).fetchone()
    for table in ("originals", "grants", "cuts", "keeps"):
        connection.execute(f"DELETE FROM {table} WHERE pointer = ?", (pointer,))
    for sha in row or ():
        connection.execute(
            "DELETE FROM contents WHERE sha = ?1 AND NOT EXISTS (SELECT 1 FROM originals WHERE arguments_sha = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM originals WHERE result_sha = ?1)",
            (sha,),
        )


def drop_records(
    connection: sqlite3.Connection, before: float, live: Collection[str], limits: Limits
) -> tuple[int, int]:
    """Remove old receipts and verdicts, receipts beyond their share of the size, and sessions with nothing left.

    The numbers of receipts and verdicts that left.
    """
    old = connection.execute("SELECT id, session FROM receipts WHERE created < ?", (before,)).fetchall()
    leaving = [(number,) for number, session in old if session is None or from_sql(session) not in live]
    receipts = connection.executemany("DELETE FROM receipts WHERE id = ?", leaving).rowcount if leaving else 0
    beyond = connection.execute(
        "SELECT max(id) FROM (SELECT id, sum(bytes) OVER (ORDER BY id DESC) AS total FROM receipts) WHERE total > ?",
        (int(limits.max_bytes * RECEIPT_SHARE),),
    ).fetchone()[0]
    receipts += connection.execute("DELETE FROM receipts WHERE id <= ?", (beyond or 0,)).rowcount
    verdicts = connection.execute("DELETE FROM verdicts WHERE created < ?", (before,)).rowcount
    edges = connection.execute("SELECT child, parent FROM lineage WHERE created < ?", (before,)).fetchall()
    dead = [edge for edge in edges if not {from_sql(name) for name in edge} & set(live)]
    connection.executemany("DELETE FROM lineage WHERE child = ? AND parent = ?", dead)
    connection.execute(
        "DELETE FROM sessions WHERE seen < ? AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.session = sessions.session)"
        " AND NOT EXISTS (SELECT 1 FROM lineage l WHERE l.child = sessions.session OR l.parent = sessions.session)",
        (before,),
    )
    return receipts, verdicts


class Purged(NamedTuple):
    """What a purge removed: pointers of originals and receipts; `shared` originals stay for others who have them."""

    pointers: tuple[str, ...] = ()
    shared: int = 0
    receipts: int = 0


def purge(connection: sqlite3.Connection, session: str) -> Purged:
    """Remove what only this session has, and every trace of it. What it continues stays linked to what continues it."""
    name = to_sql(session)
    mine = [pointer for (pointer,) in connection.execute("SELECT pointer FROM grants WHERE session = ?", (name,))]
    connection.execute("DELETE FROM grants WHERE session = ?", (name,))
    alone = [
        pointer
        for pointer in mine
        if not connection.execute("SELECT 1 FROM grants WHERE pointer = ?", (pointer,)).fetchone()
        and not connection.execute("SELECT 1 FROM originals WHERE pointer = ? AND shell", (pointer,)).fetchone()
    ]
    for pointer in alone:
        remove_original(connection, pointer)
    receipts = connection.execute("DELETE FROM receipts WHERE session = ?", (name,)).rowcount
    connection.execute("DELETE FROM outcomes WHERE session = ?", (name,))
    connection.execute(
        "INSERT OR IGNORE INTO lineage (child, parent, reason, created)"
        " SELECT down.child, up.parent, down.reason, down.created FROM lineage down, lineage up"
        " WHERE down.parent = ?1 AND up.child = ?1 AND down.child <> up.parent",
        (name,),
    )
    connection.execute("DELETE FROM lineage WHERE child = ?1 OR parent = ?1", (name,))
    connection.execute("DELETE FROM sessions WHERE session = ?", (name,))
    return Purged(tuple(alone), len(mine) - len(alone), receipts)


def used_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold something; the rest is free for what comes."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
