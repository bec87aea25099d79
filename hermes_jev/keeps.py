"""What a person asked to have back (`/jev keep`): a pass puts it back where it was cut, and cuts it no more.

Only the window ladder stands above that. What it cuts is taken off the list and said, or one pass would undo the other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .errors import StoreError
from .job import Job
from .policy import Cuts, Decision
from .restore import put_some_back
from .store import Store
from .store.keeps import kept_whole, let_go
from .store.values import MIN_ID_LENGTH, pointer_id
from .transcript import Exchange

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Keeps:
    """Pointers that stay whole."""

    pointers: frozenset[str] = frozenset()

    @classmethod
    def of(cls, store: Store) -> Keeps:
        """The store's list; empty when it cannot be read, which is logged."""
        try:
            return cls(kept_whole(store))
        except StoreError as error:
            logger.warning("hermes_jev: what is to be kept whole cannot be read: %s", error)
            return cls()

    def pointer(self, exchange: Exchange, cuts: Cuts) -> str | None:
        """The pointer under which this exchange is kept whole, if it is."""
        content = cuts.content(exchange) if self.pointers else None
        if content is None:
            return None
        full = pointer_id(bytes.fromhex(content), length=len(content))
        near = [pointer for pointer in self.pointers if len(pointer) >= MIN_ID_LENGTH and full.startswith(pointer)]
        return max(near, key=len, default=None)

    def put_back(self, messages: list[Any], job: Job) -> list[Any]:
        """The list with what was cut of them put back; the very list when there is nothing to put back, or no room."""
        if not self.pointers or job.overflow or not job.settings.enabled or job.settings.mode == "shadow":
            return messages
        try:
            restored = put_some_back(messages, job.store, self.pointers)
        except StoreError as error:
            logger.warning("hermes_jev: what is to be kept whole cannot be put back: %s", error)
            return messages
        if restored is not messages:
            logger.info("hermes_jev: originals were put back, as /jev keep asked for")
        return restored

    def give_up(self, decisions: Iterable[Decision], cuts: Cuts, store: Store) -> list[str]:
        """Take off the list what the ladder had to cut; which pointers that were."""
        changed = [one for one in decisions if one.action != "keep"] if self.pointers else []
        lost = [pointer for one in changed if (pointer := self.pointer(one.exchange, cuts)) is not None]
        if not lost:
            return []
        try:
            let_go(store, lost)
        except StoreError as error:
            logger.warning("hermes_jev: the list of what is kept whole was not changed: %s", error)
        logger.warning("hermes_jev: the window is too full to keep %s whole any longer", ", ".join(lost))
        return lost
