"""A damaged file is renamed, once, so that a new one can be begun, and kept for whoever wants to look.

`truth.sqlite3` becomes `truth.sqlite3.damaged-1` (then `-2` …), its side files with it. Several processes may find the
damage at the same time: one of them renames, under a lock, and only the very file that was found damaged.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from .database import FileId, file_id, lock
from .faults import faults, primary_code

MOST_ASIDE = 9
"""Damaged files one store may leave behind; more mean that the disk is failing, and that is said instead."""

_MARK = ".damaged-"
_GRACE_S = 0.05
_SIDE_FILES = ("", "-wal", "-shm")


def set_aside(path: Path, found: FileId | None, patience_s: float) -> Path | None:
    """Rename the damaged file at `path`; its new name, or None when another process was first or too many lie there.

    Raises StoreError when the folder cannot be written or the lock stays taken.
    """
    with faults(path.name), closing(lock(path, patience_s)):
        taken = {aside.name for aside in files_aside(path)}
        free = (path.with_name(f"{path.name}{_MARK}{number}") for number in range(1, MOST_ASIDE + 1))
        aside = next((one for one in free if one.name not in taken), None)
        if aside is None or found is None or file_id(path) != found:
            return None
        # The log first: without its file a log is nothing, but a new file must never meet the old log.
        with closing(_alone(path, patience_s)):
            for end in reversed(_SIDE_FILES):
                side = path.with_name(path.name + end)
                if side.exists():
                    side.rename(aside.with_name(aside.name + end))
        # Whoever opened the old file a moment ago finds out before a new one has a log of the same name.
        time.sleep(_GRACE_S)
        return aside


def files_aside(path: Path) -> list[Path]:
    """The damaged files that were set aside from `path`, oldest first."""
    found = path.parent.glob(f"{path.name}{_MARK}[0-9]")
    return sorted(found) if path.parent.is_dir() else []


def remove(path: Path) -> None:
    """Overwrite a database file and its side files with zeros and delete them. Raises StoreError."""
    with faults(path.name):
        for end in reversed(_SIDE_FILES):
            side = path.with_name(path.name + end)
            if side.exists():
                _overwrite(side)
                side.unlink()


def _overwrite(path: Path) -> None:
    left = path.stat().st_size
    zeros = bytes(1 << 20)
    with path.open("r+b") as stream:
        while left > 0:
            left -= stream.write(zeros[: min(left, len(zeros))])


def _alone(path: Path, patience_s: float) -> sqlite3.Connection:
    """A connection beside which nobody has the file open, where SQLite can still tell.

    Raises sqlite3.OperationalError when others keep it open: renaming it would make them write into another's log.
    """
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=patience_s)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if isinstance(error, sqlite3.Error) and primary_code(error) == sqlite3.SQLITE_BUSY:
            connection.close()
            raise
    return connection
