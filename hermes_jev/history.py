"""Read a session from Hermes' own history (`state.db` in its home), without Hermes and without writing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from .errors import InputError

FILE = "state.db"
_JSON = "\x00json:"
_PATIENCE_S = 2.0


def hermes_home(environment: Mapping[str, str]) -> Path:
    """The Hermes home of this environment: `$HERMES_HOME`, else `~/.hermes`."""
    return Path(environment.get("HERMES_HOME", "").strip() or "~/.hermes").expanduser()


def read_session(home: Path, session: str) -> list[dict[str, Any]]:
    """The messages of a session as a chat: the rows in force, oldest first. Raises InputError when there is no such
    session or the history cannot be read."""
    file = home / FILE
    if not file.is_file():
        raise InputError(f"{file}: there is no history of Hermes; HERMES_HOME names its home")
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=_PATIENCE_S)) as connection:
            rows = connection.execute(
                "SELECT role, content, tool_calls, tool_call_id, tool_name FROM messages "
                "WHERE session_id = ? AND active = 1 ORDER BY id",
                (session,),
            ).fetchall()
    except sqlite3.Error as error:
        raise InputError(f"{file}: cannot be read: {error}") from None
    if not rows:
        raise InputError(f"{file}: it holds no session {session[:80]!r}; `hermes sessions list` names them")
    return [_message(*row) for row in rows]


def source_of(home: Path, session: str) -> str:
    """Where Hermes says a session came from (cli, telegram, …); empty when it does not know or cannot be read."""
    file = home / FILE
    if not session or not file.is_file():
        return ""
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=_PATIENCE_S)) as connection:
            row = connection.execute("SELECT source FROM sessions WHERE id = ?", (session,)).fetchone()
    except sqlite3.Error:
        return ""
    return row[0] if row and isinstance(row[0], str) else ""


def _message(role: str, content: Any, calls: str | None, call_id: str | None, name: str | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": _decoded(content)}
    found = _parsed(calls) if calls else None
    if isinstance(found, list) and found:
        message["tool_calls"] = found
    if call_id:
        message["tool_call_id"] = call_id
    if name:
        message["name"] = name
    return message


def _decoded(content: Any) -> Any:
    """Lists and objects are stored as JSON behind a prefix that text cannot start with."""
    if not isinstance(content, str) or not content.startswith(_JSON):
        return content
    found = _parsed(content.removeprefix(_JSON))
    return content if found is None else found


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
