"""The rows of one original: two contents, the exchange they belong to, who may open it, what stands in its place.

Functions over an open connection; the caller owns the transaction and turns faults of the file into StoreError.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import NotStored, StoreError
from .database import from_sql, to_sql
from .faults import faults
from .values import (
    MAX_ID_LENGTH,
    MIN_ID_LENGTH,
    content_hash,
    decode,
    encode,
    is_pointer_id,
    pointer_hash,
    pointer_id,
    same,
)

# One message for unknown and foreign: an answer must not tell whether another session has stored something.
NOT_STORED = "nothing is stored under this id for this session"


class Original(NamedTuple):
    """One tool call as it was. `arguments` is the text the model wrote, `outcome` "ok", "failed" or "unknown"."""

    tool: str
    arguments: str
    result: Any
    outcome: str


class Call(NamedTuple):
    """What to run again when an original cannot be given back."""

    tool: str
    arguments: str


class Kept(NamedTuple):
    """A stored original: its pointer and the text that may now stand in its place."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Keep:
    """One original to store. `render` makes, from its pointer, the text that will stand in the transcript.

    It is called while the file is locked and perhaps more than once, so it is quick and has no side effects.
    """

    tool: str
    arguments: str
    result: Any
    outcome: str
    render: Callable[[str], str]


class _Content(NamedTuple):
    sha: str
    body: bytes
    chars: int


class Prepared(NamedTuple):
    """An item of `keep` with everything worked out that needs no file."""

    item: Keep
    exchange: bytes
    arguments: _Content
    result: _Content


def prepare(item: Keep) -> Prepared | StoreError:
    """Encode, hash and compress one item; the error when its value cannot be stored exactly."""
    try:
        arguments, result = encode(item.arguments), encode(item.result)
    except StoreError as error:
        return error
    exchange = pointer_hash(item.tool, item.arguments, result)
    return Prepared(item, exchange, _content(item.arguments, arguments), _content(item.result, result))


def put(connection: sqlite3.Connection, prepared: Prepared, session: str | None, created: float) -> Kept:
    """Write what is not there yet of one original.

    Raises StoreError, with nothing written, when its text already stands for another original.
    """
    item = prepared.item
    pointer = _free_pointer(connection, prepared)
    text = item.render(pointer)
    text_sha = content_hash(encode(text))
    if _pointer_of(connection, text_sha) not in (None, pointer):
        raise StoreError("the text that would stand in the transcript already stands for another original")
    for content in (prepared.arguments, prepared.result):
        _put_content(connection, content)
    connection.execute(
        "INSERT INTO originals (pointer, tool, arguments_sha, result_sha, outcome, created, used, shell)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (pointer) DO UPDATE SET used = max(used, excluded.used), shell = max(shell, excluded.shell)",
        (
            *(pointer, to_sql(item.tool), prepared.arguments.sha, prepared.result.sha, to_sql(item.outcome)),
            *(created, created, session is None),
        ),
    )
    connection.execute("INSERT OR IGNORE INTO cuts (text_sha, pointer) VALUES (?, ?)", (text_sha, pointer))
    if session is not None:
        connection.execute(
            "INSERT OR IGNORE INTO grants (pointer, session, created) VALUES (?, ?, ?)",
            (pointer, to_sql(session), created),
        )
    return Kept(pointer, text)


def confirm(connection: sqlite3.Connection, item: Keep, kept: Kept, session: str | None) -> None:
    """Read one original back the three ways it will be asked for. Raises StoreError when anything is not as given."""
    back = load(connection, kept.id)
    exact = back.tool == item.tool and same(back.arguments, item.arguments) and same(back.result, item.result)
    granted = session is None or may_open(connection, kept.id, (session,))
    if not (exact and granted and _pointer_of(connection, content_hash(encode(kept.text))) == kept.id):
        raise StoreError("the original was written but could not be read back")


def load(connection: sqlite3.Connection, pointer: str) -> Original:
    """Read one original and check it against its hashes and its pointer.

    Raises NotStored for an unknown pointer and StoreError for a damaged original.
    """
    row = connection.execute(
        "SELECT o.tool, o.arguments_sha, a.body, o.result_sha, r.body, o.outcome FROM originals o"
        " LEFT JOIN contents a ON a.sha = o.arguments_sha LEFT JOIN contents r ON r.sha = o.result_sha"
        " WHERE o.pointer = ?",
        (pointer,),
    ).fetchone()
    if row is None:
        raise NotStored(NOT_STORED)
    try:
        tool, outcome = from_sql(row[0]), from_sql(row[5])
        arguments, result_data = _decode_text(_unpack(row[1], row[2])), _unpack(row[3], row[4])
        if pointer != pointer_id(pointer_hash(tool, arguments, result_data), len(pointer) - len("r-")):
            raise StoreError("the pointer is not that of this exchange")
        return Original(tool, arguments, decode(result_data), outcome)
    except StoreError as error:
        raise StoreError(f"the original of {pointer} is damaged") from error


