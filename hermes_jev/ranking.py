"""Which stored outputs answer a query best: BM25 over a lineage, the next one chosen for what the others lack.

Reads of the same file, or runs of the same command, match the same words. After one of them the next is worth less, so
that the first few hits cover the query instead of repeating each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

K1 = 1.2
B = 0.2
"""Long outputs are barely held against themselves: what is looked for mostly stands in them."""

COVERED = 0.5
"""What a term is worth once a better hit has it, for each such hit."""


class Candidate(NamedTuple):
    """A stored output that holds some of the terms: how often each, of how many terms in all, when it was stored
    (seconds since 1970)."""

    pointer: str
    created: float
    length: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Field:
    """What is searched: how many outputs, of what mean length in terms, and how many hold each term of the query."""

    outputs: int
    mean_length: float
    holders: Mapping[str, int]

    def weight(self, term: str) -> float:
        """How much a term tells: its inverse document frequency, 0 for a term that nothing holds."""
        holders = self.holders.get(term, 0)
        return math.log(1 + (self.outputs - holders + 0.5) / (holders + 0.5)) if holders else 0.0


class Ranked(NamedTuple):
    """A candidate with what it adds to those before it."""

    candidate: Candidate
    score: float


def ranked(candidates: Sequence[Candidate], field: Field, limit: int) -> list[Ranked]:
    """The best candidates, best first, at most `limit`; of equals the newest."""
    worth = {candidate.pointer: _worth(candidate, field) for candidate in candidates}
    left = sorted(candidates, key=lambda one: (sum(worth[one.pointer].values()), one.created), reverse=True)
    seen: Counter[str] = Counter()
    chosen: list[Ranked] = []

    def added(candidate: Candidate) -> float:
        return sum(value * COVERED ** seen[term] for term, value in worth[candidate.pointer].items())

    while left and len(chosen) < limit:
        best = max(left, key=lambda one: (added(one), one.created))
        chosen.append(Ranked(best, added(best)))
        left.remove(best)
        seen.update(worth[best.pointer].keys())
    return chosen


def _worth(candidate: Candidate, field: Field) -> dict[str, float]:
    """BM25 by term."""
    normal = K1 * (1 - B + B * candidate.length / max(field.mean_length, 1.0))
    return {
        term: field.weight(term) * count * (K1 + 1) / (count + normal)
        for term, count in candidate.counts.items()
        if field.weight(term)
    }
