"""Looking into the store from outside, by its files alone: what is there, how often, and is it whole."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from case_messages import text_of

_MAGIC = b"SQLite format 3\x00"


def files(folder: Path) -> list[Path]:
    """Every regular file under a folder, sorted; none if the folder is missing."""
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []


def databases(folder: Path) -> list[Path]:
    return [path for path in files(folder) if _starts_like_one(path)]


def _starts_like_one(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(_MAGIC)) == _MAGIC


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, read only."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    connection.text_factory = bytes
    try:
        yield connection
    finally:
        connection.close()


def is_index(path: Path) -> bool:
    """Whether a database is a full-text index: it can be made again from the originals."""
    with opened(path) as connection:
        kinds = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table'").fetchall()
    return any(sql and b"VIRTUAL TABLE" in sql.upper() for (sql,) in kinds)


def integrity(path: Path) -> list[str]:
    """What SQLite finds wrong with a database."""
    with opened(path) as connection:
        rows = [row[0].decode() for row in connection.execute("PRAGMA integrity_check")]
    return [] if rows == ["ok"] else rows


def _values(path: Path) -> Iterator[tuple[str, bytes]]:
    """(table, value) of every text and blob of a database."""
    with opened(path) as connection:
        names = [row[0].decode() for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            quoted = name.replace('"', '""')
            for row in connection.execute(f'SELECT * FROM "{quoted}"'):
                yield from ((name, value) for value in row if isinstance(value, bytes))


def _plain(value: bytes) -> bytes:
    try:
        return zlib.decompress(value)
    except zlib.error:
        return value


def stored(folder: Path) -> list[bytes]:
    """Every value in the store's databases and files, unpacked; the full-text index does not count, it holds copies."""
    found: list[bytes] = []
    named = databases(folder)
    for path in named:
        if not is_index(path):
            found.extend(_plain(value) for _, value in _values(path))
    beside = [path for path in files(folder) if path not in named and not path.name.endswith(("-wal", "-shm"))]
    return found + [_plain(path.read_bytes()) for path in beside]


def copies(folder: Path, contents: Iterable[Any]) -> int:
    """How many stored values hold the text of one of these contents."""
    texts = [text_of(content).encode("utf-8", "surrogatepass") for content in contents]
    return sum(any(text in value for text in texts) for value in stored(folder))


def receipts(folder: Path) -> list[Any]:
    """The bodies of the receipts, oldest first."""
    found: list[Any] = []
    for path in databases(folder):
        with opened(path) as connection:
            try:
                rows = connection.execute("SELECT body FROM receipts ORDER BY id").fetchall()
            except sqlite3.OperationalError:
                continue  # another kind of database has no such table
        found.extend(json.loads(body) for (body,) in rows)
    return found


def damage(folder: Path, how: str) -> None:
    """Do to the store's files what `how` says in words. Raises ValueError for words it does not know."""
    named = databases(folder)
    targets = [path for path in named if is_index(path)] if "index" in how else named
    # A store without an index of its own keeps everything in one file.
    targets = targets or named
    if not targets:
        raise ValueError("there is nothing to damage")
    for path in targets:
        data = path.read_bytes()
        if "zero" in how:
            path.write_bytes(bytes(100) + data[100:])
        elif "truncat" in how:
            path.write_bytes(data[: len(data) // 2])
        elif "delete" in how or "remove" in how:
            path.unlink()
        elif "garb" in how or "random" in how:
            path.write_bytes(bytes((byte * 7 + 31) % 256 for byte in data))
        else:
            raise ValueError(f"unknown damage: {how}")
