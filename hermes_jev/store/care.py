"""What keeps a store small and private over time: sweeps, purges, and what it says about itself.

Each function works in short transactions, so that no writer waits long for it.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ..errors import StoreError
from .database import Database, from_sql, to_sql
from .faults import faults
from .originals import Original, load
from .retention import (
    Candidate,
    Limits,
    Purged,
    Swept,
    candidates,
    drop,
    drop_records,
    live_sessions,
    purge,
    used_bytes,
)

InUse = Callable[[], Collection[str] | None]
"""Gives the pointers that stand in conversations outside this store, or None when that cannot be told now."""

_SWEPT = "swept"
_BATCH = 100
_CHOSEN_AT_ONCE = 2_000
_PAGES_AT_ONCE = 2_000
_RETRY_S = 0.02


@dataclass(frozen=True)
class Sweep:
    """One sweep. `now` is in seconds since 1970, `until` on the monotonic clock; `sessions` are live in any case."""

    database: Database
    limits: Limits
    now: float
    sessions: tuple[str, ...] = ()
    in_use: InUse | None = None
    until: float = math.inf

    @property
    def before(self) -> float:
        """What was last used before this is old."""
        return self.now - self.limits.max_age_s

    def run(self) -> Swept:
        """Remove what is old, then what is too much. Raises StoreError."""
        with self.database.reading() as connection:
            if connection is None:
                return Swept()
        dropped: list[str] = []
        finished = self._drop(self.before, lambda used: True, dropped)
        finished = finished and self._drop(math.inf, lambda used: used > self.limits.max_bytes, dropped)
        receipts, verdicts = self._records()
        finished = finished and self._give_room_back()
        with self.database.writing() as connection:
            if finished:
                connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (_SWEPT, repr(self.now)))
            left = used_bytes(connection)
        return Swept(tuple(dropped), receipts, verdicts, left, finished)

    def _drop(self, used_before: float, needed: Callable[[int], bool], dropped: list[str]) -> bool:
        """Remove originals, least recently used first, while the size makes it needed; whether that is done."""
        for chosen in self._chosen(used_before, needed):
            for start in range(0, len(chosen), _BATCH):
                if time.monotonic() >= self.until:
                    return False
                with self.database.writing() as connection:
                    live = live_sessions(connection, self.before, self.sessions)
                    for one in chosen[start : start + _BATCH]:
                        if not needed(used_bytes(connection)):
                            return True
                        if drop(connection, one, live):
                            dropped.append(one.pointer)
        return True

    def _chosen(self, used_before: float, needed: Callable[[int], bool]) -> Iterator[list[Candidate]]:
        """What may leave, some at a time. Conversations are looked into only when there is anything at all."""
        if not self._find(used_before, needed, (), 1):
            return
        in_use = () if self.in_use is None else self.in_use()
        if in_use is None:
            return  # not known now: better kept until the next sweep
        tried: set[str] = set(in_use)
        while chosen := self._find(used_before, needed, tried, _CHOSEN_AT_ONCE):
            tried.update(one.pointer for one in chosen)
            yield chosen

    def _find(
        self, used_before: float, needed: Callable[[int], bool], without: Collection[str], many: int
    ) -> list[Candidate]:
        with self.database.reading() as connection:
            if connection is None or not needed(used_bytes(connection)):
                return []
            live = live_sessions(connection, self.before, self.sessions)
            return list(islice(candidates(connection, used_before, live, without), many))

    def _records(self) -> tuple[int, int]:
        with self.database.writing() as connection:
            live = live_sessions(connection, self.before, self.sessions)
            return drop_records(connection, self.before, live, self.limits)

    def _give_room_back(self) -> bool:
        """Shorten the file by its free pages, a few at a time; whether that is done."""
        while True:
            with self.database.tending() as connection:
                (free,) = connection.execute("PRAGMA freelist_count").fetchone()
                (kind,) = connection.execute("PRAGMA auto_vacuum").fetchone()
                if not free or not kind:
                    break
                connection.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
            if time.monotonic() >= self.until:
                return False
        empty_log(self.database, patience_s=0)
        return True


def last_sweep(database: Database) -> float | None:
    """When a sweep was last finished, in seconds since 1970; None for never. Raises StoreError."""
    with database.reading() as connection:
        if connection is None:
            return None
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (_SWEPT,)).fetchone()
    try:
        return None if row is None else float(row[0])
    except ValueError:
        return None


def empty_log(database: Database, patience_s: float) -> bool:
    """Bring the write-ahead log into the file and cut it to nothing; False while another process reads."""
    until = time.monotonic() + patience_s
    while True:
        with database.tending() as connection:
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(_RETRY_S)


def purge_session(database: Database, session: str) -> Purged:
    """Remove what this session alone has, then write the file anew, so that no page holds what was removed.

    Raises StoreError; when the removal is done but its traces could not be overwritten, that is what it says.
    """
    with database.writing() as connection:
        purged = purge(connection, session)
    rewrite(database)
    return purged


def rewrite(database: Database) -> None:
    """Write the whole file anew without its free room, and empty its log. Raises StoreError."""
    try:
        with database.tending() as connection:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            # Rows that were moved leave copies in the pages they came from; only a new file is sure to have none.
            connection.execute("VACUUM")
    except StoreError as error:
        raise StoreError(f"what was removed could not be overwritten yet ({error}); run it again") from error
    if not empty_log(database, database.patience_s):
        raise StoreError("what was removed is still in the log, which another process reads; run it again")


class Stats(NamedTuple):
    """Numbers of a store. `chars` are those of all results and inputs, `bytes` the file's, `used_bytes` without its
    free room, `log_bytes` its write-ahead log's. `oldest`, `newest` (when originals were stored) and `swept` (when a
    sweep was last finished) are seconds since 1970, None for never."""

    originals: int = 0
    contents: int = 0
    chars: int = 0
    sessions: int = 0
    receipts: int = 0
    verdicts: int = 0
    bytes: int = 0
    used_bytes: int = 0
    log_bytes: int = 0
    oldest: float | None = None
    newest: float | None = None
    swept: float | None = None


def stats(database: Database) -> Stats:
    """Count what is there. Raises StoreError."""
    with database.reading() as connection:
        if connection is None:
            return Stats()
        spans = connection.execute("SELECT count(*), min(created), max(created) FROM originals").fetchone()
        originals, oldest, newest = spans
        contents, chars = connection.execute("SELECT count(*), coalesce(sum(chars), 0) FROM contents").fetchone()
        sessions, receipts, verdicts = (
            connection.execute(f"SELECT count({what}) FROM {table}").fetchone()[0]
            for what, table in (("DISTINCT session", "grants"), ("*", "receipts"), ("*", "verdicts"))
        )
        used = used_bytes(connection)
    log = database.path.with_name(f"{database.path.name}-wal")
    return Stats(
        *(originals, contents, chars, sessions, receipts, verdicts),
        bytes=database.path.stat().st_size,
        used_bytes=used,
        log_bytes=log.stat().st_size if log.exists() else 0,
        oldest=oldest,
        newest=newest,
        swept=last_sweep(database),
    )


class Stored(NamedTuple):
    """An original for an export: its pointer, when it was stored (seconds since 1970), whose it is, and it or why it
    cannot be read."""

    id: str
    created: float
    sessions: tuple[str, ...]
    original: Original | StoreError


def each(database: Database, session: str | None) -> Iterator[Stored]:
    """Every original, or those of one session, as they were stored. Raises StoreError when the file cannot be read."""
    where, values = ("", ()) if session is None else (_OF_SESSION, (to_sql(session),))
    with database.reading() as connection:
        if connection is None:
            return
        listed = connection.execute(f"SELECT pointer, created FROM originals {where} ORDER BY rowid", values).fetchall()
    for start in range(0, len(listed), _BATCH):
        with database.reading() as connection:
            if connection is None:
                return
            found = [_stored(connection, pointer, created) for pointer, created in listed[start : start + _BATCH]]
        yield from found


_OF_SESSION = "WHERE pointer IN (SELECT pointer FROM grants WHERE session = ?)"


def _stored(connection: sqlite3.Connection, pointer: str, created: float) -> Stored:
    granted = connection.execute("SELECT session FROM grants WHERE pointer = ? ORDER BY created", (pointer,)).fetchall()
    sessions = tuple(from_sql(session) for (session,) in granted)
    try:
        with faults(pointer):
            return Stored(pointer, created, sessions, load(connection, pointer))
    except StoreError as error:
        return Stored(pointer, created, sessions, error)
