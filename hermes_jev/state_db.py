"""Hermes' own database of messages, read only: past sessions, and rows that a compaction archived.

Nothing is written, nothing is locked for longer than one query, and every fault of the file is a StoreError. Rows the
user took back are never shown.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .errors import StoreError
from .store import Original, encode, is_pointer_id, pointer_hash, pointer_id
from .store.database import to_sql

FILE_NAME = "state.db"
HIDDEN_SOURCES = ("kanban", "subagent", "tool")
"""Where sessions come from that are nobody's conversations."""

_PATIENCE_S = 1.0
_QUERY_S = 1.5
_STEPS = 10_000
_ROWS = 200
_GENERATIONS = 200
_JSON = "\x00json:"
_VISIBLE = "(m.active = 1 OR m.compacted = 1)"
_COLUMNS = "m.id, m.session_id, m.role, m.tool_name, m.content, m.timestamp, m.active"


class Row(NamedTuple):
    """One message as the host stored it. `created` is seconds since 1970; `live` says that it is in its session's
    window now."""

    id: int
    session: str
    role: str
    tool: str
    content: Any
    created: float
    live: bool


class Past(NamedTuple):
    """A session for a list: what it is called, where it came from, when it began (seconds since 1970)."""

    id: str
    title: str
    source: str
    started: float
    messages: int


@dataclass(frozen=True, slots=True)
class StateDb:
    """The database at `path`, which need not exist: then everything is empty."""

    path: Path

    def holding(self, words: Sequence[str], literal: str, without: Collection[str], roles: Sequence[str]) -> list[Row]:
        """Messages of other sessions than `without` that hold one of the words, best first; when none does, or there
        are no words, those that hold the literal text, newest first."""
        others = f"m.session_id NOT IN ({_marks(without)}) AND m.role IN ({_marks(roles)})"
        others += f" AND coalesce(s.source, '') NOT IN ({_marks(HIDDEN_SOURCES)}) AND {_VISIBLE}"
        values = (*map(to_sql, without), *roles, *HIDDEN_SOURCES)
        select = f"SELECT {_COLUMNS} FROM messages m JOIN sessions s ON s.id = m.session_id"
        with self._reading() as connection:
            if connection is None:
                return []
            rows: list[Any] = []
            if words and _has_table(connection, "messages_fts"):
                match = " OR ".join('"' + word.replace('"', "") + '"' for word in words)
                rows = connection.execute(
                    f"{select} JOIN messages_fts f ON f.rowid = m.id WHERE messages_fts MATCH ? AND {others}"
                    f" ORDER BY bm25(messages_fts), m.id DESC LIMIT {_ROWS}",
                    (match, *values),
                ).fetchall()
            if not rows and literal and "\x00" not in literal:  # which would end the pattern
                escaped = literal.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
                rows = connection.execute(
                    f"{select} WHERE m.content LIKE ? ESCAPE '\\' AND {others} ORDER BY m.id DESC LIMIT {_ROWS}",
                    (to_sql(f"%{escaped}%"), *values),
                ).fetchall()
            return [_row(row) for row in rows]

    def around(self, session: str, message: int, window: int) -> list[Row]:
        """The message and up to `window` ones on each side of it, in order; empty when the session has no such one."""
        where = f"FROM messages m WHERE m.session_id = ? AND {_VISIBLE} AND m.id"
        with self._reading() as connection:
            if connection is None:
                return []
            before = connection.execute(
                f"SELECT {_COLUMNS} {where} <= ? ORDER BY m.id DESC LIMIT ?", (to_sql(session), message, window + 1)
            ).fetchall()
            after = connection.execute(
                f"SELECT {_COLUMNS} {where} > ? ORDER BY m.id LIMIT ?", (to_sql(session), message, window)
            ).fetchall()
            if not before or before[0][0] != message:
                return []
            return [_row(row) for row in [*reversed(before), *after]]

    def ends_of(self, session: str, first: int, last: int) -> tuple[list[Row], int]:
        """The first and the last messages that are in a session's window, and how many there are."""
        where = "FROM messages m WHERE m.session_id = ? AND m.active = 1"
        with self._reading() as connection:
            if connection is None:
                return [], 0
            (count,) = connection.execute(f"SELECT count(*) {where}", (to_sql(session),)).fetchone()
            head = connection.execute(
                f"SELECT {_COLUMNS} {where} ORDER BY m.id LIMIT ?", (to_sql(session), first)
            ).fetchall()
            tail = connection.execute(
                f"SELECT {_COLUMNS} {where} ORDER BY m.id DESC LIMIT ?",
                (to_sql(session), min(last, max(0, count - first))),
            ).fetchall()
            return [_row(row) for row in [*head, *reversed(tail)]], count

    def recent(self, without: Collection[str], limit: int) -> list[Past]:
        """The newest sessions."""
        with self._reading() as connection:
            if connection is None:
                return []
            rows = connection.execute(
                f"SELECT id, title, source, started_at, message_count FROM sessions WHERE id NOT IN ({_marks(without)})"
                f" AND coalesce(source, '') NOT IN ({_marks(HIDDEN_SOURCES)}) ORDER BY started_at DESC LIMIT ?",
                (*map(to_sql, without), *HIDDEN_SOURCES, limit),
            ).fetchall()
            return [
                Past(str(row[0]), str(row[1] or ""), str(row[2] or ""), _seconds(row[3]), int(row[4] or 0))
                for row in rows
            ]

    def original(self, pointer: str, sessions: Collection[str]) -> Original | None:
        """The tool call behind a pointer, if a row of these sessions hashes to it: the pointer is made of that hash."""
        if not is_pointer_id(pointer):
            return None
        with self._reading() as connection:
            if connection is None:
                return None
            for session in sessions:
                rows = connection.execute(
                    "SELECT m.role, m.content, m.tool_call_id, m.tool_calls FROM messages m"
                    f" WHERE m.session_id = ? AND {_VISIBLE} ORDER BY m.id",
                    (to_sql(session),),
                )
                for original in _exchanges(rows):
                    if _pointer_of(original, pointer) == pointer:
                        return original
        return None

    def conversation(self, session: str) -> list[dict[str, Any]]:
        """The messages in a session's window as a chat, oldest first; as long as it takes."""
        with self._reading(math.inf) as connection:
            if connection is None:
                return []
            rows = connection.execute(
                "SELECT role, content, tool_calls, tool_call_id, tool_name FROM messages "
                "WHERE session_id = ? AND active = 1 ORDER BY id",
                (to_sql(session),),
            ).fetchall()
        return [_message(*row) for row in rows]

    def source(self, session: str) -> str:
        """Where a session came from (cli, telegram, …), empty when the host does not say."""
        with self._reading() as connection:
            if connection is None or not session:
                return ""
            row = connection.execute("SELECT source FROM sessions WHERE id = ?", (to_sql(session),)).fetchone()
        return row[0] if row and isinstance(row[0], str) else ""

    def parents(self, session: str) -> list[str]:
        """The sessions this one continues, nearest first."""
        found: list[str] = []
        with self._reading() as connection:
            current: Any = session if connection is not None else ""
            while connection is not None and current and len(found) < _GENERATIONS:
                select = "SELECT parent_session_id FROM sessions WHERE id = ?"
                row = connection.execute(select, (to_sql(current),)).fetchone()
                current = row[0] if row else None
                if not isinstance(current, str) or current in ("", session, *found):
                    break
                found.append(current)
        return found

    @contextmanager
    def _reading(self, query_s: float = _QUERY_S) -> Iterator[sqlite3.Connection | None]:
        if not self.path.is_file():
            yield None
            return
        try:
            address = f"{self.path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE_S)) as connection:
                deadline = time.monotonic() + query_s
                connection.set_progress_handler(lambda: int(time.monotonic() > deadline), _STEPS)
                yield connection
        except sqlite3.Error as error:
            raise StoreError(f"{FILE_NAME}: it cannot be read ({type(error).__name__})") from error


