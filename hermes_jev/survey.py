"""Sort a transcript's exchanges into what is pinned and what may be judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .pins import Pin, pins
from .policy import Cuts, Pressure
from .settings import Settings
from .transcript import Exchange, Transcript


@dataclass(frozen=True)
class Survey:
    """What may be judged and what not. `contents` maps the ordinals of all that could be cut to content hashes."""

    pinned: Mapping[int, Pin]
    candidates: tuple[Exchange, ...]
    soft: tuple[tuple[Exchange, Pin], ...]
    contents: Mapping[int, str]


def survey(transcript: Transcript, settings: Settings, cuts: Cuts) -> Survey:
    """Sort the exchanges into pinned and candidates; what cannot be shortened or stored exactly counts as pinned."""
    pinned = dict(pins(transcript, settings))
    contents: dict[int, str] = {}
    for exchange in transcript.completed:
        if pinned.get(exchange.ordinal) in ("small", "file_preview"):
            continue
        content = cuts.content(exchange)
        if content is None or cuts.best_gain(exchange) is None:
            pinned[exchange.ordinal] = "unshrinkable"
        else:
            contents[exchange.ordinal] = content
    completed = transcript.completed
    candidates = tuple(exchange for exchange in completed if exchange.ordinal not in pinned)
    soft = tuple((e, pinned[e.ordinal]) for e in completed if e.ordinal in pinned and e.ordinal in contents)
    return Survey(pinned, candidates, soft, contents)


def calls_until_worth(found: Survey, pressure: Pressure, cuts: Cuts) -> int | None:
    """How many more completed calls would unpin enough to be worth a pass; None if what is pinned now never would."""
    waiting = [exchange for exchange, pin in found.soft if pin in ("last_calls", "newest_turn")]
    gained = 0
    for calls, exchange in enumerate(waiting, 1):
        gained += cuts.best_gain(exchange) or 0
        if gained >= pressure.least_gain:
            return calls
    return None
