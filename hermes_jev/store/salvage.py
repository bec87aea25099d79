"""What can still be read of a damaged file is carried over into the store that took its place.

Every original is proved by its hash before it is carried over; the tables around them are read as far as they go.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ..errors import StoreError
from .database import Database
from .faults import faults
from .migrations import APPLICATION_ID
from .originals import load

_BATCH = 200
_DONE = "salvaged:"

_WAYS = (
    "SELECT pointer FROM originals NOT INDEXED ORDER BY rowid",
    "SELECT pointer FROM originals NOT INDEXED ORDER BY rowid DESC",
    "SELECT pointer FROM originals ORDER BY pointer",
    "SELECT pointer FROM originals ORDER BY pointer DESC",
)
"""Ways to list the pointers: where one meets a damaged page, another comes from the other side."""

_AROUND = ("sessions", "lineage", "receipts", "verdicts")
_OF_A_POINTER = ("originals", "grants", "cuts")

_PAGE, _HEADER, _MAGIC = 4_096, 100, b"SQLite format 3\0"
_TREE_PAGES = (5, 13)


class Salvaged(NamedTuple):
    """How many originals are safe in the store, and whether the whole file was looked through."""

    originals: int
    finished: bool


def is_salvaged(database: Database, source: Path) -> bool:
    """Whether everything that can be read of `source` is in the store already."""
    with database.reading() as connection:
        found = connection and connection.execute("SELECT 1 FROM meta WHERE key = ?", (_DONE + source.name,)).fetchone()
        return bool(found)


def salvage(source: Path, database: Database, limit_s: float | None = None) -> Salvaged:
    """Carry over what `source` still holds, for about `limit_s` seconds at most; another call does the rest.

    Raises StoreError when the store in `database` cannot be written.
    """
    deadline = None if limit_s is None else time.monotonic() + limit_s
    with faults(source.name):
        _mend_header(source)
        damaged = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    with closing(damaged):
        for table in _AROUND:
            rows = _rows(damaged, f"SELECT * FROM {table}")
            while batch := list(islice(rows, _BATCH)):
                with database.writing() as connection:
                    _insert(connection, table, batch)
        found = _carry_originals(damaged, database, deadline)
    if found.finished:
        with database.writing() as connection:
            values = (_DONE + source.name, "")
            connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)", values)
    return found


def _carry_originals(damaged: sqlite3.Connection, database: Database, deadline: float | None) -> Salvaged:
    pointers = iter(dict.fromkeys(str(row["pointer"]) for way in _WAYS for row in _rows(damaged, way)))
    safe = 0
    while batch := list(islice(pointers, _BATCH)):
        if deadline is not None and time.monotonic() >= deadline:
            return Salvaged(safe, finished=False)
        with database.writing() as connection:
            for pointer in batch:
                safe += _carry(damaged, connection, pointer)
    return Salvaged(safe, finished=True)


def _carry(damaged: sqlite3.Connection, connection: sqlite3.Connection, pointer: str) -> bool:
    """Put one original with all that belongs to it into the store, unless it cannot be proved."""
    if connection.execute("SELECT 1 FROM originals WHERE pointer = ?", (pointer,)).fetchone() is None:
        if not _loads(damaged, pointer):
            return False
        for column in ("arguments_sha", "result_sha"):
            query = f"SELECT * FROM contents WHERE sha = (SELECT {column} FROM originals WHERE pointer = ?)"
            _insert(connection, "contents", _rows(damaged, query, pointer))
    for table in _OF_A_POINTER:
        _insert(connection, table, _rows(damaged, f"SELECT * FROM {table} WHERE pointer = ?", pointer))
    return True


def _loads(connection: sqlite3.Connection, pointer: str) -> bool:
    try:
        with faults(""):
            load(connection, pointer)
    except StoreError:
        return False
    return True


def _rows(connection: sqlite3.Connection, query: str, *values: str) -> Iterator[Mapping[str, object]]:
    """Rows as mappings, up to the first that cannot be read."""
    try:
        cursor = connection.execute(query, values)
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row, strict=True))
    except (sqlite3.Error, UnicodeDecodeError):
        return


def _insert(connection: sqlite3.Connection, table: str, rows: Iterable[Mapping[str, object]]) -> None:
    """Insert what is not there yet, in the columns that both files have."""
    known = {name for (_, name, *_) in connection.execute(f"PRAGMA table_info({table})")}
    for row in rows:
        names = [name for name in row if name in known]
        marks = ", ".join("?" * len(names))
        statement = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({marks})"
        connection.execute(statement, [row[name] for name in names])


def _mend_header(path: Path) -> None:
    """Where the first bytes alone are lost, write them anew: they are the same in every file of ours."""
    with path.open("r+b") as stream:
        start = stream.read(_HEADER + 1)
        size = stream.seek(0, 2)
        if start.startswith(_MAGIC) or len(start) <= _HEADER or size % _PAGE or start[_HEADER] not in _TREE_PAGES:
            return
        stream.seek(0)
        stream.write(_header())


def _header() -> bytes:
    """The header of a file in write-ahead mode whose number of pages is to be taken from its size."""
    fields = {16: (_PAGE, 2), 18: (0x0202, 2), 21: (0x402020, 3), 24: (1, 4), 40: (1, 4), 44: (4, 4), 56: (1, 4)}
    fields |= {68: (APPLICATION_ID, 4)}
    header = bytearray(_MAGIC.ljust(_HEADER, b"\0"))
    for offset, (value, length) in fields.items():
        header[offset : offset + length] = value.to_bytes(length, "big")
    return bytes(header)
