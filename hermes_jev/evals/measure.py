"""One session, all its cases and policies: the part of an evaluation that can run anywhere."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..judge import Answers, Judge
from ..policy import Cuts
from ..store import Store
from ..transcript import Transcript
from . import baselines, engine_policy, rankers
from .case import Case, case_of, whole_case_of
from .corpus import Session
from .generic import Generic
from .judges import draws_of, is_oracle, judge_for
from .options import ENGINE, THRESHOLDS, Options
from .own_search import OwnRecovery, OwnSearch, own_recovery_of
from .plans import carry_out
from .recovery import Bm25, Searcher, recovery_of
from .rows import Group, Row, Timing, averaged
from .score import Loss, loss_of
from .texts import cut_at, size_of, text_of

RANDOM_DRAWS = 5
NEXT_CUT = 0.2
"""So much further the session has gone when stability is measured."""


class Measured(NamedTuple):
    """What came of one session."""

    rows: tuple[Row, ...]
    timings: tuple[Timing, ...]


class Shortened(NamedTuple):
    """What a policy made of a case, and what it took. `ms` is None where nothing was timed. `session` may open what was
    cut, where it was stored."""

    messages: list[Any]
    answers: Answers = Answers()
    ms: float | None = None
    session: str | None = None


def measure(session: Session, options: Options, generic: Generic, searcher: Searcher | None = None) -> Measured:
    """Every policy on every cut of one session, and on the whole of it."""
    rows: list[Row] = []
    timings: list[Timing] = []
    searcher = searcher or Bm25()
    with tempfile.TemporaryDirectory(prefix="hermes_jev_eval_") as scratch:
        for number, cut in enumerate(options.cuts):
            case = case_of(session, cut, generic, options.settings)
            if case is None or case.chars < options.least_chars:
                continue
            bench = _Bench(case, options, Store(Path(scratch) / str(number)), searcher)
            for row, timing in bench.all():
                rows.append(row)
                timings += [timing] if timing else []
        whole = whole_case_of(session, options.settings)
        if whole is not None and whole.chars >= options.least_chars:
            rows += _Bench(whole, options, Store(Path(scratch) / "whole"), searcher).whole()
    return Measured(tuple(rows), tuple(timings))


@dataclass(frozen=True)
class _Bench:
    """One case under test."""

    case: Case
    options: Options
    store: Store
    searcher: Searcher

    def all(self) -> Iterator[tuple[Row, Timing | None]]:
        """Rows of all policies: as they are, at equal size, by threshold. At equal size losses differ alone, and
        an oracle knows nothing where nothing was needed: both are for cases that measure loss."""
        for name in self.options.policies:
            if name != ENGINE:
                yield self._row(name, "policy", None, self._timed(partial(baselines.policy(name), self.case)))
        for share in self._shares:
            for name, messages in self._rankers(share):
                yield self._row(name, "equal", share, Shortened(messages))
        for label, name in self._judges():
            judges = [judge_for(name, self.case, self.options, draw) for draw in range(draws_of(name))]
            draws = (self._engine(label, judge, f"{label} {draw}") for draw, judge in enumerate(judges))
            for drawn in zip(*draws, strict=True):
                yield averaged([row for row, _ in drawn]), drawn[0][1]

    def whole(self) -> Iterator[Row]:
        """Rows of all policies as they are, for sizes: nothing comes after a whole session that could need anything."""
        for name in self.options.policies:
            if name != ENGINE:
                yield self._row(name, "whole", None, self._timed(partial(baselines.policy(name), self.case)))[0]
        for label, name in self._judges():
            judge = judge_for(name, self.case, self.options)
            yield self._row(label, "whole", None, self._pruned(judge, label))[0]

    def _judges(self) -> Iterator[tuple[str, str]]:
        """What the engine is called with each judge, and the judge's name."""
        for number, name in enumerate(self.options.judges if ENGINE in self.options.policies else ()):
            if self.case.measures_loss or not is_oracle(name):
                yield ENGINE if number == 0 else f"{ENGINE}/{name}", name

    @property
    def _shares(self) -> tuple[float, ...]:
        return self.options.shares if self.case.measures_loss else ()

    def _pruned(self, judge: Judge, session: str) -> Shortened:
        started = time.perf_counter()
        pruned = engine_policy.prune_by_default(self.case.prefix, judge, self.options.settings, self.store, session)
        ms = 1_000 * (time.perf_counter() - started)
        receipt = pruned.receipt
        answers = Answers(requests=receipt.requests, input_tokens=receipt.input_tokens, cost=receipt.cost)
        return Shortened(pruned.messages, answers, ms, session)

    def _engine(self, name: str, judge: Judge, session: str) -> Iterator[tuple[Row, Timing | None]]:
        settings, prefix = self.options.settings, self.case.prefix
        pruned = self._pruned(judge, session)
        row, timing = self._row(name, "policy", None, pruned)
        yield self._with_second_pass(row, pruned.messages, judge) if name == ENGINE else row, timing
        ranked = engine_policy.rank(prefix, judge, settings, self.store)
        for share in self._shares:
            yield self._row(name, "equal", share, Shortened(engine_policy.cut_to(ranked, share), ranked.answers))
        for threshold in THRESHOLDS if self.options.thresholds and name == ENGINE else ():
            changed = settings.model_copy(update={"call_threshold": threshold, "output_threshold": threshold})
            messages = engine_policy.prune_by_default(prefix, judge, changed, self.store).messages
            yield self._row(name, "threshold", threshold, Shortened(messages))

    def _rankers(self, share: float) -> Iterator[tuple[str, list[Any]]]:
        case, chars = self.case, share * self.case.tool_chars
        yield "recency", carry_out(case, rankers.plan_to(case, rankers.recency(case), chars))
        yield "size x age", carry_out(case, rankers.plan_to(case, rankers.size_and_age(case), chars))
        worth = rankers.by_chance(self.options.seed)(case)
        yield "random", carry_out(case, rankers.plan_to(case, worth, chars))
        yield "oracle", carry_out(case, rankers.plan_to(case, rankers.oracle(case), chars))

    def _timed(self, run: Any) -> Shortened:
        started = time.perf_counter()
        messages = run()
        return Shortened(messages, ms=1_000 * (time.perf_counter() - started))

    def _row(self, name: str, group: Group, share: float | None, got: Shortened) -> tuple[Row, Timing | None]:
        case = self.case
        loss = loss_of(case, got.messages)
        promises = group == "policy"
        compared = promises or name.startswith(ENGINE)
        recovery = recovery_of(case, loss, self.searcher) if promises and case.measures_loss else None
        own = self._own_recovery(loss, got.session) if recovery else None
        needed_results = {need.results[-1] for need in case.needs if need.results}
        row = Row(
            id=case.session.id,
            session=case.session.group,
            kind=case.session.kind,
            cut=case.share,
            policy=name,
            group=group,
            share=share,
            chars=case.chars,
            removed=case.chars - loss.chars,
            tool_chars=case.tool_chars,
            tool_removed=_tool_chars(case.prefix) - _tool_chars(got.messages),
            bound=case.bound,
            measures_loss=case.measures_loss,
            needs=len(case.needs),
            lost=len(loss.lost),
            old=sum(map(case.is_old, case.needs)),
            old_lost=sum(map(case.is_old, loss.lost)),
            results_needed=len(needed_results),
            results_lost=len(loss.results),
            steps=len({need.used_at for need in case.needs}),
            steps_hit=len(loss.steps),
            again=sum(case.results[place].size for place in loss.results if place in case.results),
            matched=self._matched(loss, full=group != "threshold" and "oracle" not in name) if compared else {},
            search_steps=recovery.steps if recovery else 0,
            search_found=recovery.found if recovery else 0,
            search_shown=recovery.shown if recovery else 0,
            own_found=own.found if own else 0,
            own_shown=own.shown if own else 0,
            own_expanded=own.expanded if own else 0,
            words_kept=not promises or _words(case.prefix) == _words(got.messages),
            paired=not promises or _paired(got.messages) >= _paired(case.prefix),
            requests=got.answers.requests,
            tokens=got.answers.input_tokens,
            cost=got.answers.cost,
        )
        return row, Timing(name, case.chars, got.ms) if got.ms is not None else None

    def _own_recovery(self, loss: Loss, session: str | None) -> OwnRecovery | None:
        if session is None:
            return None
        return own_recovery_of(self.case, loss, OwnSearch(self.store, session), Cuts(self.options.settings))

    def _matched(self, loss: Loss, *, full: bool) -> dict[str, float]:
        """Needed strings lost in percent when rankers remove as much as was removed here; not `full`: recency alone."""
        case, chars = self.case, self.case.chars - loss.chars
        if not case.measures_loss or chars <= 0:
            return {}

        def lost(worth: rankers.Worth, *, exactly: bool = False) -> float:
            after = carry_out(case, rankers.plan_to(case, worth, chars, exactly=exactly))
            return 100 * len(loss_of(case, after).lost) / len(case.needs)

        newest = rankers.recency(case)
        found = {"recency": lost(newest), "recency, exact": lost(newest, exactly=True)}
        if full:
            drawn = [lost(rankers.by_chance(self.options.seed + n)(case)) for n in range(RANDOM_DRAWS)]
            found |= {"random": sum(drawn) / len(drawn), "oracle": lost(rankers.oracle(case))}
        return found

    def _with_second_pass(self, row: Row, messages: list[Any], judge: Judge) -> Row:
        """The same list again changes nothing; and how much of the prompt a pass over the longer session leaves."""
        settings, session = self.options.settings, self.case.session.messages
        again = engine_policy.prune_by_default(messages, judge, settings, self.store)
        grown = session[self.case.cut : cut_at(session, min(0.95, self.case.share + NEXT_CUT))]
        later = engine_policy.prune_by_default([*messages, *grown], judge, settings, self.store).messages
        same = next((at for at, (a, b) in enumerate(zip(messages, later, strict=False)) if a is not b), len(messages))
        stable = size_of(messages[:same]) / max(1, size_of(messages))
        return replace(row, stable=stable, again_unchanged=again.messages is messages)


def _tool_chars(messages: Sequence[Mapping[str, Any]]) -> int:
    return sum(len(text_of(message)) for message in messages if message.get("role") == "tool")


def _words(messages: Sequence[Mapping[str, Any]]) -> list[tuple[Any, str]]:
    return [(m.get("role"), text) for m in messages if m.get("role") != "tool" and (text := text_of(m)).strip()]


def _paired(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every call has one result and every result a call."""
    exchanges = Transcript.parse(messages).exchanges
    results = sum(1 for message in messages if message.get("role") == "tool")
    return all(exchange.state == "completed" for exchange in exchanges) and results == len(exchanges)
