"""The window ladder: cut further, rung by rung, when the window is too small for the prompt.

Its authority is above that of pins and of the judge, so it goes only as far as it must and names each rung. What it
cuts is stored first, like everything else.
"""

from __future__ import annotations

from dataclasses import replace

from .pins import KEPT, UNSEEN
from .plan import Costs, Plan
from .policy import Decision, Pressure, rank_order
from .prose import old_texts
from .rungs import Climber
from .survey import Survey

LADDER_MARGIN = 0.9
"""The ladder stops at this share of the trigger: estimates are off by some percent, and a host counts a pass that left
the prompt over the trigger against the few that a turn has."""

UNPINNED, DROP, ARGUMENTS, PINNED = "ladder: unpinned", "ladder: drop", "ladder: arguments", "ladder: pinned"
TEXT = {"assistant": "ladder: assistant text", "user": "ladder: user text"}
"""The rungs, as receipts name them."""


def ladder(plan: Plan, found: Survey, pressure: Pressure, costs: Costs) -> Plan:
    """Cut further, each rung only until the estimate is back under the trigger: unpinned results in rank order; whole
    old turns; long inputs of old calls; pinned results from the largest down; old messages of the assistant, then of
    the user. What the assistant has not seen yet is cut last of the results, and only in an overflow."""
    kept = {ordinal for ordinal, pin in found.pinned.items() if pin == KEPT}
    climber = Climber(pressure, costs, LADDER_MARGIN * pressure.trigger, kept)
    soft = [Decision(exchange, "keep", pin) for exchange, pin in found.soft if pressure.overflow or pin != UNSEEN]
    soft.sort(key=lambda d: (d.reason == UNSEEN, d.reason == KEPT, -d.exchange.bulk, d.exchange.ordinal))
    unpinned = rank_order(decision for decision in plan.decisions if decision.action == "keep")
    plan = climber.results(plan, UNPINNED, unpinned, climber.by_call)
    plan = climber.turns(plan, DROP)
    plan = climber.inputs(plan, ARGUMENTS)
    plan = climber.results(plan, PINNED, soft, lambda _: "truncate")
    return _texts(plan, climber, costs, pressure) if pressure.settings.last_resort == "text" else plan


def _texts(plan: Plan, climber: Climber, costs: Costs, pressure: Pressure) -> Plan:
    messages, freed = costs.transcript.messages, costs.freed(plan)
    found: dict[int, str] = {}
    for at in old_texts(costs.transcript, pressure.settings):
        if climber.enough(freed):
            break
        if (gain := costs.text(at)) is not None:
            found[at] = TEXT[messages[at]["role"]]
            freed += gain
    return replace(plan, texts=found)
