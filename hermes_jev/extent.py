"""How far a pass goes: deep enough to last, no further forward in the prompt than pays, or not at all.

Below urgent pressure a pass is a matter of money: it has the provider write the prompt to its cache again from the
first change on. So early cuts that free little are left out, and a pass that would not pay is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from .deepen import deepen
from .plan import Costs, Plan, all_removed
from .policy import TARGET_REACHED, Decision, Pressure
from .prompt_cache import CachePrices, Prompt, Rewrite
from .survey import Survey

ROLLING_CALLS = 20
"""How many calls beyond the pinned ones a rolling pass looks at; what is older is settled."""
ROLLING_GAIN = 0.03
"""Share of the window a rolling pass must free."""

EARLY = "the cached prefix is worth more"

_NEAR, _OVER = 1.05, 1.10
"""Shares of the target: a pass that ends within the first has reached it, and only a prompt over the second goes on
down to it. Estimates may differ by some tokens from what is left; between the two a second pass finds nothing to do."""


@dataclass(frozen=True)
class Extent:
    """Makes the plan of one pass out of what rules and judge say."""

    found: Survey
    pressure: Pressure
    costs: Costs
    rolling: bool = False
    """Whether this pass settles the last few calls instead of making room."""
    unanswered: bool = False
    """Whether the judge was asked and answered nothing: doubt keeps."""

    @property
    def counts_money(self) -> bool:
        """Whether what the cache costs has a say: where writing it again costs anything, in a window, below urgent
        pressure, and when nobody insists."""
        pressure = self.pressure
        return self.prices.again > 0 and pressure.window is not None and not (pressure.forced or pressure.urgent)

    @property
    def goes_deep(self) -> bool:
        """Whether a pass goes on down to the target."""
        pressure = self.pressure
        if self.rolling or self.unanswered or pressure.window is None:
            return False
        return pressure.settings.deepen != "off"

    @property
    def prices(self) -> CachePrices:
        """Those of the settings."""
        settings = self.pressure.settings
        return CachePrices(settings.cached_input_price, settings.cache_write_price)

    def plan(self, decisions: Iterable[Decision]) -> Plan:
        """The decisions, and what is cut beside them; without early cuts that do not pay."""
        given = tuple(decisions)
        whole = self._from(given, 0)
        if not self.counts_money or any(decision.reason == TARGET_REACHED for decision in given):
            return whole
        calls = self.pressure.settings.expected_calls
        start = self._prompt.best_start(self.costs.changes(whole), self.prices, calls)
        late = self._from(given, start) if start else whole
        # Later cuts in place of the early ones, or nothing left that could be cut: either way the next pass finds
        # nothing. Where later cuts alone do not reach the target, the early ones have their use.
        reached = not self.goes_deep or self._left(late) <= _NEAR * self.pressure.target
        return late if reached or self._left(whole) > _OVER * self.pressure.target else whole

    def rewrite(self, plan: Plan) -> Rewrite | None:
        """What the plan costs at the cache; None where it changes nothing."""
        return self._prompt.rewrite(self.costs.changes(plan), self.prices)

    def nothing_to_do(self) -> str:
        """Why no question needs to be asked, empty when one does."""
        if self.rolling:
            return self._too_little_to_settle()
        if self.pressure.at_rest:
            return "the window has room"
        if self.pressure.urgent:
            return ""
        possible = sum(self.costs.cuts.best_gain(exchange) or 0 for exchange in self.found.candidates)
        if self.goes_deep:
            possible += self.costs.freed(deepen(Plan(), self.found, self.pressure, self.costs))
        if not possible:
            return "nothing but recent, small or protected results"
        return "" if possible >= self.least_gain else "all that could be cut together would not free enough"

    def _too_little_to_settle(self) -> str:
        cuts = self.costs.cuts
        most = [Decision(e, cuts.possible(e, "remove"), "") for e in self.found.candidates]
        plan = self.plan(most)
        if not most or self.costs.freed(plan) < self.least_gain:
            return "too little new to settle"
        return self.refused(self.rewrite(plan))

    @property
    def least_gain(self) -> float:
        """Tokens the pass must free."""
        return ROLLING_GAIN * (self.pressure.window or 0) if self.rolling else self.pressure.least_gain

    def refused(self, rewrite: Rewrite | None) -> str:
        """Why a plan is not worth what it costs at the cache, empty where it is."""
        calls = self.pressure.settings.expected_calls
        if not self.counts_money or rewrite is None or rewrite.pays(calls):
            return ""
        if math.isinf(rewrite.break_even):
            return "writing the cache again would never pay"
        return f"writing the cache again would pay only after {rewrite.break_even:,.0f} calls"

    @property
    def _prompt(self) -> Prompt:
        transcript = self.costs.transcript
        return Prompt(transcript.sizes, max(0, transcript.newest_assistant))

    def _left(self, plan: Plan) -> float:
        return self.pressure.after(self.costs.freed(plan))

    def _from(self, decisions: tuple[Decision, ...], floor: int) -> Plan:
        """The plan that changes nothing before the position `floor`."""
        plan = Plan(tuple(replace(d, action="keep", reason=EARLY) if _early(d, floor) else d for d in decisions))
        if self.pressure.settings.removed_calls == "drop" and not self.rolling:
            groups = [group for group in all_removed(plan, self.costs.groups) if group.start >= floor]
            plan = self.costs.leaving(plan, groups, "call and output not needed")
        return self.deepened(plan, floor)

    def deepened(self, plan: Plan, floor: int = 0) -> Plan:
        """The plan, gone on down to the target where that is what a pass does. After a ladder too: what it cut is no
        longer kept, so that the next pass would go on there."""
        if self.goes_deep and self._left(plan) > _OVER * self.pressure.target:
            return deepen(plan, self.found, self.pressure, self.costs, floor)
        return plan


def _early(decision: Decision, floor: int) -> bool:
    return decision.action != "keep" and (decision.exchange.result_at or 0) < floor
