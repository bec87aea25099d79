"""The engine as a policy: with its defaults, and in its own order down to a given size.

`prune_to` is the seam to the engine's ranking: whatever orders the cuts, the evaluation needs this one function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..egress import Gate
from ..goal import actions_of, goal_of
from ..job import Job, Pruned
from ..judge import Answers, Judge
from ..judged import Bench, judged
from ..policy import Cuts, Known
from ..prune import run
from ..settings import Settings
from ..store import Store
from ..store.values import pointer_id
from ..survey import survey
from ..to_size import NO_ROOM, decide_to
from ..transcript import Exchange, Transcript


def prune_by_default(
    messages: list[Any], judge: Judge, settings: Settings, store: Store, session: str | None = None
) -> Pruned:
    """One pass without a window: the thresholds decide. What it cuts may be opened by `session`."""
    return run(messages, Job(settings=settings, judge=judge, store=store, session=session))


@dataclass(frozen=True)
class Ranked:
    """A judged transcript: what may be cut, how likely each is needed, what else is known, and what it took."""

    messages: list[Any]
    candidates: tuple[Exchange, ...]
    outputs: Mapping[int, float]
    known: Known
    cuts: Cuts
    tool_chars: int
    answers: Answers


def rank(messages: list[Any], judge: Judge, settings: Settings, store: Store) -> Ranked:
    """Judge a transcript once, for cuts of several sizes."""
    transcript = Transcript.parse(messages)
    cuts = Cuts(settings, transcript)
    found, known = survey(transcript, settings, cuts), Known.of(transcript)
    asked = [exchange for exchange in found.candidates if exchange.ordinal not in known.rulings]
    bench = Bench(judge, store, settings, Gate(), goal_of(transcript, None), "", actions_of(transcript))
    verdict = judged(transcript, asked, found.contents, bench, urgent=False)
    outputs = {ordinal: v.output for ordinal, v in verdict.verdicts.items() if v.output is not None}
    tool_chars = sum(exchange.size for exchange in transcript.completed)
    return Ranked(messages, found.candidates, outputs, known, cuts, tool_chars, verdict.answers)


def cut_to(ranked: Ranked, share: float) -> list[Any]:
    """Cut in the engine's order until `share` of the tool characters is gone. Less goes where the pins do not allow
    more."""
    cuts, bare = ranked.cuts, ranked.cuts.without_facts()
    decisions = decide_to(ranked.candidates, ranked.outputs, share * ranked.tool_chars, cuts, ranked.known)
    texts: dict[int, str] = {}
    for decision in decisions:
        exchange = decision.exchange
        content = cuts.content(exchange)
        if decision.action != "keep" and content is not None and exchange.result_at is not None:
            form = bare if decision.reason == NO_ROOM else cuts
            texts[exchange.result_at] = form.render(exchange, decision.action, pointer_id(bytes.fromhex(content)))
    return replaced(ranked.messages, texts)


def prune_to(messages: list[Any], share: float, judge: Judge, settings: Settings, store: Store) -> list[Any]:
    """Cut in the engine's order until `share` of the tool characters is removed; untouched messages are the same
    objects."""
    return cut_to(rank(messages, judge, settings, store), share)


def replaced(messages: list[Any], texts: Mapping[int, str]) -> list[Any]:
    """The list with these contents; every other message is the same object."""
    return [{**message, "content": texts[at]} if at in texts else message for at, message in enumerate(messages)]
