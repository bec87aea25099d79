"""An evaluation from paths to rows: sessions one after another, or several at once in processes of their own."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from ..tokens import message_tokens
from . import generic as generics
from .case import case_of
from .corpus import Session, sessions
from .cost import Replay, replays
from .generic import Generic, owner_of
from .measure import Measured, measure
from .options import Options
from .passes import Passes, repeat
from .prices import Prices
from .rows import Row, Timing

LEAST_FOR_COST = 100_000
"""Estimated tokens from which a session is replayed with prices: below, no policy acts."""

Half = Literal["even", "odd"]


@dataclass(frozen=True)
class Plan:
    """What to do beside the comparison: `cycles` repeats passes, `cost` replays calls in a window of `window` tokens.
    `generic` names the list of generic strings; without one it is the list beside the transcripts, else it is learned
    from them. `half` takes the sessions with an even or an odd hash alone: tune on one, report the other."""

    options: Options
    cycles: bool = False
    cost: bool = False
    window: int = 100_000
    prices: Prices = field(default_factory=Prices)
    generic: str | None = None
    half: Half | None = None
    jobs: int = 1


class Done(NamedTuple):
    """What one session gave."""

    name: str
    measured: Measured
    passes: tuple[Passes, ...]
    replays: tuple[Replay, ...]


class Evaluation(NamedTuple):
    """All that was measured. `sessions` counts the transcripts, `skipped` says which files were passed over."""

    plan: Plan
    sessions: int
    rows: tuple[Row, ...]
    timings: tuple[Timing, ...]
    passes: tuple[Passes, ...]
    replays: tuple[Replay, ...]
    skipped: tuple[str, ...]

    @property
    def cases(self) -> int:
        """How many prefixes were compared; whole sessions are none."""
        return len({(row.id, row.cut) for row in self.rows if row.group != "whole"})


Progress = Callable[[str, int], None]
"""Called after each session with its name and how many are done."""


def evaluate(paths: Sequence[str], plan: Plan, progress: Progress | None = None) -> Evaluation:
    """Evaluate every session of the paths. Raises InputError for what cannot be read. One session (with `jobs`, a few)
    is held at a time."""
    skipped: list[str] = []
    generic = generic_of(paths, plan.generic)
    work = partial(_work, plan=plan, generic=generic)
    done: list[Done] = []
    chosen = (session for session in sessions(paths, skipped) if plan.half in (None, half_of(session)))
    for one in _each(work, chosen, plan.jobs):
        done.append(one)
        if progress is not None:
            progress(one.name, len(done))
    return Evaluation(
        plan=plan,
        sessions=len(done),
        rows=tuple(row for one in done for row in one.measured.rows),
        timings=tuple(timing for one in done for timing in one.measured.timings),
        passes=tuple(passes for one in done for passes in one.passes),
        replays=tuple(replay for one in done for replay in one.replays),
        skipped=tuple(skipped),
    )


def half_of(session: Session) -> Half:
    """By a hash of the session's name, so that all its parts are on one side."""
    return "odd" if int(owner_of(session.group), 16) % 2 else "even"


def count_sessions(paths: Sequence[str], half: Half | None = None) -> int:
    """How many sessions there are, for a progress bar."""
    return sum(1 for session in sessions(paths, []) if half in (None, half_of(session)))


def generic_of(paths: Sequence[str], named: str | None) -> Generic:
    """The list of generic strings that is named, or stands beside the transcripts, or is learned from them. Raises
    InputError."""
    if named:
        return generics.load(Path(named))
    for path in map(Path, paths):
        beside = (path if path.is_dir() else path.parent) / generics.FILE_NAME
        if beside.is_file():
            return generics.load(beside)
    return generics.learn(sessions(paths, []))


def _work(session: Session, plan: Plan, generic: Generic) -> Done:
    measured = measure(session, plan.options, generic)
    settings = plan.options.settings
    return Done(
        session.id,
        measured,
        (repeat(session, settings),) if plan.cycles else (),
        tuple(_replays(session, plan, generic)) if plan.cost else (),
    )


def _replays(session: Session, plan: Plan, generic: Generic) -> list[Replay]:
    if sum(map(message_tokens, session.messages)) < LEAST_FOR_COST:
        return []
    options = plan.options
    cut = [case_of(session, share, generic, options.settings) for share in options.cuts]
    cases = [case for case in cut if case is not None and case.measures_loss]
    return replays(session, plan.window, plan.prices, options.settings, cases)


def _each(work: Callable[[Session], Done], found: Iterator[Session], jobs: int) -> Iterator[Done]:
    """Results in the order of the sessions, a few ahead at most."""
    if jobs <= 1:
        yield from map(work, found)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        ahead: deque[Future[Done]] = deque()
        for session in found:
            ahead.append(pool.submit(work, session))
            if len(ahead) > 2 * jobs:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
