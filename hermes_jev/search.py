"""Find what was cut: the stored outputs of a lineage that answer a query, with what to show of each."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .errors import StoreError
from .excerpts import Hit, Material
from .ranking import Candidate, Field, ranked
from .readable import readable
from .store import Listed, Original, Store
from .store.index import UNSEARCHED_TOOLS, Found, Index
from .terms import query_terms

CATCH_UP_S = 2.0
"""How long a search may take in what was stored since the last one, in seconds."""

_QUERY_CHARS = 20_000
_LITERAL_CHARS = 200
_SCANNED_OUTPUTS = 300
_SCANNED_CHARS = 5_000_000
_AT_ONCE = 20


class SearchHit(NamedTuple):
    """One stored output: its pointer, what it was, when it was stored (seconds since 1970), its readable text, and what
    it adds to the hits before it."""

    pointer: str
    original: Original
    created: float
    text: str
    score: float


class Answer(NamedTuple):
    """The hits, best first, how much each term of the query tells, and how many outputs could not be searched yet."""

    hits: list[SearchHit]
    weights: Mapping[str, float]
    unread: int

    def material(self) -> Material:
        """What to show of the hits."""
        return Material([Hit(hit.text, hit.score) for hit in self.hits], self.weights)


def search(
    store: Store, query: str, sessions: Collection[str] | None, limit: int, budget_s: float = CATCH_UP_S
) -> Answer:
    """At most `limit` stored outputs of these sessions (of all, when None) for a query. Any query is allowed.

    Raises StoreError when the store cannot be read.
    """
    query = query[:_QUERY_CHARS]
    found = _found(store, query_terms(query), sessions, budget_s)
    best = ranked(found.candidates, found.field, limit)
    if not best and query.strip():
        found = _scanned(store, query.strip()[:_LITERAL_CHARS], sessions, found.unread)
        best = ranked(found.candidates, found.field, limit)
    originals = store.originals([one.candidate.pointer for one in best], sessions)
    hits = [
        SearchHit(one.candidate.pointer, original, one.candidate.created, readable(original.result), one.score)
        for one, original in zip(best, originals, strict=True)
        if isinstance(original, Original)
    ]
    weights = {term: found.field.weight(term) for one in best for term in one.candidate.counts}
    return Answer(hits, weights, found.unread)


def stored(store: Store, sessions: Collection[str] | None) -> list[Listed]:
    """What these sessions have stored, newest first, each pointer once. Raises StoreError."""
    newest = reversed(store.listed(sessions))
    return list({one.pointer: one for one in newest if one.tool not in UNSEARCHED_TOOLS}.values())


def _found(store: Store, terms: Sequence[str], sessions: Collection[str] | None, budget_s: float) -> Found:
    try:
        return Index(store).find(terms, sessions, budget_s)
    except StoreError:
        # No file can be written beside the store, or the one there is out of reach: one for this search alone.
        with tempfile.TemporaryDirectory() as folder:
            return Index(store, Path(folder)).find(terms, sessions, budget_s)


def _scanned(store: Store, literal: str, sessions: Collection[str] | None, unread: int) -> Found:
    """What holds the query as it stands, for queries without a term: signs, emoji, the middle of a word."""
    newest = stored(store, sessions)[:_SCANNED_OUTPUTS]
    room = _SCANNED_CHARS
    candidates = []
    for start in range(0, len(newest), _AT_ONCE):
        some = newest[start : start + _AT_ONCE]
        for one, original in zip(some, store.originals([one.pointer for one in some], sessions), strict=True):
            text = readable(original.result) if isinstance(original, Original) else ""
            room -= len(text)
            if count := text.casefold().count(literal.casefold()):
                candidates.append(Candidate(one.pointer, one.created, 1, {literal.casefold(): count}))
        if room < 0:
            break
    holders = {literal.casefold(): len(candidates)}
    return Found(candidates, Field(len(candidates) + 1, 1.0, holders), unread)
