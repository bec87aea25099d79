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
from ..policy import Action, Cuts, Decision, _rank
from ..prune import run
from ..settings import Settings
from ..store import Store
from ..store.values import pointer_id
from ..survey import survey
from ..transcript import Transcript


def prune_by_default(messages: list[Any], judge: Judge, settings: Settings, store: Store) -> Pruned:
    """One pass without a window: the thresholds decide."""
    return run(messages, Job(settings=settings, judge=judge, store=store))


@dataclass(frozen=True)
class Ranked:
    """A judged transcript: what may be cut, in the engine's order, and what it took to find out."""

    messages: list[Any]
    order: tuple[Decision, ...]
    cuts: Cuts
    tool_chars: int
    answers: Answers


def rank(messages: list[Any], judge: Judge, settings: Settings, store: Store) -> Ranked:
    """Judge a transcript once, for cuts of several sizes."""
    transcript, cuts = Transcript.parse(messages), Cuts(settings)
    found = survey(transcript, settings, cuts)
    bench = Bench(judge, store, settings, Gate(), goal_of(transcript, None), "", actions_of(transcript))
    verdict = judged(transcript, found.candidates, found.contents, bench, urgent=False)
    decisions = [Decision(e, "keep", "", verdict.verdicts.get(e.ordinal)) for e in found.candidates]
    tool_chars = sum(exchange.size for exchange in transcript.completed)
    return Ranked(messages, tuple(sorted(decisions, key=_rank)), cuts, tool_chars, verdict.answers)


def cut_to(ranked: Ranked, share: float) -> list[Any]:
    """Shorten in rank order until `share` of the tool characters is gone; where shortening all is not enough, remove
    in the same order. Less goes where the pins do not allow more."""
    wanted = share * ranked.tool_chars
    texts: dict[int, str] = {}
    freed = 0

    def go(action: Action) -> None:
        nonlocal freed
        for decision in ranked.order:
            if freed >= wanted:
                return
            exchange = decision.exchange
            possible = ranked.cuts.possible(exchange, action)
            content = ranked.cuts.content(exchange)
            if possible == "keep" or content is None or exchange.result_at is None:
                continue
            text = ranked.cuts.render(exchange, possible, pointer_id(bytes.fromhex(content)))
            freed += len(texts.get(exchange.result_at, exchange.text)) - len(text)
            texts[exchange.result_at] = text

    go("truncate")
    go("remove")
    return replaced(ranked.messages, texts)


def prune_to(messages: list[Any], share: float, judge: Judge, settings: Settings, store: Store) -> list[Any]:
    """Cut in the engine's order until `share` of the tool characters is removed; untouched messages are the same
    objects."""
    return cut_to(rank(messages, judge, settings, store), share)


def replaced(messages: list[Any], texts: Mapping[int, str]) -> list[Any]:
    """The list with these contents; every other message is the same object."""
    return [{**message, "content": texts[at]} if at in texts else message for at, message in enumerate(messages)]
