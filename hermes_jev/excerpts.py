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

from .terms import names_in, term_counts

PIECE_CHARS = 160
"""A longer line is shown in pieces of at most this many characters."""

GAP = "…"

_NEIGHBOURS = ((1, 0.7), (2, 0.4))
"""How much of what a line holds counts for the lines that many places away."""

_REGION = 10
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
    """What is shown of one hit: lines in order with GAP between those that do not follow each other, names, and the
    number (from 1) of the line that fits the query best, 0 when none does."""

    text: str
    names: tuple[str, ...]
    line: int


class _Piece(NamedTuple):
    text: str
    line: int
    terms: frozenset[str]


class _Choice(NamedTuple):
    value: float
    hit: int
    at: int
    cost: int


def excerpts(hits: Sequence[Hit], weights: Mapping[str, float], chars: int) -> list[Excerpt]:
    """One excerpt for each hit; together at most `chars` characters as they stand in JSON.

    `weights` says how much each term of the query tells.
    """
    pieces = [_pieces(hit.text[:_WHOLE_TEXT], weights) for hit in hits]
    rarity = _rarity(pieces)
    values = [_near(own, weights, hit.score, rarity) for own, hit in zip(pieces, hits, strict=True)]
    shares = _names_per_piece(pieces, values)
    choices = sorted(_choices(pieces, values, shares), reverse=True)
    taken, left = _take(choices, pieces, int(chars * _LINES_SHARE))
    shown = "\n".join(pieces[hit][at].text for hit, at in taken)
    names = _take_names(pieces, values, shares, weights, shown, left + chars - int(chars * _LINES_SHARE))
    return [
        _excerpt(own, sorted(at for hit, at in taken if hit == number), values[number], names[number])
        for number, own in enumerate(pieces)
    ]


def _pieces(text: str, weights: Mapping[str, float]) -> list[_Piece]:
    # What is searched as it stands is no term, and counts wherever it stands.
    literal = {term for term in weights if term not in term_counts(term)}
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        for part in _split(line):
            folded = part.casefold()
            # Cutting into terms is the slow part, and most lines hold none of the query's.
            inside = {term for term in weights if term in folded}
            terms = inside & (literal | term_counts(part).keys()) if inside else inside
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
    """What each piece is worth by its own words, those around it, and how dense the query is in its region."""
    own = [sum(weights[term] for term in piece.terms) for piece in pieces]
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


def _names_per_piece(pieces: Sequence[Sequence[_Piece]], values: Sequence[Sequence[float]]) -> Names:
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


def _take(
    choices: Sequence[_Choice], pieces: Sequence[Sequence[_Piece]], left: int
) -> tuple[list[tuple[int, int]], int]:
    taken: list[tuple[int, int]] = []
    seen: set[str] = set()
    for choice in choices:
        at = -choice.at
        text = pieces[choice.hit][at].text
        if choice.cost <= left and text not in seen:
            seen.add(text)
            taken.append((choice.hit, at))
            left -= choice.cost
    return taken, left


def _take_names(
    pieces: Sequence[Sequence[_Piece]],
    values: Sequence[Sequence[float]],
    names: Names,
    weights: Mapping[str, float],
    shown: str,
    left: int,
) -> list[list[str]]:
    """The names worth most that no shown line holds, by hit."""
    best: dict[str, tuple[float, int]] = {}
    for (hit, at), rare in names.items():
        for name, rarity in rare.items():
            if len(name) in _NAME_CHARS:
                own = sum(weights.get(term, 0.0) for term in term_counts(name))
                value = (own + values[hit][at] / 2) * rarity / math.sqrt(len(name) + _NAME_FRAME)
                best[name] = max(best.get(name, (0.0, 0)), (value, hit))
    chosen: list[list[str]] = [[] for _ in pieces]
    for name, (value, hit) in sorted(best.items(), key=lambda item: (-item[1][0], item[0])):
        cost = len(json.dumps(name, ensure_ascii=False)) - 2 + _NAME_FRAME
        if value > 0 and cost <= left and name not in shown:
            chosen[hit].append(name)
            left -= cost
    return chosen


def _excerpt(pieces: Sequence[_Piece], taken: Sequence[int], values: Sequence[float], names: list[str]) -> Excerpt:
    lines: list[str] = []
    for before, at in zip([None, *taken], taken, strict=False):
        if before is not None and at != before + 1:
            lines.append(GAP)
        lines.append(pieces[at].text)
    best = max(range(len(values)), key=values.__getitem__, default=None)
    line = pieces[best].line if best is not None and values[best] > 0 else 0
    return Excerpt("\n".join(lines), tuple(names), line)


def _cost(text: str) -> int:
    """Characters of a line in JSON, with its line end and, at worst, a gap before it."""
    return len(json.dumps(text, ensure_ascii=False)) + 3
