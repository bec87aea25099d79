"""The engines that run in this process, for what the host calls without naming one.

Agents come and go in threads, and a fork of an agent has the same session: so engines are found by asking each, and
none is kept alive.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from .session_search import SESSION_SEARCH_TOOL


class Searching(Protocol):
    """An engine, as far as it is needed here."""

    def runs(self, session: str) -> bool:
        """Whether this engine runs that session now."""
        ...

    def search_more(self, arguments: Any, reply: Any) -> Any:
        """The reply of the host's `session_search` with what it cannot reach."""
        ...


_engines: weakref.WeakSet[Searching] = weakref.WeakSet()
_lock = threading.Lock()


def note(engine: Searching) -> None:
    """Remember an engine as long as it lives."""
    with _lock:
        _engines.add(engine)


def engine_of(session: str) -> Searching | None:
    """An engine that runs a session in this process."""
    with _lock:
        engines = list(_engines)
    return next((engine for engine in engines if engine.runs(session)), None)


def search_middleware(
    tool_name: str = "", args: Any = None, next_call: Callable[[Any], Any] | None = None, session_id: str = "", **_: Any
) -> Any:
    """Wraps every tool of the host, and adds to what `session_search` replies."""
    reply = next_call(args) if next_call is not None else None
    if tool_name != SESSION_SEARCH_TOOL:
        return reply
    engine = engine_of(session_id)
    return reply if engine is None else engine.search_more(args, reply)
