"""Everything that a pass is going to change, and what it frees.

Most passes only decide about results. Turns that leave whole, inputs and messages are the ladder's (and, for turns, the
setting `removed_calls`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from . import arguments, prose
from .drops import NAMING_CHARS, Anchors, Group, Run, groups_in, naming_in
from .goal import words_in
from .policy import Action, Cuts, Decision
from .prompt_cache import Change
from .settings import Settings
from .store.values import ANY_POINTER
from .tokens import estimate_tokens, value_tokens
from .transcript import Exchange, Transcript

_NAMING_TOKENS = 60
"""What a line that names calls that left costs, about."""


@dataclass(frozen=True)
class Plan:
    """What a pass changes. `decisions` are about results; `runs` are turns that leave whole, `wanted`
    those and the turns among them that stay to name them, by their first message; `inputs` and `texts` map ordinals and
    positions of messages to the rung that shortens them."""

    decisions: tuple[Decision, ...] = ()
    runs: tuple[Run, ...] = ()
    wanted: Mapping[int, Group] = field(default_factory=dict)
    inputs: Mapping[int, str] = field(default_factory=dict)
    texts: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def actions(self) -> Mapping[int, Decision]:
        """The decisions by ordinal."""
        return {decision.exchange.ordinal: decision for decision in self.decisions}

    @cached_property
    def gone(self) -> frozenset[int]:
        """Ordinals of the calls that leave."""
        return frozenset(exchange.ordinal for run in self.runs for exchange in run.exchanges)

    def with_decisions(self, decisions: Iterable[Decision]) -> Plan:
        """The plan with these decisions in place of those about the same calls, or added."""
        found = {**self.actions, **{decision.exchange.ordinal: decision for decision in decisions}}
        return replace(self, decisions=tuple(found.values()))


class Costs:
    """What each kind of change frees, in estimated tokens. One instance a pass: texts are counted once."""

    def __init__(self, transcript: Transcript, settings: Settings, cuts: Cuts) -> None:
        self.transcript = transcript
        self.cuts = cuts
        self._settings = settings
        self._known: dict[tuple[str, int], int | None] = {}

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The turns that could leave and be stored exactly, oldest first."""
        return tuple(
            group
            for group in groups_in(self.transcript)
            if all(self.cuts.content(exchange) is not None for exchange in group.exchanges)
        )

    def freed(self, plan: Plan) -> int:
        """What the whole plan frees."""
        return sum(change.freed for change in self.changes(plan))

    def changes(self, plan: Plan) -> list[Change]:
        """What the plan frees, message by message."""
        gone = plan.gone
        found = [Change(run.start, self._leaves(run)) for run in plan.runs]
        found += [Change(run.anchor.result_at or 0, 0) for run in plan.runs]
        for decision in plan.decisions:
            exchange = decision.exchange
            if decision.action not in ("keep", "drop") and exchange.ordinal not in gone:
                found.append(Change(exchange.result_at or 0, self.cuts.gain(exchange, decision.action) or 0))
        for exchange in self.transcript.completed:
            if exchange.ordinal in plan.inputs and exchange.ordinal not in gone:
                found.append(Change(exchange.call_at, self.input(exchange) or 0))
        return [*found, *(Change(at, self.text(at) or 0) for at in plan.texts)]

    def _leaves(self, run: Run) -> int:
        """What a run frees, less the line that then names it."""
        return sum(map(self.group, run.groups)) - _NAMING_TOKENS

    def group(self, group: Group) -> int:
        """What a turn takes as it stands."""
        return sum(self.transcript.sizes[group.start : group.stop])

    def input(self, exchange: Exchange) -> int | None:
        """What shortening a call's input frees; None where it cannot be shortened."""
        return self._once("input", exchange.ordinal, lambda: self._input(exchange))

    def text(self, at: int) -> int | None:
        """What shortening a message frees; None where that is nothing."""
        return self._once("text", at, lambda: self._text(self.transcript.messages[at].get("content")))

    def _once(self, kind: str, number: int, count: Callable[[], int | None]) -> int | None:
        if (kind, number) not in self._known:
            self._known[kind, number] = count()
        return self._known[kind, number]

    def _input(self, exchange: Exchange) -> int | None:
        raw = self.transcript.messages[exchange.call_at]["tool_calls"][exchange.slot]["function"].get("arguments")
        short = arguments.shortened(raw, ANY_POINTER) if isinstance(raw, str) else None
        if short is None or self.cuts.content(exchange) is None:
            return None
        gain = estimate_tokens(exchange.arguments) - estimate_tokens(short)
        return gain if gain > 0 else None

    def _text(self, content: Any) -> int | None:
        short = prose.shortened(content, ANY_POINTER, self._settings.excerpt_chars)
        gain = value_tokens(content) - estimate_tokens(short)
        return gain if gain > 0 else None

    def leaving(self, plan: Plan, groups: Iterable[Group], reason: str) -> Plan:
        """The plan with these turns leaving as well as those that already do."""
        wanted = {**plan.wanted, **{group.start: group for group in groups}}
        anchors = Anchors(self.transcript, _cut_in(plan, wanted), self._can_be_cut, lambda e: self._names(plan, e))
        runs = tuple(run for run in anchors.runs(wanted.values()) if self._leaves(run) > 0)
        gone = {exchange.ordinal for run in runs for exchange in run.exchanges}
        named = {run.anchor.ordinal for run in runs}
        changed = []
        for exchange in (exchange for group in wanted.values() for exchange in group.exchanges):
            decision = plan.actions.get(exchange.ordinal)
            before = decision or Decision(exchange, "keep", reason)
            if exchange.ordinal in gone:
                changed.append(before if before.action == "drop" else replace(before, action="drop", reason=reason))
            elif exchange.ordinal in named or before.action == "drop":
                changed.append(self._staying(before, reason))
        inputs = {ordinal: rung for ordinal, rung in plan.inputs.items() if ordinal not in gone}
        return replace(plan.with_decisions(changed), runs=runs, wanted=wanted, inputs=inputs)

    def _staying(self, before: Decision, reason: str) -> Decision:
        """What becomes of a result in a turn that stays to name those that leave."""
        if before.action in ("truncate", "remove"):
            return before
        action: Action = "remove" if self._can_be_cut(before.exchange) else "keep"
        return replace(before, action=action, reason=reason)

    def _can_be_cut(self, exchange: Exchange) -> bool:
        return self.cuts.gain(exchange, "remove") is not None

    def _names(self, plan: Plan, exchange: Exchange) -> bool:
        """Whether the line that names calls can go there: the text with it is still settled by its size, no user spoke
        in it, and it names none yet."""
        decision = plan.actions.get(exchange.ordinal)
        if decision is not None and decision.action == "truncate":
            text = self.cuts.render(exchange, "truncate", ANY_POINTER)
        elif self._can_be_cut(exchange):
            text = self.cuts.render(exchange, "remove", ANY_POINTER)
        else:
            text = exchange.text
        if len(text) + NAMING_CHARS > self._settings.pin_max_chars:
            return False
        return naming_in(exchange.result) is None and not words_in(exchange.text)


def _cut_in(plan: Plan, leaving: Mapping[int, Group]) -> Callable[[Exchange], bool]:
    def cut(exchange: Exchange) -> bool:
        decision = plan.actions.get(exchange.ordinal)
        stays = exchange.call_at not in leaving
        return stays and decision is not None and decision.action in ("truncate", "remove")

    return cut


def all_removed(plan: Plan, groups: Sequence[Group]) -> list[Group]:
    """The turns of which every call was judged unneeded, and its output too."""
    removed = {ordinal for ordinal, decision in plan.actions.items() if decision.action == "remove"}
    return [group for group in groups if all(exchange.ordinal in removed for exchange in group.exchanges)]