def load_call(connection: sqlite3.Connection, pointer: str) -> Call:
    """Read tool and arguments alone, whatever became of the result. Raises NotStored and StoreError."""
    row = connection.execute(
        "SELECT o.tool, o.arguments_sha, a.body FROM originals o"
        " LEFT JOIN contents a ON a.sha = o.arguments_sha WHERE o.pointer = ?",
        (pointer,),
    ).fetchone()
    if row is None:
        raise NotStored(NOT_STORED)
    return Call(from_sql(row[0]), _decode_text(_unpack(row[1], row[2])))


def load_behind(connection: sqlite3.Connection, text: Any) -> Original | None:
    """The original in whose place exactly this text was put, or None. Raises StoreError when it is damaged or gone."""
    try:
        data = encode(text)
    except StoreError:
        return None  # a value that cannot be encoded never stood for anything
    pointer = _pointer_of(connection, content_hash(data))
    return None if pointer is None else load(connection, pointer)


def may_open(connection: sqlite3.Connection, pointer: str, sessions: Collection[str]) -> bool:
    """Whether one of the sessions was granted this pointer."""
    rows = connection.execute("SELECT session FROM grants WHERE pointer = ?", (pointer,))
    return any(from_sql(session) in sessions for (session,) in rows)


def disagreements(connection: sqlite3.Connection, name: str) -> Iterator[str]:
    """Check the whole file `name`: its pages, every hash, and that every row finds the rows it names."""
    for (line,) in connection.execute("PRAGMA integrity_check(20)"):
        if line != "ok":
            yield f"{name}: {line}"
    for (sha,) in connection.execute("SELECT sha FROM contents").fetchall():
        try:
            with faults(name):
                row = connection.execute("SELECT body FROM contents WHERE sha = ?", (sha,)).fetchone()
                _unpack(sha, row and row[0])
        except StoreError:
            yield f"content {str(sha)[:12]}… is damaged"
    for (pointer,) in connection.execute("SELECT pointer FROM originals").fetchall():
        try:
            with faults(name):
                load(connection, pointer)
        except StoreError as error:
            yield f"{str(pointer)[:60]}: {error}"
    for table in ("grants", "cuts"):
        for (pointer,) in connection.execute(
            f"SELECT DISTINCT pointer FROM {table} WHERE pointer NOT IN (SELECT pointer FROM originals)"
        ):
            yield f"{str(pointer)[:60]}: a row of {table} names it, but there is no such original"


def _content(value: Any, data: bytes) -> _Content:
    return _Content(content_hash(data), zlib.compress(data), len(value) if isinstance(value, str) else len(data))


def _unpack(sha: object, body: object) -> bytes:
    """The bytes behind a hash. Raises StoreError when they are missing or are not those that were hashed."""
    if not isinstance(body, bytes):
        raise StoreError("a stored content is missing")
    try:
        data = zlib.decompress(body)
    except zlib.error as error:
        raise StoreError("a stored content is damaged") from error
    if content_hash(data) != sha:
        raise StoreError("a stored content is damaged")
    return data


def _decode_text(data: bytes) -> str:
    value = decode(data)
    if not isinstance(value, str):
        raise StoreError("a stored content is not the text it should be")
    return value


def _free_pointer(connection: sqlite3.Connection, prepared: Prepared) -> str:
    """The shortest pointer that belongs to this exchange already or to none."""
    mine = (to_sql(prepared.item.tool), prepared.arguments.sha, prepared.result.sha)
    for length in range(MIN_ID_LENGTH, MAX_ID_LENGTH + 1):
        pointer = pointer_id(prepared.exchange, length)
        row = connection.execute(
            "SELECT tool, arguments_sha, result_sha FROM originals WHERE pointer = ?", (pointer,)
        ).fetchone()
        if row is None or row == mine:
            return pointer
    raise StoreError("another original has the same hash")


def _pointer_of(connection: sqlite3.Connection, text_sha: str) -> str | None:
    row = connection.execute("SELECT pointer FROM cuts WHERE text_sha = ?", (text_sha,)).fetchone()
    return row[0] if row is not None and is_pointer_id(row[0]) else None


def _put_content(connection: sqlite3.Connection, content: _Content) -> None:
    """Write a content once; one that was damaged since is written anew."""
    row = connection.execute("SELECT body FROM contents WHERE sha = ?", (content.sha,)).fetchone()
    try:
        if row is not None:
            _unpack(content.sha, row[0])
            return
    except StoreError:
        connection.execute("DELETE FROM contents WHERE sha = ?", (content.sha,))
    connection.execute("INSERT INTO contents (sha, body, chars) VALUES (?, ?, ?)", content)
