"""Cut to a size instead of by thresholds: in rank order, until so many characters are gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from . import rank
from .policy import Action, Cuts, Decision, Known, by_rule, ranked
from .transcript import Exchange

ENOUGH = "size reached"
IN_ORDER = "in rank order"
EXCERPT_WORTH = 0.4
"""Share of a result's worth that its excerpt holds: of the facts of long results, published counts find 40 % in the
first 300 characters, and what is picked as facts stays either way."""


def decide_to(
    candidates: Sequence[Exchange], outputs: Mapping[int, float], need: float, cuts: Cuts, known: Known
) -> list[Decision]:
    """Decisions that free `need` characters of results, no more than it takes, less where all cuts are not enough.

    `outputs` are P(output needed) by ordinal; an exchange without one counts as an even chance. What rules settle is
    cut as they say; of the rest, whichever cut loses least per character goes first.
    """
    kept = ranked([Decision(exchange, "keep", ENOUGH) for exchange in candidates], known, outputs)
    done = {decision.exchange.ordinal: decision for decision in kept}
    steps = [step for decision in kept for step in _steps(decision, cuts, known)]

    def frees(step: Decision) -> int:
        before = done[step.exchange.ordinal]
        return cuts.chars(before.exchange, before.action) - cuts.chars(step.exchange, step.action)

    def worth(step: Decision) -> float:
        if step.reason != IN_ORDER:
            return step.needed
        shares = {"keep": 1.0, "truncate": EXCERPT_WORTH, "remove": 0.0}
        return step.needed * (shares[done[step.exchange.ordinal].action] - shares[step.action])

    # Shortening comes before removal at equal cost, since the sort keeps the order of equals.
    steps.sort(key=lambda step: rank.key(worth(step), frees(step), step.exchange.ordinal))
    for step in rank.until(steps, need, frees, worth):
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
