"""One test case: a session cut at a place, what was needed afterwards, and what could be cut before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import notice
from ..policy import Cuts
from ..settings import Settings
from ..store.values import ANY_POINTER
from ..survey import survey
from ..transcript import Exchange, Transcript
from .corpus import Session
from .generic import Generic
from .needed import Need, needs
from .texts import Haystack, calls_of, cut_at, raw_arguments, size_of

LEAST_NEEDS = 3
LEAST_RESULTS = 5
LEAST_TOOL_CHARS = 4_000
"""Below these a share of lost strings says nothing, and the case counts for sizes only."""

OLD_RESULTS = 10
"""A need is old when its newest carrier is so many results back."""


@dataclass(frozen=True)
class Case:
    """`prefix` are the messages before `cut`, `needs` what is written of them afterwards. `results` maps the place of
    each completed result to its exchange, `needed` counts the strings whose newest carrier it is. `loose` are, for each
    need, the messages that hold it untouched, `sizes` the characters of each message. `bound` are the characters of
    tool results that the pins let go."""

    session: Session
    share: float
    cut: int
    prefix: list[Any]
    needs: tuple[Need, ...]
    results: Mapping[int, Exchange]
    needed: Mapping[int, int]
    loose: tuple[frozenset[int], ...]
    sizes: tuple[int, ...]
    chars: int
    tool_chars: int
    bound: int

    @property
    def measures_loss(self) -> bool:
        """Whether a share of lost strings means anything here."""
        return (
            len(self.needs) >= LEAST_NEEDS
            and len(self.results) >= LEAST_RESULTS
            and self.tool_chars >= LEAST_TOOL_CHARS
            and not self.session.composed
        )

    def is_old(self, need: Need) -> bool:
        """Whether the newest result that carries it is at least `OLD_RESULTS` results back."""
        if not need.results:
            return False
        return sum(1 for place in self.results if place > need.results[-1]) >= OLD_RESULTS


def case_of(session: Session, share: float, generic: Generic, settings: Settings) -> Case | None:
    """The session cut where `share` of its characters are over; None where next to nothing follows or there is no tool
    result before."""
    cut = cut_at(session.messages, share)
    if cut >= len(session.messages) - 2:
        return None
    case = _without_needs(session, share, cut, settings)
    if case is None or session.composed:
        return case
    found = needs(session.messages, cut, generic, session.group)
    needed = Counter(need.results[-1] for need in found if need.results)
    return replace(case, needs=found, needed=needed, loose=_loose(case.prefix, found))


def whole_case_of(session: Session, settings: Settings) -> Case | None:
    """The session as it ended, for sizes alone: nothing follows that could need anything. None where there is no tool
    result."""
    return _without_needs(session, 1.0, len(session.messages), settings)


def _without_needs(session: Session, share: float, cut: int, settings: Settings) -> Case | None:
    prefix = session.messages[:cut]
    transcript = Transcript.parse(prefix)
    results = {e.result_at: e for e in transcript.completed if e.result_at is not None}
    if not results:
        return None
    sizes = tuple(size_of([message]) for message in prefix)
    return Case(
        session=session,
        share=share,
        cut=cut,
        prefix=prefix,
        needs=(),
        results=results,
        needed={},
        loose=(),
        sizes=sizes,
        chars=sum(sizes),
        tool_chars=sum(exchange.size for exchange in results.values()),
        bound=most_removable(transcript, settings),
    )


def most_removable(transcript: Transcript, settings: Settings) -> int:
    """Characters that are gone when every result that no pin holds is down to a notice."""
    free = survey(transcript, settings, Cuts(settings)).candidates
    return sum(exchange.size - len(notice.removed(exchange, ANY_POINTER)) for exchange in free)


def _loose(prefix: list[Any], found: tuple[Need, ...]) -> tuple[frozenset[int], ...]:
    """Arguments count in both their forms, so that an escape never hides a string."""
    raw = Haystack((at, raw_arguments(f)) for at, message in enumerate(prefix) for f in calls_of(message))
    return tuple(frozenset([*(c.at for c in need.carriers), *raw.holders(need.text)]) for need in found)
