"""Rungs: ways to cut further than rules and judge would, each only until the prompt is small enough.

The deep pass (`deepen.py`) and the window ladder (`ladder.py`) climb them, in orders of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from .drops import Group
from .pins import EXPAND_CALLS, last_of
from .plan import Costs, Plan
from .policy import Action, Decision, Pressure
from .settings import Settings
from .transcript import Exchange
from .wrapping import has_project_rules

_OLD_CALLS = EXPAND_CALLS
"""A turn leaves whole only when it is older than this many last completed calls."""
_TRIES = 8


class Climber:
    """Cuts on until the prompt counts less than `goal` tokens. Inputs and turns of calls in `spared` stay as they are,
    and so do those before the position `floor`."""

    def __init__(
        self, pressure: Pressure, costs: Costs, goal: float, spared: Collection[int] = (), floor: int = 0
    ) -> None:
        self.pressure = pressure
        self.costs = costs
        self._goal = goal
        self._spared = spared
        self._floor = floor

    def enough(self, freed: int) -> bool:
        """Whether the prompt is small enough once so many tokens are gone."""
        return self.pressure.after(freed) < self._goal

    def by_call(self, decision: Decision) -> Action:
        """How a result is cut by what the judge said of its call."""
        call = decision.verdict.call if decision.verdict is not None else None
        return "remove" if call is not None and call < self.pressure.settings.call_threshold else "truncate"

    def results(self, plan: Plan, rung: str, order: Iterable[Decision], wants: Callable[[Decision], Action]) -> Plan:
        """The results in this order, each cut as it `wants`."""
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

    def turns(self, plan: Plan, rung: str) -> Plan:
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
            plan = self.costs.leaving(plan, waiting[:chosen], rung)
            waiting = waiting[chosen:]
        return plan

    def _old_turns(self, plan: Plan) -> Iterator[Group]:
        transcript, settings = self.costs.transcript, self.pressure.settings
        recent = {exchange.ordinal for exchange in last_of(transcript.completed, _OLD_CALLS)}
        spared = recent | set(self._spared) | _instructions(transcript.completed, settings)
        for group in self.costs.groups:
            if group.start < self._floor or group.start in plan.wanted:
                continue
            if not any(exchange.ordinal in spared for exchange in group.exchanges):
                yield group

    def inputs(self, plan: Plan, rung: str) -> Plan:
        """Long inputs of old calls, the largest gain first."""
        transcript, settings = self.costs.transcript, self.pressure.settings
        recent = {e.ordinal for e in last_of(transcript.completed, settings.pin_last_calls)}
        spared = recent | plan.gone | set(plan.inputs) | set(self._spared)
        spared |= _instructions(transcript.completed, settings)
        freed = self.costs.freed(plan)
        if self.enough(freed):
            return plan
        gains = [
            (gain, exchange.ordinal)
            for exchange in transcript.completed
            if exchange.ordinal not in spared and self._floor <= exchange.call_at != transcript.newest_assistant
            if (gain := self.costs.input(exchange)) is not None
        ]
        found: dict[int, str] = {}
        for gain, ordinal in sorted(gains, key=lambda one: (-one[0], one[1])):
            if self.enough(freed):
                break
            found[ordinal] = rung
            freed += gain
        return replace(plan, inputs={**plan.inputs, **found})


def _instructions(completed: Sequence[Exchange], settings: Settings) -> set[int]:
    """Calls whose results are instructions at any size, and the newest of planning tools."""
    latest = {exchange.tool: exchange.ordinal for exchange in completed if exchange.tool in settings.latest_tools}
    ruling = {
        exchange.ordinal
        for exchange in completed
        if exchange.tool in settings.protected_tools or has_project_rules(exchange.text)
    }
    return ruling | set(latest.values())
