"""The window ladder: cut further, rung by rung, when the window is too small for the prompt.

Its authority is above that of pins and of the judge, so it goes only as far as it must and names each rung.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .pins import UNSEEN, Pin
from .policy import Action, Cuts, Decision, Pressure, gain_of, rank_order
from .transcript import Exchange

LADDER_MARGIN = 0.9
"""The ladder stops at this share of the trigger: estimates are off by some percent, and a host counts a pass that left
the prompt over the trigger against the few that a turn has."""


def ladder(
    decisions: Sequence[Decision], pinned: Sequence[tuple[Exchange, Pin]], pressure: Pressure, cuts: Cuts
) -> list[Decision]:
    """Cut further, rung by rung, until the estimate is back under the trigger: unpinned results in rank order, then
    pinned results from the largest down. What the assistant has not seen yet is cut last, and only in an overflow."""
    done = {decision.exchange.ordinal: decision for decision in decisions}
    freed = gain_of(decisions, cuts)

    def climb(rung: str, order: Sequence[Decision], wants: Callable[[Decision], Action]) -> None:
        nonlocal freed
        for decision in order:
            if pressure.after(freed) < LADDER_MARGIN * pressure.trigger:
                return
            action = cuts.possible(decision.exchange, wants(decision))
            if action != "keep":
                done[decision.exchange.ordinal] = Decision(decision.exchange, action, rung, decision.verdict)
                freed += cuts.gain(decision.exchange, action) or 0

    def by_call(decision: Decision) -> Action:
        call = decision.verdict.call if decision.verdict is not None else None
        return "remove" if call is not None and call < pressure.settings.call_threshold else "truncate"

    kept = rank_order(decision for decision in decisions if decision.action == "keep")
    climb("ladder: unpinned", kept, by_call)
    soft = [Decision(exchange, "keep", pin) for exchange, pin in pinned if pressure.overflow or pin != UNSEEN]
    soft.sort(key=lambda d: (d.reason == UNSEEN, -d.exchange.size, d.exchange.ordinal))
    climb("ladder: pinned", soft, lambda _: "truncate")
    return list(done.values())
