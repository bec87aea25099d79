"""The deep pass: once a pass is made, go on down to the target, so that the next one is far away.

Every pass has the provider write the rest of the prompt to its cache again, so few deep passes are cheaper than many
shallow ones. What goes loses nothing for good: it is stored first and can be opened again. Words of human and
assistant, recent calls, pinned results and those that the judge keeps stay, whatever that leaves.
"""

from __future__ import annotations

from .pins import BY_SIZE, last_of
from .plan import Costs, Plan
from .policy import Pressure
from .rungs import Climber
from .settings import DEPTHS
from .survey import Survey

INPUTS, TURNS = "deep pass: long input", "deep pass: old turn"
"""The rungs, as receipts name them."""


def deepen(plan: Plan, found: Survey, pressure: Pressure, costs: Costs, floor: int = 0) -> Plan:
    """Cut further until the prompt is at the target, as deep as the setting `deepen` allows: long inputs of old calls;
    whole old turns. Nothing before the position `floor` changes."""
    depth = DEPTHS.index(pressure.settings.deepen)
    # What the judge keeps stays whole, its call included; and what may still be judged, since its input is a part of
    # what it is known by.
    kept = {decision.exchange.ordinal for decision in plan.decisions if decision.action == "keep"}
    climber = Climber(pressure, costs, pressure.target, kept | _pinned(found, pressure, costs), floor)
    if depth >= DEPTHS.index("inputs"):
        plan = climber.inputs(plan, INPUTS)
    return climber.turns(plan, TURNS) if depth >= DEPTHS.index("turns") else plan


def _pinned(found: Survey, pressure: Pressure, costs: Costs) -> set[int]:
    """Calls that stay as they are: recent ones, and all whose result is pinned for more than its size."""
    recent = {e.ordinal for e in last_of(costs.transcript.completed, pressure.settings.pin_last_calls)}
    return recent | {ordinal for ordinal, pin in found.pinned.items() if pin not in BY_SIZE}
