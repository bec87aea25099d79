"""Cut to a size instead of by thresholds: in rank order, until so many characters are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from . import rank
from .policy import Action, Cuts, Decision, Known, by_rule, rank_order, ranked
from .transcript import Exchange

ENOUGH = "size reached"


def decide_to(
    candidates: Sequence[Exchange], outputs: Mapping[int, float], need: float, cuts: Cuts, known: Known
) -> list[Decision]:
    """Decisions that free `need` characters of results, no more than it takes, less where all cuts are not enough.

    `outputs` are P(output needed) by ordinal; an exchange without one counts as an even chance. What rules settle is
    cut as they say; the rest is shortened in rank order and, where shortening all is not enough, removed in it.
    """
    kept = ranked([Decision(exchange, "keep", ENOUGH) for exchange in candidates], known, outputs)
    done = {decision.exchange.ordinal: decision for decision in kept}

    def go(action: Action) -> None:
        nonlocal need
        wanted: dict[int, Decision] = {}
        for decision in rank_order(done.values()):
            ruling = known.rulings.get(decision.exchange.ordinal)
            cut = by_rule(decision.exchange, ruling, cuts) if ruling else decision
            possible = cuts.possible(decision.exchange, cut.action if ruling else action)
            reason = cut.reason if ruling else "in rank order"
            if possible != decision.action:
                wanted[decision.exchange.ordinal] = replace(decision, action=possible, reason=reason)

        def frees(decision: Decision) -> int:
            before = done[decision.exchange.ordinal]
            return cuts.chars(before.exchange, before.action) - cuts.chars(decision.exchange, decision.action)

        for decision in rank.until(list(wanted.values()), need, frees, lambda d: d.needed):
            need -= frees(decision)
            done[decision.exchange.ordinal] = decision

    go("truncate")
    go("remove")
    return list(done.values())
