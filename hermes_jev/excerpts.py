"""What to show of the hits of a search, in a reply of limited length.

Lines are chosen over all hits together, by what they are worth for each character: how many telling words of the query
stand in and around them, whether they lie in the densest part of their text, and how many names they hold (identifiers,
paths, numbers: what one searches for is mostly one of these). What is left of the length goes to names alone, from near
the matches: several fit where one more line would not.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .terms import names_in, terms_in

PIECE_CHARS = 240
"""A longer line is shown in pieces of at most this many characters."""

GAP = "…"

_NEIGHBOURS = ((1, 0.7), (2, 0.4))
"""How much of what a line holds counts for the lines that many places away."""

_REGION = 12
_REGION_POWER = 2.0
_NAME_BONUS = 0.5
_LINES_SHARE = 0.7
_LEAST_PIECE = 3
_NAME_CHARS = range(5, 101)
_NAME_FRAME = 2
_WHOLE_TEXT = 1_000_000


class Hit(NamedTuple):
    """The readable text of a hit, and its weight among the hits."""

    text: str
    score: float


class Excerpt(NamedTuple):
    """What is shown of one hit: lines in order with GAP between those that do not follow each other, and names."""

    text: str
    names: tuple[str, ...]


class _Piece(NamedTuple):
    text: str
    line: int
    terms: frozenset[str]


class _Choice(NamedTuple):
    value: float
    hit: int
    at: int
    cost: int


class Material:
    """The texts of some hits cut into pieces and valued once, to choose from for a reply of any length.

    `weights` says how much each term of the query tells.
    """

    def __init__(self, hits: Sequence[Hit], weights: Mapping[str, float]) -> None:
        self._pieces = [_pieces(hit.text[:_WHOLE_TEXT], weights) for hit in hits]
        rarity = _rarity(self._pieces)
        self._values = [_near(own, weights, hit.score, rarity) for own, hit in zip(self._pieces, hits, strict=True)]
        rare = _rare_names(self._pieces, self._values)
        choices = sorted(_choices(self._pieces, self._values, rare), reverse=True)
        self._choices = [*_leads(self._pieces, self._values), *choices]
        self._names = _named(rare, self._values, weights)

    def excerpts(self, chars: int) -> list[Excerpt]:
        """One excerpt for each hit; together about `chars` characters as they stand in JSON."""
        for_lines = int(chars * _LINES_SHARE)
        taken, left = self._take(for_lines)
        shown = "\n".join(self._pieces[hit][at].text for hit, at in taken)
        names = self._take_names(shown, left + chars - for_lines)
        return [
            Excerpt(_joined(own, sorted(at for hit, at in taken if hit == number)), tuple(names[number]))
            for number, own in enumerate(self._pieces)
        ]

    def page(self, hit: int, chars: int) -> tuple[int, int] | None:
        """First and last line, from 1, of the `chars` characters of a hit that fit the query best; None when all of it
        fits, or nothing fits."""
        return _best_window(self._pieces[hit], self._values[hit], chars)

    def _take(self, left: int) -> tuple[list[tuple[int, int]], int]:
        taken: list[tuple[int, int]] = []
        seen: set[str] = set()
        told: set[int] = set()
        for choice in self._choices:
            at = -choice.at
            text = self._pieces[choice.hit][at].text
            # What another hit shows already is not shown again, unless a hit would show nothing.
            if choice.cost <= left and (text not in seen or choice.hit not in told):
                seen.add(text)
                told.add(choice.hit)
                taken.append((choice.hit, at))
                left -= choice.cost
        return taken, left

    def _take_names(self, shown: str, left: int) -> list[list[str]]:
        """The names worth most that no shown line holds, by hit."""
        chosen: list[list[str]] = [[] for _ in self._pieces]
        for name, hit, cost in self._names:
            if cost <= left and name not in shown:
                chosen[hit].append(name)
                left -= cost
        return chosen


def _pieces(text: str, weights: Mapping[str, float]) -> list[_Piece]:
    # What is searched as it stands is no term, and counts wherever it stands.
    literal = {term for term in weights if term not in terms_in(term)}
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        for part in _split(line):
            folded = part.casefold()
            # Cutting into terms is the slow part, and most lines hold none of the query's.
            inside = {term for term in weights if term in folded}
            terms = inside & (literal | terms_in(part)) if inside else inside
            found.append(_Piece(part.strip(), number, frozenset(terms)))
    return found


def _split(line: str) -> Iterator[str]:
    """The line in pieces, cut after a comma or blank where there is one in the second half of a piece."""
    start = 0
    while len(line) - start > PIECE_CHARS:
        middle, end = start + PIECE_CHARS // 2, start + PIECE_CHARS
        cut = max(line.rfind(mark, middle, end) + len(mark) for mark in ("}, ", ", ", ",", " ", "\\n"))
        end = cut if cut > middle else end
        yield line[start:end]
        start = end
    yield line[start:]


def _rarity(pieces: Sequence[Sequence[_Piece]]) -> dict[str, float]:
    """How much each term tells among the lines of the hits."""
    count = Counter(term for own in pieces for piece in own for term in piece.terms)
    total = sum(map(len, pieces))
    return {term: math.log(1 + total / (1 + number)) for term, number in count.items()}


def _near(
    pieces: Sequence[_Piece], weights: Mapping[str, float], score: float, rarity: Mapping[str, float]
) -> list[float]:
    """What each piece is worth by its own words, those around it, and how dense the query is in its region.

    A word tells as much as it is rare among the outputs, and among the lines of the hits.
    """
    telling = {term: math.sqrt(weights[term] * rare) for term, rare in rarity.items()}
    own = [sum(telling[term] for term in piece.terms) for piece in pieces]
    region = _regions(pieces, rarity)
    densest = max(region, default=0.0) or 1.0
    values = []
    for at in range(len(pieces)):
        value = own[at]
        for away, part in _NEIGHBOURS:
            value += part * (own[at - away] if at >= away else 0.0)
            value += part * (own[at + away] if at + away < len(own) else 0.0)
        values.append(score * value * (region[at] / densest) ** _REGION_POWER)
    return values


def _regions(pieces: Sequence[_Piece], rarity: Mapping[str, float]) -> list[float]:
    """For each piece the weight of the different terms within `_REGION` pieces of it."""
    inside: Counter[str] = Counter()
    found = []
    total = 0.0
    for at in range(-_REGION, len(pieces)):
        entering, leaving = at + _REGION, at - _REGION - 1
        for term in pieces[entering].terms if entering < len(pieces) else ():
            inside[term] += 1
            total += rarity[term] if inside[term] == 1 else 0.0
        for term in pieces[leaving].terms if leaving >= 0 else ():
            inside[term] -= 1
            total -= rarity[term] if inside[term] == 0 else 0.0
        if at >= 0:
            found.append(max(total, 0.0))
    return found


Names = Mapping[tuple[int, int], Mapping[str, float]]
"""Hit and piece → the names in the piece, with how rare each is among the hits' pieces."""


