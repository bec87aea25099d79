"""Which session an agent runs, and which sessions that one continues. Plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .errors import StoreError
from .store import Store


@dataclass
class Lineage:
    """`session` is the id that the host uses now; `before` are those it continues as far as this agent saw it, nearest
    first. What the store forgets, this agent still knows."""

    session: str = ""
    before: tuple[str, ...] = ()

    def is_here(self, session: str, continues: str) -> bool:
        """Whether that is where the agent is already."""
        return session == self.session and (not continues or continues in self.line)

    def begin(self, session: str) -> None:
        """Another session, which continues none."""
        self.session, self.before = session, ()

    def go_on(self, session: str, continues: str, store: Store) -> None:
        """The same conversation under another id. A session that this agent did not run brings no ancestors along.
        Raises StoreError when the link cannot be stored; this agent knows it all the same."""
        known = self.before if continues == self.session or session == self.session else ()
        self.before = tuple(dict.fromkeys([continues, *known]))
        self.session = session
        store.link(session, continues, "compression")

    @property
    def line(self) -> tuple[str, ...]:
        """The session and those it continues."""
        return (self.session, *self.before)

    def may_open(self, store: Store, parents: Iterable[str]) -> list[str]:
        """The sessions whose pointers this one opens: its own and those of the sessions it continues, by what the agent
        saw, by our own records, and by the host's (`parents`)."""
        try:
            known = store.ancestry(*self.line)
        except StoreError:
            # Whatever is asked for next meets the same fault, and says it.
            known = []
        return list(dict.fromkeys([*self.line, *known, *parents]))
