"""The engine's own way back, asked as an agent would: one `session_search`, then at most one `expand`."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import StoreError
from ..paging import Room
from ..policy import Cuts
from ..session_search import Scope, answer
from ..state_db import StateDb
from ..store import Store
from ..store.index import Index
from ..store.values import pointer_id
from ..tools import expand
from .case import Case
from .recovery import HITS, missing_of, query_of
from .score import Loss

_NO_STATE = "no-state.db"
"""A database of the host that is not there: nothing but the store answers."""


class Wanted(NamedTuple):
    """A string, and the pointers of the originals that hold it."""

    text: str
    pointers: Collection[str]


class Brought(NamedTuple):
    """What one search brought back: an original that holds one of the strings among the first hits (`found`), one of
    the strings in the reply (`shown`), or there or in one page of one of those hits (`expanded`)."""

    found: bool
    shown: bool
    expanded: bool
    reply_chars: int


@dataclass(frozen=True)
class OwnSearch:
    """The search over what a session of a store may open."""

    store: Store
    session: str

    def take_in(self) -> None:
        """Index all of it, however long that takes: a search by itself stops after a while."""
        Index(self.store).follow([self.session], math.inf)

    def brought(self, query: str, wanted: Sequence[Wanted]) -> Brought:
        """Search once, and open the first hits, a page each, until one shows a wanted string: the best choice of one.
        Raises StoreError."""
        if not query.strip():
            return Brought(found=False, shown=False, expanded=False, reply_chars=0)
        state = StateDb(self.store.folder / _NO_STATE)
        # With the clock at zero every hit is from just now, so that the reply is the same whenever it is made.
        reply = answer({"query": query}, Scope(self.session, self._lineage, self.store, state, Room(), now=0.0))
        hits: Sequence[Mapping[str, Any]] = _read(reply)["results"]
        texts = [f"{hit['snippet']}\n{hit.get('names', '')}" for hit in hits]
        shown = any(one.text in text for text in texts for one in wanted)
        return Brought(
            found=any(hit["id"] in one.pointers for hit in hits[:HITS] for one in wanted),
            shown=shown,
            expanded=shown or any(one.text in page for page in map(self._page, hits[:HITS]) for one in wanted),
            reply_chars=len(reply),
        )

    def _page(self, hit: Mapping[str, Any]) -> str:
        """The page that the hit says to open: the lines it names, or the whole original."""
        arguments = {"id": hit["id"], **({"lines": hit["lines"]} if "lines" in hit else {})}
        text: str = _read(expand(arguments, self.store, self._lineage, Room()))["text"]
        return text

    def _lineage(self) -> Sequence[str]:
        return [self.session]


def _read(reply: str) -> Mapping[str, Any]:
    """A reply of a tool. One that says what went wrong measures nothing, so it ends the evaluation."""
    fields: Mapping[str, Any] = json.loads(reply)
    if "error" in fields:
        raise StoreError(str(fields["error"]))
    return fields


class OwnRecovery(NamedTuple):
    """How many of the steps that missed something each part of the way back would have helped."""

    found: int
    shown: int
    expanded: int


def own_recovery_of(case: Case, loss: Loss, search: OwnSearch, cuts: Cuts) -> OwnRecovery:
    """Search once for each step that misses something carried by a result, with the same query as the plain search."""
    missing = missing_of(loss)
    if missing:
        search.take_in()
    brought = []
    for step, needs in missing.items():
        wanted = [Wanted(need.text, _pointers(case, need.results, cuts)) for need in needs]
        brought.append(search.brought(query_of(case, step, needs), wanted))
    return OwnRecovery(
        sum(one.found for one in brought), sum(one.shown for one in brought), sum(one.expanded for one in brought)
    )


def _pointers(case: Case, places: Sequence[int], cuts: Cuts) -> frozenset[str]:
    contents = [cuts.content(case.results[place]) for place in places]
    return frozenset(pointer_id(bytes.fromhex(content)) for content in contents if content is not None)
