"""The store: where it is, how large, sound or not, and whether it can be written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import StoreError
from ..store import FILE_NAME, Store
from ..store.database import Database
from .findings import Finding, note, ok, problem

_PATIENCE_S = 3.0


def check(store: Store) -> list[Finding]:
    """Nothing is created, and what is there is read only."""
    return [*_contents(store), *_writable(store.folder), *_private(store)]


def _contents(store: Store) -> Iterator[Finding]:
    try:
        with Database(store.path, patience_s=_PATIENCE_S).reading() as connection:
            if connection is None:
                yield ok("store", "empty", f"{store.folder}: nothing is stored yet")
                return
            said = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
            count, chars = connection.execute(
                "SELECT (SELECT count(*) FROM originals), (SELECT coalesce(sum(chars), 0) FROM contents)"
            ).fetchone()
    except StoreError as error:
        yield problem("store", "unusable", f"{store.folder}: {error}")
        return
    if said != ["ok"]:
        yield problem("store", "damaged", f"{store.path}: {'; '.join(said)[:200]}; move it away to start a new one")
        return
    yield ok(
        "store", "sound", f"{store.folder}: {count:,} originals, {chars:,} characters in {_size(store):,} bytes, sound"
    )


def _size(store: Store) -> int:
    return sum(file.stat().st_size for file in store.folder.glob(f"{FILE_NAME}*") if file.is_file())


def _writable(folder: Path) -> Iterator[Finding]:
    place = next((place for place in (folder, *folder.parents) if place.exists()), Path("/"))
    try:
        if place == folder:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"x")
                file.flush()
        elif not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(13, "a folder cannot be made there")
    except OSError as error:
        text = f"{place}: it cannot be written ({error.strerror}); nothing would be cut, since nothing could be stored"
        yield problem("store", "read_only", text)


def _private(store: Store) -> Iterator[Finding]:
    for place in (store.folder, store.path):
        if place.exists() and os.name == "posix" and place.stat().st_mode & 0o077:
            yield note("store", "open_to_others", f"{place}: others on this machine may read it; chmod go-rwx {place}")
