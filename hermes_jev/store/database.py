"""One SQLite file: opened for one operation and always closed, with its faults in plain words.

No handle outlives a call, so whoever holds a `Database` can be copied, pickled, forked and used by any thread. Writers
take the write lock at once and wait for each other; readers see one unchanging state.
"""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import StoreError
from .migrations import MIGRATIONS, Step, applied, migrate

PATIENCE_S = 3.0
"""How long an operation waits for another process that holds the lock, in seconds."""

_RETRY_S = 0.01

_DISK_FULL = "the disk is full, or a quota or size limit is reached"
_TOO_BIG = "the value is too big for it"
_DAMAGED = "it is damaged or no store at all; move it away to start a new one"
_LOCKED = "it stayed locked by another process; try again"
_READ_ONLY = "it is read-only, or this user may not write there"

_TOO_MUCH_BY_CODE = {
    sqlite3.SQLITE_FULL: _DISK_FULL,
    sqlite3.SQLITE_IOERR: f"writing failed: {_DISK_FULL}, or the disk is failing",
    sqlite3.SQLITE_TOOBIG: _TOO_BIG,
}
_UNAVAILABLE_BY_CODE = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_IOERR_READ: "it is no file, or the disk is failing",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that its folder is one, and may be written",
}
_TOO_MUCH_BY_ERRNO = {errno.ENOSPC: _DISK_FULL, errno.EDQUOT: _DISK_FULL, errno.EFBIG: _DISK_FULL}
_UNAVAILABLE_BY_ERRNO = {
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EROFS: _READ_ONLY,
    errno.EEXIST: "a file stands where its folder should be",
    errno.ENOTDIR: "a file stands where its folder should be",
}


class Unavailable(StoreError):
    """The file as a whole cannot be used now; writing less into it would not help."""


@dataclass(frozen=True, slots=True)
class Database:
    """The file at `path` with the tables that `steps` make. Nothing happens before the first operation."""

    path: Path
    steps: tuple[Step, ...] = MIGRATIONS
    patience_s: float = PATIENCE_S

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Give a connection to one unchanging state of the file, or None when nothing was ever stored.

        Creates nothing. Raises StoreError in place of any fault of the file.
        """
        with faults(self.path.name), ExitStack() as stack:
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
        with faults(self.path.name):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(self._open("mode=rwc", self._prepare_to_write)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")

    def _open_to_read(self) -> sqlite3.Connection | None:
        if not self.path.exists():
            return None
        try:
            connection = self._open("mode=rw", self._prepare_to_read)
        except sqlite3.OperationalError as error:
            if _code(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) or self._has_log():
                raise
            # Where the folder cannot be written, SQLite cannot make the files it shares with writers. Without a
            # write-ahead log there is nothing to share, and every content is checked against its hash anyway.
            connection = self._open("mode=ro&immutable=1", self._prepare_to_read)
        with ExitStack() as stack:
            stack.enter_context(closing(connection))
            if not applied(connection):
                return None
            stack.pop_all()
            return connection

    def _has_log(self) -> bool:
        log = self.path.with_name(f"{self.path.name}-wal")
        return log.exists() and log.stat().st_size > 0

    def _open(self, query: str, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
        """Connect and `prepare`, again while another process is in the middle of opening or closing the file."""
        address = f"{self.path.absolute().as_uri()}?{query}"
        deadline = time.monotonic() + self.patience_s
        while True:
            with ExitStack() as stack:
                connection = sqlite3.connect(address, uri=True, timeout=self.patience_s, isolation_level=None)
                stack.enter_context(closing(connection))
                try:
                    prepare(connection)
                    stack.pop_all()
                    return connection
                except sqlite3.OperationalError as error:
                    if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                        raise
            time.sleep(_RETRY_S)

    def _prepare_to_read(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA cell_size_check = ON")
        done = applied(connection)
        if done and any(step.__name__ not in done for step in self.steps):
            migrate(connection, self.steps)

    def _prepare_to_write(self, connection: sqlite3.Connection) -> None:
        if not applied(connection):
            # SQLite gives its side files the mode of this one, and so far none of them holds anything.
            self.path.chmod(0o600)
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        migrate(connection, self.steps)


@contextmanager
def faults(name: str) -> Iterator[None]:
    """Turn what SQLite and the system raise into a StoreError that says what is wrong with the file `name`."""
    try:
        yield
    except sqlite3.DataError as error:
        raise StoreError(f"{name}: {_TOO_BIG}") from error
    except OverflowError as error:
        raise StoreError(f"{name}: {_TOO_BIG}") from error
    except UnicodeDecodeError as error:
        # SQLite quotes a damaged schema in its message, and the driver cannot read the quotation.
        raise Unavailable(f"{name}: {_DAMAGED}") from error
    except sqlite3.Error as error:
        codes = (_extended_code(error), _code(error))
        raise _plain(name, codes, _TOO_MUCH_BY_CODE, _UNAVAILABLE_BY_CODE) from error
    except OSError as error:
        raise _plain(name, (error.errno or 0,), _TOO_MUCH_BY_ERRNO, _UNAVAILABLE_BY_ERRNO) from error


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


def _code(error: sqlite3.Error) -> int:
    """The primary result code, or 0 for an error the driver raised by itself."""
    return _extended_code(error) & 0xFF


def _extended_code(error: sqlite3.Error) -> int:
    # Of what the driver raises by itself, only a stored text that is no UTF-8 is an OperationalError: damage.
    default = sqlite3.SQLITE_CORRUPT if isinstance(error, sqlite3.OperationalError) else 0
    return int(vars(error).get("sqlite_errorcode", default))


def _plain(name: str, codes: Sequence[int], too_much: Mapping[int, str], unavailable: Mapping[int, str]) -> StoreError:
    """The error for the first code that one of the tables knows."""
    for code in codes:
        if code in unavailable:
            return Unavailable(f"{name}: {unavailable[code]}")
        if code in too_much:
            return StoreError(f"{name}: {too_much[code]}")
    return Unavailable(f"{name}: it cannot be used (code {codes[0]})")
