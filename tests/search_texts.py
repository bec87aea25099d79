"""Stores with known outputs, and a database of messages as the host makes one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from hermes_jev.store import Keep, Kept, Store

SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, title TEXT, parent_session_id TEXT, started_at REAL,
    message_count INTEGER);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT,
    tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, active INTEGER DEFAULT 1,
    compacted INTEGER DEFAULT 0);
CREATE VIRTUAL TABLE messages_fts USING fts5(content);
"""


def keep(
    store: Store, result: Any, session: str | None = "s", tool: str = "terminal", arguments: str = '{"command": "run"}'
) -> str:
    """Store one output; its pointer."""
    (kept,) = store.keep(session, [Keep(tool, arguments, result, "ok", lambda pointer: f"cut {pointer}")])
    assert isinstance(kept, Kept), kept
    return kept.id


class Host:
    """A `state.db` in a folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.db"
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.executescript(SCHEMA)

    def session(self, name: str, source: str = "cli", title: str = "", started: float = 0.0) -> None:
        self._write(
            "INSERT INTO sessions (id, source, title, started_at, message_count) VALUES (?, ?, ?, ?, 0)",
            (name, source, title, started),
        )

    def row(
        self,
        session: str,
        role: str,
        content: Any,
        *,
        call: str | None = None,
        calls: Sequence[tuple[str, str, str]] = (),
        live: bool = True,
        archived: bool = False,
    ) -> int:
        """Add a message; its id. `calls` are (id, tool, arguments)."""
        text = content if content is None or isinstance(content, str) else "\x00json:" + json.dumps(content)
        named = [{"id": i, "type": "function", "function": {"name": t, "arguments": a}} for i, t, a in calls]
        number = self._write(
            "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, active,"
            " compacted) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)",
            (
                session,
                role,
                text,
                call,
                json.dumps(named) if named else None,
                "terminal" if role == "tool" else None,
                int(live),
                int(archived),
            ),
        )
        self._write("INSERT INTO messages_fts (rowid, content) VALUES (?, ?)", (number, text or ""))
        return number

    def _write(self, statement: str, values: tuple[Any, ...]) -> int:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(statement, values).lastrowid or 0
