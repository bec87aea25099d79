"""The window ladder: cut further, rung by rung, when the window is too small for the prompt.

Its authority is above that of pins and of the judge, so it goes only as far as it must and names each rung. What it
cuts is stored first, like everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from .drops import Group
from .pins import EXPAND_CALLS, KEPT, UNSEEN, Pin
from .plan import Costs, Plan
from .policy import Action, Decision, Pressure, rank_order
from .prose import old_texts
from .settings import Settings
from .transcript import Exchange
from .wrapping import has_project_rules

LADDER_MARGIN = 0.9
"""The ladder stops at this share of the trigger: estimates are off by some percent, and a host counts a pass that left
the prompt over the trigger against the few that a turn has."""

UNPINNED, DROP, ARGUMENTS, PINNED = "ladder: unpinned", "ladder: drop", "ladder: arguments", "ladder: pinned"
TEXT = {"assistant": "ladder: assistant text", "user": "ladder: user text"}
"""The rungs, as receipts name them."""

_OLD_CALLS = EXPAND_CALLS
"""A turn leaves whole only when it is older than this many last completed calls."""
_TRIES = 8


def ladder(plan: Plan, pinned: Sequence[tuple[Exchange, Pin]], pressure: Pressure, costs: Costs) -> Plan:
    """Cut further, each rung only until the estimate is back under the trigger: unpinned results in rank order; whole
    old turns; long inputs of old calls; pinned results from the largest down; old messages of the assistant, then of
    the user. What the assistant has not seen yet is cut last of the results, and only in an overflow."""
    climber = _Climber(pressure, costs, {exchange.ordinal for exchange, pin in pinned if pin == KEPT})
    soft = [Decision(exchange, "keep", pin) for exchange, pin in pinned if pressure.overflow or pin != UNSEEN]
    soft.sort(key=lambda d: (d.reason == UNSEEN, d.reason == KEPT, -d.exchange.bulk, d.exchange.ordinal))
    kept = rank_order(decision for decision in plan.decisions if decision.action == "keep")
    plan = climber.results(plan, UNPINNED, kept, climber.by_call)
    plan = climber.turns(plan)
    plan = climber.inputs(plan)
    plan = climber.results(plan, PINNED, soft, lambda _: "truncate")
    return climber.texts(plan) if pressure.settings.last_resort == "text" else plan


class _Climber:
    def __init__(self, pressure: Pressure, costs: Costs, kept: set[int]) -> None:
        self.pressure = pressure
        self.costs = costs
        self.kept = kept

    def enough(self, freed: int) -> bool:
        return self.pressure.after(freed) < LADDER_MARGIN * self.pressure.trigger

    def by_call(self, decision: Decision) -> Action:
        call = decision.verdict.call if decision.verdict is not None else None
        return "remove" if call is not None and call < self.pressure.settings.call_threshold else "truncate"

    def results(self, plan: Plan, rung: str, order: Iterable[Decision], wants: Callable[[Decision], Action]) -> Plan:
        cuts, freed = self.costs.cuts, self.costs.freed(plan)
        changed = []
        for decision in order:
            if self.enough(freed):
                break
            action = cuts.possible(decision.exchange, wants(decision))
            if action != "keep" and decision.exchange.ordinal not in plan.gone:
                changed.append(replace(decision, action=action, reason=rung))
                freed += cuts.gain(decision.exchange, action) or 0
        return plan.with_decisions(changed)

    def turns(self, plan: Plan) -> Plan:
        """The oldest first. Which turn of a run stays to name the rest is known only then, hence in several tries."""
        waiting = list(self._old_turns(plan))
        for _ in range(_TRIES):
            freed = self.costs.freed(plan)
            chosen = 0
            while chosen < len(waiting) and not self.enough(freed):
                group = waiting[chosen]
                results = [plan.actions[e.ordinal] for e in group.exchanges if e.ordinal in plan.actions]
                freed += self.costs.group(group)
                freed -= sum(self.costs.cuts.gain(one.exchange, one.action) or 0 for one in results)
                chosen += 1
            if not chosen:
                break
            plan = self.costs.leaving(plan, waiting[:chosen], DROP)
            waiting = waiting[chosen:]
        return plan

    def _old_turns(self, plan: Plan) -> Iterator[Group]:
        transcript, settings = self.costs.transcript, self.pressure.settings
        recent = {exchange.ordinal for exchange in transcript.completed[-_OLD_CALLS:]}
        spared = recent | self.kept | _instructions(transcript.completed, settings)
        for group in self.costs.groups:
            if group.start not in plan.wanted and not any(e.ordinal in spared for e in group.exchanges):
                yield group

    def inputs(self, plan: Plan) -> Plan:
        """The largest gain first."""
        transcript, settings = self.costs.transcript, self.pressure.settings
        recent = transcript.completed[-settings.pin_last_calls :] if settings.pin_last_calls else ()
        spared = {e.ordinal for e in recent} | plan.gone | self.kept
        spared |= _instructions(transcript.completed, settings)
        freed = self.costs.freed(plan)
        if self.enough(freed):
            return plan
        gains = [
            (gain, exchange.ordinal)
            for exchange in transcript.completed
            if exchange.ordinal not in spared and exchange.call_at != transcript.newest_assistant
            if (gain := self.costs.input(exchange)) is not None
        ]
        found: dict[int, str] = {}
        for gain, ordinal in sorted(gains, key=lambda one: (-one[0], one[1])):
            if self.enough(freed):
                break
            found[ordinal] = ARGUMENTS
            freed += gain
        return replace(plan, inputs=found)

    def texts(self, plan: Plan) -> Plan:
        messages, freed = self.costs.transcript.messages, self.costs.freed(plan)
        found: dict[int, str] = {}
        for at in old_texts(self.costs.transcript, self.pressure.settings):
            if self.enough(freed):
                break
            if (gain := self.costs.text(at)) is not None:
                found[at] = TEXT[messages[at]["role"]]
                freed += gain
        return replace(plan, texts=found)


def _instructions(completed: Sequence[Exchange], settings: Settings) -> set[int]:
    """Calls whose results are instructions at any size, and the newest of planning tools."""
    latest = {exchange.tool: exchange.ordinal for exchange in completed if exchange.tool in settings.latest_tools}
    ruling = {
        exchange.ordinal
        for exchange in completed
        if exchange.tool in settings.protected_tools or has_project_rules(exchange.text)
    }
    return ruling | set(latest.values())
