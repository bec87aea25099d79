"""Prune a transcript: shorten or remove old tool results, store every original first, leave every word alone.

Read `run` first: it is the whole flow.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .cutting import check, cut, store_first
from .effective import from_environment
from .errors import ConfigError, InputError
from .goal import actions_of, goal_of
from .inputs import require_messages
from .job import Job, Pruned
from .judge import Judge, judge_of
from .judged import Bench, judged
from .ladder import ladder
from .policy import Cuts, Known, Pressure, decide, gain_of
from .receipts import Outcome
from .record import Recorder
from .regret import earlier_verdicts, record_cuts, record_repeats, tallies
from .settings import Settings, Source, resolve
from .store import Store
from .stores import open_store
from .survey import Survey, survey
from .transcript import Transcript

__all__ = ["Job", "Pruned", "aprune", "prune", "run"]


def prune(
    messages: list[Any],
    judge: str | Judge = "auto",
    store: str | os.PathLike[str] | Store | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    task: str | None = None,
    context_length: int | None = None,
) -> Pruned:
    """Prune a list of chat messages.

    `judge` is "auto", "jev", "lexical" or an object with the Judge protocol; `store` a folder, a Store, or None for
    the user's own; `settings` a Settings or a mapping of names, and without it the environment's hold.
    `context_length` is the window in tokens; without it there is no target and no guard: the thresholds alone decide.
    Raises ConfigError for settings and InputError for a list that is not made of messages; a failing judge or store
    never raises.
    """
    chosen = _settings(settings)
    require_messages(messages)
    if context_length is not None and (not isinstance(context_length, int) or context_length < 1):
        raise InputError("context_length: a whole number of tokens is needed, at least 1")
    job = Job(
        settings=chosen,
        judge=judge_of(judge, chosen, os.environ),
        store=open_store(store, chosen),
        task=task,
        window=context_length,
    )
    return run(messages, job)


async def aprune(
    messages: list[Any],
    judge: str | Judge = "auto",
    store: str | os.PathLike[str] | Store | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    task: str | None = None,
    context_length: int | None = None,
) -> Pruned:
    """`prune` for a running event loop, which stays free meanwhile."""
    return await asyncio.to_thread(prune, messages, judge, store, settings, task, context_length)


def _settings(given: Settings | Mapping[str, Any] | None) -> Settings:
    if isinstance(given, Settings):
        return given
    if given is None:
        return from_environment(os.environ)
    if not isinstance(given, Mapping):
        raise ConfigError(f"settings: a Settings or a mapping is needed, not {type(given).__name__}")
    return resolve([Source("settings", given)], strict=True).settings


def run(messages: list[Any], job: Job) -> Pruned:
    """One pass: parse, pin, apply rules, judge, decide, store, cut, check, record."""
    settings, transcript = job.settings, Transcript.parse(messages)
    cuts = Cuts(settings, transcript, job.task)
    pressure = Pressure.of(transcript, job.window, settings, used=job.used, forced=job.forced, overflow=job.overflow)
    found = survey(transcript, settings, cuts)
    record = Recorder(transcript, job, pressure, found, cuts)
    if not settings.enabled:
        return record.unchanged("nothing_to_prune", "switched off by the setting enabled")
    record_repeats(job, transcript)
    if why := _nothing_to_do(found, pressure, cuts):
        return record.unchanged("capacity" if pressure.overflow else "nothing_to_prune", why)
    known = Known.of(transcript)
    asked = [exchange for exchange in found.candidates if exchange.ordinal not in known.rulings]
    goal, actions = goal_of(transcript, job.task), actions_of(transcript)
    bench = Bench(job.judge, job.store, settings, job.gate, goal, job.focus, actions)
    verdict = judged(transcript, asked, found.contents, bench, pressure.urgent)
    name = verdict.answers.judge
    said = [*verdict.verdicts.values(), *earlier_verdicts(job, transcript, name)]
    known = known.with_calibration(said, settings, tallies(job, name))
    record = record.with_verdicts(verdict, bench.goal_hash, known.calibration)
    decisions = decide(found.candidates, verdict.verdicts, pressure, cuts, known)
    climb = pressure.urgent and pressure.after(gain_of(decisions, cuts)) >= pressure.trigger
    if climb:
        decisions = ladder(decisions, found.soft, pressure, cuts)
    gain = gain_of(decisions, cuts)
    if gain == 0 or gain < pressure.least_gain:
        outcome: Outcome = "capacity" if climb else "judge_failed" if verdict.failed else "nothing_to_prune"
        kept = [
            replace(decision, action="keep", reason="too little to gain") if gain else decision
            for decision in decisions
        ]
        return record.unchanged(outcome, "the pass would not free enough" if gain else "", kept)
    if settings.mode == "shadow":
        return record.unchanged("compacted", "shadow mode: nothing was cut", decisions)
    decisions, stored = store_first(decisions, job, cuts)
    after = cut(messages, stored)
    check(messages, after, stored)
    record_cuts(job, decisions, stored)
    over = climb and pressure.after(gain_of(decisions, cuts)) >= pressure.trigger
    return record.changed(after, "capacity" if over else "compacted", decisions, stored)


def _nothing_to_do(found: Survey, pressure: Pressure, cuts: Cuts) -> str:
    """Why no question needs to be asked, empty when one does."""
    if pressure.at_rest:
        return "the window has room"
    possible = sum(cuts.best_gain(exchange) or 0 for exchange in found.candidates)
    if pressure.urgent and (found.candidates or found.soft):
        return ""
    if not found.candidates:
        return "nothing but recent, small or protected results"
    if possible < pressure.least_gain:
        return "all that could be cut together would not free enough"
    return ""
