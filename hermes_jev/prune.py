"""Prune a transcript: shorten or remove old tool results, store every original first, leave every word alone.

Read `run` first: it is the whole flow.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .cutting import check, cut
from .effective import chosen_settings
from .errors import InputError
from .extent import ROLLING_CALLS, Extent
from .goal import actions_of, goal_of
from .inputs import require_messages
from .job import Job, Pruned
from .judge import Judge, judge_of
from .judged import Bench, Judged, judged, with_the_rest
from .keeping import store_first
from .keeps import Keeps
from .ladder import ladder
from .plan import Costs, Plan
from .policy import Cuts, Known, Pressure, decide
from .receipts import Outcome
from .record import Recorder
from .regret import earlier_verdicts, record_cuts, record_repeats, tallies
from .settings import Settings
from .store import Store
from .stores import open_store
from .survey import survey
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
    chosen = chosen_settings(settings, os.environ)
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


def run(messages: list[Any], job: Job) -> Pruned:
    """One pass: parse, pin, apply rules, judge, decide, store, cut, check, record."""
    settings, keeps = job.settings, Keeps.of(job.store)
    messages, job = _with_kept(messages, job, keeps)
    transcript = Transcript.parse(messages)
    cuts = Cuts(settings, transcript, job.task)
    pressure = Pressure.of(transcript, job.window, settings, used=job.used, forced=job.forced, overflow=job.overflow)
    found = survey(transcript, settings, cuts, keeps)
    if job.rolling:
        found = found.newest(ROLLING_CALLS + settings.pin_last_calls, transcript.completed)
    record = Recorder(transcript, job, pressure, found, cuts)
    if not settings.enabled:
        return record.unchanged("nothing_to_prune", "switched off by the setting enabled")
    record_repeats(job, transcript)
    costs = Costs(transcript, settings, cuts)
    extent = Extent(found, pressure, costs, job.rolling)
    if why := extent.nothing_to_do():
        return record.unchanged("nothing_to_prune", why)
    decided, record = _decided(record, costs)
    extent = replace(extent, unanswered=record.verdict.failed)
    plan = extent.plan(decided.decisions)
    climb = not job.rolling and pressure.urgent and pressure.after(costs.freed(plan)) >= pressure.trigger
    if climb:
        plan = extent.deepened(ladder(plan, found, pressure, costs))
    gain = costs.freed(plan)
    if gain <= 0 or gain < extent.least_gain:
        outcome: Outcome = "capacity" if climb else "judge_failed" if record.verdict.failed else "nothing_to_prune"
        kept = [
            replace(decision, action="keep", reason="too little to gain") if gain else decision
            for decision in plan.decisions
        ]
        return record.unchanged(outcome, "the pass would not free enough" if gain else "", kept)
    record = record.with_rewrite(extent.rewrite(plan))
    if why := extent.refused(record.rewrite):
        return record.unchanged(
            "nothing_to_prune", why, [replace(d, action="keep", reason=why) for d in plan.decisions]
        )
    if settings.mode == "shadow":
        return record.unchanged("compacted", "shadow mode: nothing was cut", plan.decisions)
    stored = store_first(plan, job, costs)
    after = cut(messages, stored)
    check(messages, after, stored)
    record_cuts(job, stored.plan.decisions, stored.results)
    keeps.give_up(stored.plan.decisions, cuts, job.store)
    freed, record = costs.freed(stored.plan), record.with_rewrite(extent.rewrite(stored.plan))
    over = climb and pressure.after(freed) >= pressure.trigger
    return record.changed(after, "capacity" if over else "compacted", stored, freed)


def _with_kept(messages: list[Any], job: Job, keeps: Keeps) -> tuple[list[Any], Job]:
    """The list with what a person wants whole put back, and the job with the window's use as it then is."""
    back = keeps.put_back(messages, job)
    if back is messages or not job.used:
        return back, job
    grown = Transcript.parse(back).tokens - Transcript.parse(messages).tokens
    return back, replace(job, used=job.used + max(0, grown))


def _decided(record: Recorder, costs: Costs) -> tuple[Plan, Recorder]:
    """What rules and judge say of the candidates, and a recorder that knows it."""
    job, transcript, found, pressure = record.job, record.transcript, record.found, record.pressure
    rules = Known.of(transcript)
    asked = [exchange for exchange in found.candidates if exchange.ordinal not in rules.rulings]
    goal, actions = goal_of(transcript, job.task), actions_of(transcript)
    bench = Bench(job.judge, job.store, job.settings, job.gate, goal, job.focus, actions, job.task or "")

    def decided(verdict: Judged) -> tuple[Plan, Recorder]:
        name = verdict.answers.judge
        said = [*verdict.verdicts.values(), *earlier_verdicts(job, transcript, name)]
        known = rules.with_calibration(said, job.settings, tallies(job, name))
        plan = Plan(tuple(decide(found.candidates, verdict.verdicts, pressure, costs.cuts, known)))
        return plan, record.with_verdicts(verdict, bench.goal_hash, known.calibration)

    verdict = judged(transcript, asked, found.contents, bench, pressure.urgent)
    plan, record = decided(verdict)
    late = verdict.put_off and not verdict.failed and pressure.window is not None
    if late and pressure.after(costs.freed(plan)) >= pressure.trigger:
        plan, record = decided(with_the_rest(transcript, verdict, found.contents, bench))
    return plan, record
