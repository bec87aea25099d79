"""Sort a transcript's exchanges into what is pinned and what may be judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .keeps import Keeps
from .pins import KEPT, UNSEEN, Pin, last_of, pins
from .policy import Cuts, Pressure
from .settings import Settings
from .transcript import Exchange, Transcript


@dataclass(frozen=True)
class Survey:
    """What may be judged and what not. `contents` maps the ordinals of all that could be cut to content hashes;
    `recent` are the results pinned for being recent, each with its place among the completed calls."""

    pinned: Mapping[int, Pin]
    candidates: tuple[Exchange, ...]
    soft: tuple[tuple[Exchange, Pin], ...]
    contents: Mapping[int, str]
    recent: tuple[tuple[int, Exchange], ...]

    def newest(self, calls: int, completed: Sequence[Exchange]) -> Survey:
        """With candidates among so many last completed calls alone."""
        newest = {exchange.ordinal for exchange in last_of(completed, calls)}
        return replace(self, candidates=tuple(e for e in self.candidates if e.ordinal in newest))


def survey(transcript: Transcript, settings: Settings, cuts: Cuts, keeps: Keeps | None = None) -> Survey:
    """Sort the exchanges into pinned and candidates; what cannot be shortened or stored exactly counts as pinned, and
    what a person wants whole (`keeps`) is."""
    pinned = dict(pins(transcript, settings))
    contents: dict[int, str] = {}
    for exchange in transcript.completed:
        if pinned.get(exchange.ordinal) in ("small", "file_preview") and exchange.bulk == exchange.size:
            continue
        content = cuts.content(exchange)
        if content is None or cuts.best_gain(exchange) is None:
            pinned[exchange.ordinal] = "unshrinkable"
        else:
            contents[exchange.ordinal] = content
    completed = transcript.completed
    if keeps is not None:
        # Small results too: what was cut of such a call is its input, or its whole turn.
        pinned |= {e.ordinal: KEPT for e in completed if keeps.pointer(e, cuts) is not None}
    candidates = tuple(exchange for exchange in completed if exchange.ordinal not in pinned)
    soft = tuple((e, pinned[e.ordinal]) for e in completed if e.ordinal in pinned and e.ordinal in contents)
    recent = tuple(
        (place, exchange)
        for place, exchange in enumerate(completed)
        if exchange.ordinal in contents and pinned.get(exchange.ordinal) in ("last_calls", UNSEEN)
    )
    return Survey(pinned, candidates, soft, contents, recent)


WORTH_WAITING = 3
"""A pass is followed by the next one when this many times the least gain has come into reach: hosts allow
a turn only a few passes."""


def calls_until_worth(found: Survey, completed: int, pressure: Pressure, cuts: Cuts) -> int | None:
    """After how many more completed calls recent results, no longer recent then, could free enough for another pass;
    None if what is recent now never would. `completed` is how many calls there are."""
    pinned = pressure.settings.pin_last_calls
    gained = 0
    for place, exchange in found.recent:
        gained += cuts.best_gain(exchange) or 0
        if gained >= WORTH_WAITING * pressure.least_gain:
            return max(1, pinned - (completed - 1 - place))
    return None
