"""Read a session from Hermes' own history (`state.db` in its home), without Hermes and without writing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import InputError, StoreError
from .state_db import FILE_NAME, StateDb


def hermes_home(environment: Mapping[str, str]) -> Path:
    """The Hermes home of this environment: `$HERMES_HOME`, else `~/.hermes`."""
    return Path(environment.get("HERMES_HOME", "").strip() or "~/.hermes").expanduser()


def read_session(home: Path, session: str) -> list[dict[str, Any]]:
    """The messages of a session as a chat: the rows in force, oldest first. Raises InputError when there is no such
    session or the history cannot be read."""
    file = home / FILE_NAME
    if not file.is_file():
        raise InputError(f"{file}: there is no history of Hermes; HERMES_HOME names its home")
    try:
        messages = StateDb(file).conversation(session)
    except StoreError as error:
        raise InputError(f"{file}: cannot be read: {error.__cause__}") from None
    if not messages:
        raise InputError(f"{file}: it holds no session {session[:80]!r}; `hermes sessions list` names them")
    return messages


def source_of(home: Path, session: str) -> str:
    """Where Hermes says a session came from (cli, telegram, …); empty when it does not know or cannot be read."""
    try:
        return StateDb(home / FILE_NAME).source(session)
    except StoreError:
        return ""
