"""Cut to a size instead of by thresholds: in rank order, until so many characters are gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from . import rank
from .policy import Action, Cuts, Decision, Known, by_rule, ranked
from .transcript import Exchange

ENOUGH = "size reached"
IN_ORDER = "in rank order"
NO_ROOM = "no room for facts"
_LEFT: Mapping[Action, float] = {"keep": 1.0, "truncate": 0.4, "remove": 0.2, "drop": 0.0}
"""Share of a result's worth that stays with it: of the facts of long results, published counts find 40 % in the first
300 characters, and what is picked as facts stays when the excerpt goes."""


def decide_to(
    candidates: Sequence[Exchange], outputs: Mapping[int, float], need: float, cuts: Cuts, known: Known
) -> list[Decision]:
    """Decisions that free `need` characters of results, no more than it takes, less where all cuts are not enough.

    `outputs` are P(output needed) by ordinal; an exchange without one counts as an even chance. What rules settle is
    cut as they say; of the rest, whichever cut loses least per character goes first. Where that is not enough facts go
    too, those of the least worthy results first (`NO_ROOM`: to be rendered by `cuts.without_facts`).
    """
    kept = ranked([Decision(exchange, "keep", ENOUGH) for exchange in candidates], known, outputs)
    done = {decision.exchange.ordinal: decision for decision in kept}
    bare = cuts.without_facts()

    def chars(decision: Decision) -> int:
        return (bare if decision.reason == NO_ROOM else cuts).chars(decision.exchange, decision.action)

    def frees(step: Decision) -> int:
        return chars(done[step.exchange.ordinal]) - chars(step)

    def worth(step: Decision) -> float:
        left = 0.0 if step.reason == NO_ROOM else _LEFT[step.action]
        by_rule_alone = step.reason not in (IN_ORDER, NO_ROOM)
        return step.needed * (1.0 if by_rule_alone else _LEFT[done[step.exchange.ordinal].action] - left)

    first = [step for decision in kept for step in _steps(decision, cuts, known)]
    last = [replace(d, action="remove", reason=NO_ROOM) for d in kept if bare.gain(d.exchange, "remove") is not None]
    for steps in (first, last):
        # Shortening comes before removal at equal cost, since the sort keeps the order of equals.
        steps.sort(key=lambda step: rank.key(worth(step), frees(step), step.exchange.ordinal))
        missing = need - sum(decision.exchange.size - chars(decision) for decision in done.values())
        for step in rank.until(steps, missing, frees, worth):
            done[step.exchange.ordinal] = step
    return list(done.values())


def _steps(kept: Decision, cuts: Cuts, known: Known) -> Iterator[Decision]:
    """The cuts of a result: what a rule says, or all but its excerpt and facts, and then the excerpt too."""
    ruling = known.rulings.get(kept.exchange.ordinal)
    wanted: tuple[Action, ...] = ("truncate", "remove")
    if ruling is not None:
        cut = by_rule(kept.exchange, ruling, cuts)
        yield replace(kept, action=cut.action, reason=cut.reason)
        return
    for action in wanted:
        if cuts.possible(kept.exchange, action) == action:
            yield replace(kept, action=action, reason=IN_ORDER)
