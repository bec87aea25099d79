"""The store of originals: what was cut, byte for byte, and how to find it again.

One SQLite file holds the originals, who may open them, which text stands for which, the lineage of sessions, the
judge's verdicts and the receipts. An original is written, committed and read back before its text may be cut.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import NotStored, StoreError
from .database import PATIENCE_S, Database, Unavailable, faults, from_sql, to_sql
from .listing import Fingerprint, Listed, fingerprint, listed, load_or_error
from .originals import (
    NOT_STORED,
    Call,
    Keep,
    Kept,
    Original,
    Prepared,
    confirm,
    disagreements,
    load,
    load_behind,
    load_call,
    may_open,
    prepare,
    put,
)
from .values import is_pointer_id

FILE_NAME = "truth.sqlite3"

MAX_VERDICTS = 50_000
"""Rows of the verdict cache; the oldest beyond this leave."""

MAX_ANCESTORS = 1_000
"""Sessions an ancestry names at most."""


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


class Store:
    """The store in one folder. Making one does no work; folder and file come with the first write.

    It holds no open file and no lock, so it can be copied, pickled and used from any thread or process. Every method
    raises StoreError when the file cannot be used; a folder where nothing was stored yet is simply empty.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.time, patience_s: float = PATIENCE_S) -> None:
        self.folder = Path(folder)
        self.now = now
        self.patience_s = patience_s

    @property
    def path(self) -> Path:
        """The file of this store, which may not exist yet."""
        return self.folder / FILE_NAME

    def _database(self) -> Database:
        return Database(self.path, patience_s=self.patience_s)

    # Originals

    def keep(self, session: str | None, items: Sequence[Keep]) -> list[Kept | StoreError]:
        """Store originals and read them back; in the place of each item, what may stand for it or why nothing may.

        All go in one transaction. If that fails they go one by one, so that what fits is kept. `session` may open
        them from then on; None grants nothing. Storing the same exchange again adds no more than the grant.
        """
        prepared = [prepare(item) for item in items]
        if not any(isinstance(one, Prepared) for one in prepared):
            return [one for one in prepared if isinstance(one, StoreError)]
        try:
            written = self._write(session, prepared)
        except StoreError:
            written = self._write_singly(session, prepared)
        try:
            return self._confirm(session, items, written)
        except StoreError as error:
            return [error if isinstance(one, Kept) else one for one in written]

    def _write(self, session: str | None, prepared: Sequence[Prepared | StoreError]) -> list[Kept | StoreError]:
        created = self.now()
        written: list[Kept | StoreError] = []
        with self._database().writing() as connection:
            for one in prepared:
                try:
                    written.append(one if isinstance(one, StoreError) else put(connection, one, session, created))
                except StoreError as error:
                    written.append(error)
        return written

    def _write_singly(self, session: str | None, prepared: Sequence[Prepared | StoreError]) -> list[Kept | StoreError]:
        written: list[Kept | StoreError] = []
        unavailable: Unavailable | None = None
        for one in prepared:
            if unavailable is not None and isinstance(one, Prepared):
                written.append(unavailable)  # each further try could wait for the lock once more
                continue
            try:
                written.extend(self._write(session, [one]) if isinstance(one, Prepared) else [one])
            except StoreError as error:
                written.append(error)
                unavailable = error if isinstance(error, Unavailable) else None
        return written

    def _confirm(
        self, session: str | None, items: Sequence[Keep], written: Sequence[Kept | StoreError]
    ) -> list[Kept | StoreError]:
        checked = list(written)
        with self._database().reading() as connection:
            for place, (item, kept) in enumerate(zip(items, written, strict=True)):
                if isinstance(kept, StoreError):
                    continue
                try:
                    if connection is None:
                        raise StoreError(f"{FILE_NAME}: it is gone")
                    with faults(FILE_NAME):
                        confirm(connection, item, kept, session)
                except StoreError as error:
                    checked[place] = error
        return checked

    def get(self, pointer: str, sessions: Collection[str] | None) -> Original:
        """Give back the original behind a pointer, checked against its hash.

        With `sessions` None whoever asks may open it; else one of them must have been granted it. Raises NotStored,
        with one message for malformed, unknown and foreign, and StoreError for a damaged original.
        """
        if not is_pointer_id(pointer):
            raise NotStored(NOT_STORED)
        with self._database().reading() as connection:
            if connection is None or not (sessions is None or may_open(connection, pointer, sessions)):
                raise NotStored(NOT_STORED)
            return load(connection, pointer)

    def describe(self, pointer: str, sessions: Collection[str] | None) -> Call | None:
        """The call to run again when `get` failed, or None when it is not known either.

        The arguments are checked against their hash; the tool's name, without the result, cannot be.
        """
        if not is_pointer_id(pointer):
            return None
        try:
            with self._database().reading() as connection:
                if connection is None or not (sessions is None or may_open(connection, pointer, sessions)):
                    return None
                return load_call(connection, pointer)
        except StoreError:
            return None

    def original_of(self, text: Any) -> Original | None:
        """The original in whose place exactly this text stands, or None. Raises StoreError when it is damaged."""
        return self.originals_of([text]).get(0)

    def originals_of(self, texts: Iterable[Any]) -> dict[int, Original]:
        """As `original_of` for many texts at once: originals by the index of their text."""
        with self._database().reading() as connection:
            if connection is None:
                return {}
            found = ((index, load_behind(connection, text)) for index, text in enumerate(texts))
            return {index: original for index, original in found if original is not None}

    # What there is

    def listed(self, sessions: Collection[str] | None) -> list[Listed]:
        """Every original and who was granted it, oldest first: of some sessions, or of all when `sessions` is None."""
        with self._database().reading() as connection:
            return [] if connection is None else listed(connection, sessions)

    def fingerprint(self, sessions: Collection[str]) -> Fingerprint:
        """What tells whether a list of these sessions' originals is still complete."""
        with self._database().reading() as connection:
            return Fingerprint(0, 0) if connection is None else fingerprint(connection, sessions, "grants")

    def originals(self, pointers: Sequence[str], sessions: Collection[str] | None) -> list[Original | StoreError]:
        """As `get` for many: in the place of one that is gone, damaged or not for these sessions the error."""
        with self._database().reading() as connection:
            if connection is None:
                return [NotStored(NOT_STORED) for _ in pointers]
            return [load_or_error(connection, pointer, sessions) for pointer in pointers]

    # Lineage

    def link(self, child: str, parent: str, reason: str) -> None:
        """Record that session `child` continues session `parent`; again is no error.

        Raises StoreError when `child` is `parent` or comes before it.
        """
        with self._database().writing() as connection:
            if child in _ancestry(connection, parent):
                raise StoreError("a session cannot continue itself")
            connection.execute(
                "INSERT OR IGNORE INTO lineage (child, parent, reason, created) VALUES (?, ?, ?, ?)",
                (to_sql(child), to_sql(parent), to_sql(reason), self.now()),
            )

    def ancestry(self, session: str) -> list[str]:
        """The session and those it continues, nearest first, at most MAX_ANCESTORS of them."""
        with self._database().reading() as connection:
            return [session] if connection is None else _ancestry(connection, session)

    # Verdicts

    def verdicts(self, keys: Iterable[str]) -> dict[str, StoredVerdict]:
        """The verdicts that are stored under these keys."""
        found: dict[str, StoredVerdict] = {}
        with self._database().reading() as connection:
            if connection is None:
                return found
            for key in keys:
                row = connection.execute(
                    "SELECT call, output, stage, calls_seen, judge FROM verdicts WHERE key = ?", (to_sql(key),)
                ).fetchone()
                if row is not None:
                    found[key] = _verdict(row)
        return found

    def save_verdicts(self, verdicts: Mapping[str, StoredVerdict]) -> None:
        """Store verdicts, in place of older ones under the same keys."""
        if not verdicts:
            return
        created = self.now()
        rows = [
            (to_sql(key), one.call, one.output, to_sql(one.stage), one.calls_seen, to_sql(one.judge), created)
            for key, one in verdicts.items()
        ]
        with self._database().writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            # A replaced row gets a new number, so the numbers tell age even when the clock was set back.
            connection.execute(
                "DELETE FROM verdicts WHERE rowid IN"
                " (SELECT rowid FROM verdicts ORDER BY rowid DESC LIMIT -1 OFFSET ?)",
                (MAX_VERDICTS,),
            )

    # Receipts

    def add_receipt(self, session: str | None, body: str) -> int:
        """Append a receipt (JSON text) and return its number, which grows."""
        with self._database().writing() as connection:
            cursor = connection.execute(
                "INSERT INTO receipts (session, created, body) VALUES (?, ?, ?)",
                (None if session is None else to_sql(session), self.now(), to_sql(body)),
            )
            return cursor.lastrowid or 0

    def receipts(self, session: str | None = None, limit: int = 1_000) -> list[StoredReceipt]:
        """The newest receipts, newest first: of one session, or of all when `session` is None."""
        where, values = ("", ()) if session is None else ("WHERE session = ?", (to_sql(session),))
        with self._database().reading() as connection:
            if connection is None:
                return []
            rows = connection.execute(
                f"SELECT id, session, created, body FROM receipts {where} ORDER BY id DESC LIMIT ?",
                (*values, max(limit, 0)),
            )
            return [
                StoredReceipt(number, None if owner is None else from_sql(owner), created, from_sql(body))
                for number, owner, created, body in rows
            ]

    # Health

    def check(self) -> list[str]:
        """Hash everything again and return what disagrees, one line each; empty for a sound or empty store."""
        found: list[str] = []
        try:
            with self._database().reading() as connection:
                if connection is not None:
                    for line in disagreements(connection, FILE_NAME):
                        found.append(line)  # one by one, so that they outlive a fault further on
        except StoreError as error:
            found.append(str(error))
        return found


def _verdict(row: tuple[object, ...]) -> StoredVerdict:
    match row:
        case (float() | None as call, float() | None as output, stage, int() as calls_seen, judge):
            return StoredVerdict(call, output, from_sql(stage), calls_seen, from_sql(judge))
    raise StoreError("a stored verdict is damaged")


def _ancestry(connection: sqlite3.Connection, session: str) -> list[str]:
    """Level by level from the session upwards, each one once, whatever loops the table may hold."""
    line = {session: None}
    level = [session]
    while level and len(line) < MAX_ANCESTORS:
        above: list[str] = []
        for child in level:
            rows = connection.execute("SELECT parent FROM lineage WHERE child = ? ORDER BY created", (to_sql(child),))
            above.extend(from_sql(parent) for (parent,) in rows)
        level = [parent for parent in dict.fromkeys(above) if parent not in line]
        line.update(dict.fromkeys(level))
    return list(line)[:MAX_ANCESTORS]