def _rare_names(pieces: Sequence[Sequence[_Piece]], values: Sequence[Sequence[float]]) -> Names:
    """Of the pieces that are near a match."""
    found = {
        (hit, at): names_in(piece.text)
        for hit, own in enumerate(pieces)
        for at, piece in enumerate(own)
        if values[hit][at] > 0
    }
    count = Counter(name for names in found.values() for name in names)
    return {place: {name: math.log(1 + len(found) / count[name]) for name in names} for place, names in found.items()}


def _choices(pieces: Sequence[Sequence[_Piece]], values: Sequence[Sequence[float]], names: Names) -> Iterator[_Choice]:
    for (hit, at), rare in names.items():
        text = pieces[hit][at].text
        if len(text) >= _LEAST_PIECE:
            cost = _cost(text)
            yield _Choice(values[hit][at] * (1 + _NAME_BONUS * sum(rare.values())) / cost, hit, -at, cost)


def _named(names: Names, values: Sequence[Sequence[float]], weights: Mapping[str, float]) -> list[tuple[str, int, int]]:
    """The names, worth most first, each with the hit that it is best shown with and what it costs."""
    best: dict[str, tuple[float, int]] = {}
    for (hit, at), rare in names.items():
        for name, rarity in rare.items():
            if len(name) in _NAME_CHARS and name.casefold() not in weights:
                own = sum(weights.get(term, 0.0) for term in terms_in(name))
                value = (own + values[hit][at] / 2) * rarity / math.sqrt(len(name) + _NAME_FRAME)
                best[name] = max(best.get(name, (0.0, 0)), (value, hit))
    order = sorted((item for item in best.items() if item[1][0] > 0), key=lambda item: (-item[1][0], item[0]))
    return [(name, hit, len(json.dumps(name, ensure_ascii=False)) - 2 + _NAME_FRAME) for name, (_, hit) in order]


def _leads(pieces: Sequence[Sequence[_Piece]], values: Sequence[Sequence[float]]) -> Iterator[_Choice]:
    """The best piece of each hit that holds a term itself: whatever else is shown, a match is."""
    for hit, own in enumerate(pieces):
        matching = [(values[hit][at], -at) for at, piece in enumerate(own) if piece.terms]
        if matching:
            value, at = max(matching)
            yield _Choice(value, hit, at, _cost(own[-at].text))


def _joined(pieces: Sequence[_Piece], taken: Sequence[int]) -> str:
    lines: list[str] = []
    for before, at in zip([None, *taken], taken, strict=False):
        if before is not None and at != before + 1:
            lines.append(GAP)
        lines.append(pieces[at].text)
    return "\n".join(lines)


def _best_window(pieces: Sequence[_Piece], values: Sequence[float], chars: int) -> tuple[int, int] | None:
    costs = [_cost(piece.text) for piece in pieces]
    if sum(costs) <= chars or not any(values):
        return None
    best, found = -1.0, (0, 0)
    start, cost, value = 0, 0, 0.0
    for end in range(len(pieces)):
        cost, value = cost + costs[end], value + values[end]
        while cost > chars and start < end:
            cost, value = cost - costs[start], value - values[start]
            start += 1
        if value > best:
            best, found = value, (start, end)
    return pieces[found[0]].line, pieces[found[1]].line


def _cost(text: str) -> int:
    """Characters of a line in JSON, with its line end and, at worst, a gap before it."""
    return len(json.dumps(text, ensure_ascii=False)) + 3
