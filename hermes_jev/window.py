"""Fit what a judge is asked into its window: a few requests, each with its own items in full detail.

A request's state holds the goal, a short timeline of the newest events, and the description of at most 32 calls; the
rest of the conversation is folded into a line or two. Nothing is sent twice but goal and timeline.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import described
from .described import INPUT_LEVELS, Describer, Item, Stage, age_of
from .egress import Gate, RedactionError
from .goal import GOAL_CHARS, shorten
from .judge.protocol import USUAL_LIMITS, Limits, Request, Subject
from .questions import questions
from .settings import Egress
from .tokens import estimate_tokens
from .transcript import Exchange, Transcript

STATE_TOKENS = USUAL_LIMITS.state_tokens
"""Estimated tokens of a request's state, usually; with the estimator's margin it stays under the service's 32,000."""

REQUEST_OVERHEAD_TOKENS = 270
"""What a service counts for a request beside its state and questions."""

CANNOT = "cannot be redacted"


@dataclass(frozen=True)
class Fitted:
    """`stages` says per ordinal how much of the call the judge sees; `unsent` why an exchange is not asked about.
    `tokens` is the plain estimate of all requests together."""

    requests: tuple[Request, ...] = ()
    stages: Mapping[int, Stage] = field(default_factory=dict)
    unsent: Mapping[int, str] = field(default_factory=dict)
    tokens: int = 0


@dataclass(frozen=True)
class Question:
    """What is asked: the exchanges, largest first, and what they are judged against. `contents` maps ordinals to
    content hashes, for judges that know calls by them."""

    transcript: Transcript
    asked: Sequence[Exchange]
    goal: str = field(repr=False)
    focus: str = field(repr=False)
    actions: tuple[str, ...] = field(repr=False)
    contents: Mapping[int, str] = field(default_factory=dict, repr=False)


def fit_local(what: Question) -> Fitted:
    """One request for a judge inside this process: it reads the subjects, so nothing is described or redacted."""
    if not what.asked:
        return Fitted()
    asked = tuple(q for exchange in what.asked for q in questions(exchange.ordinal))
    subjects = tuple(_subject(exchange, what) for exchange in what.asked)
    goal = shorten(f"{what.goal}\n{what.focus}".strip(), GOAL_CHARS)
    request = Request(state={}, questions=asked, goal=goal, actions=what.actions, subjects=subjects)
    return Fitted((request,), {exchange.ordinal: "whole" for exchange in what.asked})


def fit(
    what: Question,
    gate: Gate,
    items_per_request: int,
    limits: Limits = USUAL_LIMITS,
    *,
    factor: float = 1.0,
    egress: Egress = "redacted",
) -> Fitted:
    """Requests for a remote judge: redacted, at most `items_per_request` calls each, within the service's limits.

    `factor` is what the service counts for one estimated token. With `egress` "metadata" no content is told.
    """
    told = described.Subject(what.transcript, what.goal, what.focus)
    describer: Describer = described.Metadata(told, gate) if egress == "metadata" else described.Redacted(told, gate)
    try:
        frame = describer.frame()
    except RedactionError:
        return Fitted(unsent={exchange.ordinal: CANNOT for exchange in what.asked})
    packer = _Packer(frame, items_per_request, limits, factor)
    unsent: dict[int, str] = {}
    for exchange in what.asked:
        try:
            packer.add(exchange, describer.item(exchange))
        except RedactionError:
            unsent[exchange.ordinal] = CANNOT
    return packer.fitted(unsent)


class _Packer:
    """Fills requests in the order of the calls. Where a request gets too large its inputs are shown shorter; only when
    that is not enough the next one begins."""

    def __init__(self, frame: Mapping[str, Any], most: int, limits: Limits, factor: float) -> None:
        self._frame = frame
        self._most = max(1, min(most, limits.questions // len(questions(0))))
        self._state, self._request = int(limits.state_tokens / factor), int(limits.request_tokens / factor)
        self._base = _tokens(frame)
        self._asking = sum(_tokens([q.instructions, dict(q.criteria)]) for q in questions(10_000))
        self._batch: list[tuple[Exchange, Item]] = []
        self._level = 0
        self._costs: list[int] = []
        self._requests: list[Request] = []
        self._stages: dict[int, Stage] = {}
        self._total = 0

    def add(self, exchange: Exchange, item: Item) -> None:
        """Into the request at hand, or the next."""
        if len(self._batch) == self._most or not self._fits(item):
            self._close()
            self._fits(item)
        self._batch.append((exchange, item))
        self._costs.append(_tokens(item.fields(INPUT_LEVELS[self._level])))

    def _fits(self, item: Item) -> bool:
        """Whether the request holds one more, with shorter inputs if need be; an empty one holds any. In a request
        that several share inputs stay long enough for their answers to count."""
        alone = not self._batch
        last = len(INPUT_LEVELS) - 1
        for level in range(0 if alone else self._level, last + 1 if alone else last):
            chars = INPUT_LEVELS[level]
            costs = self._costs if level == self._level else [_tokens(held.fields(chars)) for _, held in self._batch]
            state = self._base + sum(costs) + _tokens(item.fields(chars))
            asking = self._asking * (len(self._batch) + 1)
            small = state <= self._state and state + asking <= self._request
            if small or (alone and level == last):
                self._level, self._costs = level, costs
                return True
        return False

    def _close(self) -> None:
        if not self._batch:
            return
        chars = INPUT_LEVELS[self._level]
        asked = tuple(q for exchange, _ in self._batch for q in questions(exchange.ordinal))
        items = [item.fields(chars) for _, item in self._batch]
        self._requests.append(Request(state={**self._frame, "items": items}, questions=asked))
        self._stages |= {exchange.ordinal: item.stage(chars) for exchange, item in self._batch}
        self._total += self._base + sum(self._costs) + _tokens([[q.instructions, dict(q.criteria)] for q in asked])
        self._batch, self._costs = [], []

    def fitted(self, unsent: Mapping[int, str]) -> Fitted:
        """All requests, the last one too."""
        self._close()
        return Fitted(tuple(self._requests), self._stages, unsent, self._total)


def _tokens(value: Any) -> int:
    return estimate_tokens(json.dumps(value, ensure_ascii=False))


def _subject(exchange: Exchange, what: Question) -> Subject:
    return Subject(
        ordinal=exchange.ordinal,
        tool=exchange.tool,
        arguments=exchange.arguments,
        result=exchange.text,
        size=exchange.size,
        age=age_of(exchange, what.transcript),
        outcome=exchange.outcome.status,
        content=what.contents.get(exchange.ordinal, ""),
    )