def _marks(values: Collection[str]) -> str:
    return ",".join("?" * len(values))


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def _row(row: Sequence[Any]) -> Row:
    number, session, role, tool, content, created, active = row
    return Row(number, str(session), str(role), str(tool or ""), _content(content), _seconds(created), bool(active))


def _message(role: str, content: Any, calls: Any, call_id: str | None, name: str | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": _content(content)}
    found = _parsed(calls) if isinstance(calls, str) else None
    if isinstance(found, list) and found:
        message["tool_calls"] = found
    if call_id:
        message["tool_call_id"] = call_id
    if name:
        message["name"] = name
    return message


def _content(content: Any) -> Any:
    """What the host stored: text, or a list or object behind a mark."""
    if not isinstance(content, str) or not content.startswith(_JSON):
        return content
    found = _parsed(content.removeprefix(_JSON))
    return content if found is None else found


def _parsed(text: str) -> Any:
    """A value of JSON; None for what is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _exchanges(rows: Iterator[Sequence[Any]]) -> Iterator[Original]:
    """Each result with the last call of its id before it."""
    calls: dict[str, tuple[str, str]] = {}
    for role, content, call_id, tool_calls in rows:
        if role == "assistant" and isinstance(tool_calls, str):
            calls.update(_calls(tool_calls))
        elif role == "tool" and call_id in calls:
            tool, arguments = calls[call_id]
            yield Original(tool, arguments, _content(content), "unknown")


def _calls(tool_calls: str) -> Iterator[tuple[str, tuple[str, str]]]:
    found = _parsed(tool_calls)
    for call in found if isinstance(found, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            continue
        name, arguments = function.get("name"), function.get("arguments")
        for key in ("id", "call_id"):
            if isinstance(name, str) and isinstance(arguments, str) and isinstance(call.get(key), str):
                yield call[key], (name, arguments)


def _pointer_of(original: Original, like: str) -> str:
    """The pointer of an exchange, as long as `like`; empty for what could not have been stored."""
    try:
        data = encode(original.result)
    except StoreError:
        return ""
    return pointer_id(pointer_hash(original.tool, original.arguments, data), len(like) - len("r-"))
