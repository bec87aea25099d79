"""One SQLite file: opened for one operation and always closed, with its faults in plain words.

No handle outlives a call, so whoever holds a `Database` can be copied, pickled, forked and used by any thread. Writers
take the write lock at once and wait for each other; readers see one unchanging state. Whoever owns the file is told of
damage, so that it can be set aside; a writer that has not begun goes on with what stands there instead.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from ..errors import StoreError
from .faults import Damaged, Unavailable, faults, primary_code
from .migrations import MIGRATIONS, Step, applied, migrate

T = TypeVar("T")

PATIENCE_S = 3.0
"""How long an operation waits for another process that holds the lock, in seconds."""

_RETRY_S = 0.01
_TRIES = 5


class _Reported(Damaged):
    """Damage that the owner of the file has been told of already."""


class FileId(NamedTuple):
    """Tells a file from another that was put under its name."""

    device: int
    inode: int


def file_id(path: Path) -> FileId | None:
    """Which file is there now; None for none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return FileId(found.st_dev, found.st_ino)


@dataclass(frozen=True, slots=True)
class Database:
    """The file at `path` with the tables that `steps` make. Nothing happens before the first operation.

    `damaged` is told which file is damaged and answers whether opening again may help.
    """

    path: Path
    steps: tuple[Step, ...] = MIGRATIONS
    patience_s: float = PATIENCE_S
    damaged: Callable[[FileId | None], bool] | None = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Give a connection to one unchanging state of the file, or None when nothing was ever stored.

        Creates nothing. Raises StoreError in place of any fault of the file.
        """
        with self._watched(), ExitStack() as stack:
            connection = self._open_to_read()
            if connection is not None:
                stack.enter_context(closing(connection))
                connection.execute("BEGIN")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give a connection inside one transaction: committed to disk at the end, undone when the body raises.

        Creates folder and file (for this user only) at need. Raises StoreError in place of any fault of the file.
        """
        with self._watched(), closing(self._open_or_begin()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def tending(self) -> Iterator[sqlite3.Connection]:
        """Give a connection outside any transaction, for what SQLite does to a whole file. Raises StoreError."""
        with self._watched(), closing(self._open_or_begin()) as connection:
            yield connection

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Faults in plain words; a damaged file is reported to its owner, for the next operation."""
        before: FileId | None = None
        try:
            with faults(self.path.name):
                before = file_id(self.path)
                yield
        except _Reported:
            raise
        except Damaged:
            if self.damaged is not None:
                self.damaged(before)
            raise

    def _open_or_begin(self) -> sqlite3.Connection:
        """Open the file to write; when it is damaged, what its owner lets stand in its place."""
        before = file_id(self.path)
        try:
            with faults(self.path.name):
                return self._open_to_write()
        except Damaged as error:
            if self.damaged is None or not self.damaged(before):
                raise _Reported(str(error)) from error
        return self._open_to_write()

    def _open_to_write(self) -> sqlite3.Connection:
        make_private_folder(self.path.parent)
        for _ in range(_TRIES):
            if self.path.exists():
                try:
                    return self._open("mode=rw", self._prepare_to_write)[0]
                except sqlite3.OperationalError as error:
                    if primary_code(error) != sqlite3.SQLITE_CANTOPEN or self.path.exists():
                        raise
            # A new file is begun under the lock, never while a damaged one is being moved away: the log that SQLite
            # keeps beside a file is found by its name alone.
            with closing(lock(self.path, self.patience_s)):
                if not self.path.exists():
                    return self._open("mode=rwc", self._prepare_to_write)[0]
        raise Unavailable(f"{self.path.name}: it is there and gone again")

    def _open_to_read(self) -> sqlite3.Connection | None:
        if not self.path.exists():
            return None
        try:
            connection, done = self._open("mode=rw", self._prepare_to_read)
        except sqlite3.OperationalError as error:
            if primary_code(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) or self._has_log():
                raise
            # Where the folder cannot be written, SQLite cannot make the files it shares with writers. Without a
            # write-ahead log there is nothing to share, and every content is checked against its hash anyway.
            connection, done = self._open("mode=ro&immutable=1", _prepare_to_look)
        if done:
            return connection
        connection.close()
        return None

    def _has_log(self) -> bool:
        log = self.path.with_name(f"{self.path.name}-wal")
        return log.exists() and log.stat().st_size > 0

    def _open(self, query: str, prepare: Callable[[sqlite3.Connection], T]) -> tuple[sqlite3.Connection, T]:
        """A connection and what `prepare` made of it; tried again while another process is opening or closing."""
        address = f"{self.path.absolute().as_uri()}?{query}"
        deadline = time.monotonic() + self.patience_s
        while True:
            with ExitStack() as stack:
                connection = sqlite3.connect(address, uri=True, timeout=self.patience_s, isolation_level=None)
                stack.enter_context(closing(connection))
                try:
                    made = prepare(connection)
                    stack.pop_all()
                    return connection, made
                except sqlite3.OperationalError as error:
                    if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                        raise
            time.sleep(_RETRY_S)

    def _prepare_to_read(self, connection: sqlite3.Connection) -> frozenset[str]:
        done = _prepare_to_look(connection)
        if done and any(step.__name__ not in done for step in self.steps):
            migrate(connection, self.steps)
        return done

    def _prepare_to_write(self, connection: sqlite3.Connection) -> None:
        # SQLite gives its side files the mode of this one; a new file does not hold anything yet.
        mode = self.path.stat().st_mode & 0o777
        if mode & 0o077:
            self.path.chmod(mode & 0o700)
        connection.execute("PRAGMA cell_size_check = ON")
        # What is removed is overwritten at once, and its room can be given back piece by piece.
        connection.execute("PRAGMA secure_delete = ON")
        if not applied(connection):
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        migrate(connection, self.steps)


def _prepare_to_look(connection: sqlite3.Connection) -> frozenset[str]:
    """The steps the file has been through; one of an earlier version is read as it is."""
    connection.execute("PRAGMA cell_size_check = ON")
    return applied(connection)


def lock(path: Path, patience_s: float) -> sqlite3.Connection:
    """The lock on which file stands under this name, held until closed or until its process ends, however it ends.

    Raises what SQLite and the system raise when it stays taken or the folder cannot be written.
    """
    file = path.with_name(f"{path.name}.lock")
    if not file.exists():
        file.touch(mode=0o600)
    connection = sqlite3.connect(file, timeout=patience_s, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def make_private_folder(folder: Path) -> None:
    """Make a folder that only this user can look into. One that holds something already is left as it is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = folder.stat().st_mode & 0o777
    if mode & 0o077 and not any(folder.iterdir()):
        folder.chmod(mode & 0o700)


def to_sql(text: str) -> str | bytes:
    """The text as SQLite can hold it: with a lone surrogate it is no valid UTF-8 and becomes a blob."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def from_sql(value: object) -> str:
    """Undo `to_sql`. Raises StoreError for a value it cannot have made."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise StoreError("a stored text is damaged") from error
    raise StoreError("a stored text is damaged")
