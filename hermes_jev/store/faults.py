"""What SQLite and the system raise, in plain words: what is wrong with which file, and how far that reaches."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ..errors import StoreError

_DISK_FULL = "the disk is full, or a quota or size limit is reached"
_TOO_BIG = "the value is too big for it"
_DAMAGED = "it is damaged or no store at all"
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
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that its folder is one, and may be written",
}
_DAMAGED_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NO_CODE = (0, 0)
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


class Damaged(Unavailable):
    """What is in the file is not what SQLite wrote there."""


class Unreadable(StoreError):
    """One text in the file is no text; what is beside it may well be sound."""


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
        raise Damaged(f"{name}: {_DAMAGED}") from error
    except sqlite3.Error as error:
        codes = (_extended_code(error), primary_code(error))
        if primary_code(error) in _DAMAGED_CODES:
            raise Damaged(f"{name}: {_DAMAGED}") from error
        if codes == _NO_CODE and isinstance(error, sqlite3.OperationalError):
            # Of what the driver raises by itself, only a stored text that is no UTF-8 is an OperationalError.
            raise Unreadable(f"{name}: a stored text is damaged") from error
        raise _plain(name, codes, _TOO_MUCH_BY_CODE, _UNAVAILABLE_BY_CODE) from error
    except OSError as error:
        raise _plain(name, (error.errno or 0,), _TOO_MUCH_BY_ERRNO, _UNAVAILABLE_BY_ERRNO) from error


def primary_code(error: sqlite3.Error) -> int:
    """The primary result code, or 0 for an error the driver raised by itself."""
    return _extended_code(error) & 0xFF


def _extended_code(error: sqlite3.Error) -> int:
    return int(vars(error).get("sqlite_errorcode", 0))


def _plain(name: str, codes: Sequence[int], too_much: Mapping[int, str], unavailable: Mapping[int, str]) -> StoreError:
    """The error for the first code that one of the tables knows."""
    for code in codes:
        if code in unavailable:
            return Unavailable(f"{name}: {unavailable[code]}")
        if code in too_much:
            return StoreError(f"{name}: {too_much[code]}")
    return Unavailable(f"{name}: it cannot be used (code {codes[0]})")
