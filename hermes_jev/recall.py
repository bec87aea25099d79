"""The tools of a session, and where they look when the store cannot help."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import StoreError
from .notice import cut_in
from .paging import Room, error
from .pins import EXPAND_TOOL
from .session_search import SESSION_SEARCH_SCHEMA, SESSION_SEARCH_TOOL, Scope, answer, extended
from .state_db import StateDb
from .store import Call, Original, Store
from .tools import EXPAND_SCHEMA, Rescue, expand
from .transcript import Transcript

SCHEMAS: tuple[Mapping[str, Any], ...] = (EXPAND_SCHEMA, SESSION_SEARCH_SCHEMA)


@dataclass(frozen=True)
class Recall:
    """One call of a tool: for which session and those it continues (`lineage`, the session first), from which store
    and database of the host, with how much room, at what time (seconds since 1970), in which conversation."""

    session: str
    lineage: Callable[[], Sequence[str]]
    store: Store
    state: StateDb
    room: Room
    now: float
    messages: Any = ()

    def call(self, name: str, arguments: Any) -> str:
        """The reply of a tool: always a JSON object."""
        if name == EXPAND_TOOL:
            return expand(arguments, self.store, self.lineage, self.room, Rescue(self._archived, self._calling))
        if name == SESSION_SEARCH_TOOL:
            return answer(arguments, self._scope())
        return error(f"hermes_jev has no tool {str(name)[:60]!r}; it has {EXPAND_TOOL} and {SESSION_SEARCH_TOOL}")

    def more(self, arguments: Any, reply: Any) -> Any:
        """The reply of the host's own `session_search` with what it cannot reach."""
        return extended(reply, arguments, self._scope())

    def _scope(self) -> Scope:
        return Scope(self.session, self.lineage, self.store, self.state, self.room, self.now)

    def _archived(self, pointer: str) -> Original | None:
        """The original in the host's own rows of this lineage, proved by its hash."""
        try:
            return self.state.original(pointer, self.lineage())
        except StoreError:
            return None

    def _calling(self, pointer: str) -> Call | None:
        """The call in this conversation whose result was cut and names the pointer."""
        if not isinstance(self.messages, list) or not all(isinstance(message, Mapping) for message in self.messages):
            return None
        for exchange in reversed(Transcript.parse(self.messages).completed):
            cut = cut_in(exchange.result)
            if cut is not None and cut.notice.id == pointer and cut.notice.whole:
                return Call(exchange.tool, exchange.arguments)
        return None
