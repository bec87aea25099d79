"""Policies that people use, as they are: each with the size it happens to reach."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..errors import InputError
from .case import Case
from .plans import PAIR, STUB, Plan, Step, carry_out
from .stock import stock_prune

Policy = Callable[[Case], list[Any]]
"""The prefix of a case, shortened; untouched messages are the same objects."""

DEFAULT = (
    "none",
    "keep-last-10",
    "last-3-stubs",
    "last-3-truncated",
    "protect-40k-tokens",
    "protect-10k-tokens",
    "pair-rule",
    "stock-prune",
)

EXCERPT = 300
CHARS_PER_TOKEN = 4
PINNED_MESSAGES = 6
HALF_OF_PROTECTED = 2


def policy(name: str) -> Policy:
    """The policy of a name. Raises InputError for one that is not known."""
    if name in _PLAIN:
        return _PLAIN[name]
    for pattern, make in _WITH_NUMBER:
        if found := re.fullmatch(pattern, name):
            return make(int(found[1]))
    raise InputError(f"policy {name[:40]!r} is unknown; known are {', '.join((*DEFAULT, 'hermes_jev'))}")


def _keep_all(case: Case) -> list[Any]:
    return list(case.prefix)


def _last(kept: int, step: Step) -> Policy:
    """All results but the last `kept`."""

    def run(case: Case) -> list[Any]:
        places = list(case.results)
        return carry_out(case, {place: step for place in (places[:-kept] if kept else places)})

    return run


def _protect(thousands: int) -> Policy:
    """Walk back; what lies beyond so many tokens of tool output is stubbed, if that frees half as many tokens. (The
    rule it is taken from also leaves the last two turns alone, which in a run of one request is all of it.)"""

    def run(case: Case) -> list[Any]:
        protected, seen, freed = thousands * 1_000, 0.0, 0.0
        plan: dict[int, Step] = {}
        for place in reversed(list(case.results)):
            tokens = case.results[place].size / CHARS_PER_TOKEN
            seen += tokens
            if seen > protected:
                plan[place] = STUB
                freed += tokens
        return carry_out(case, plan if freed > protected / HALF_OF_PROTECTED else {})

    return run


def pair_rule(case: Case) -> list[Any]:
    """The pair rule at 0.5 with a judge that always answers zero, which is what a hosted one amounted to in public
    replays: every call goes with its result, the first message and the last six stay."""
    first_pinned = case.cut - PINNED_MESSAGES
    plan: Plan = {
        place: PAIR
        for place, exchange in case.results.items()
        if place < first_pinned and 0 < exchange.call_at < first_pinned
    }
    return carry_out(case, plan)


_PLAIN: dict[str, Policy] = {
    "none": _keep_all,
    "pair-rule": pair_rule,
    "stock-prune": lambda case: stock_prune(case.prefix),
}
_WITH_NUMBER: tuple[tuple[str, Callable[[int], Policy]], ...] = (
    (r"keep-last-(\d{1,6})", lambda count: _last(count, PAIR)),
    (r"last-(\d{1,6})-stubs", lambda count: _last(count, STUB)),
    (r"last-(\d{1,6})-truncated", lambda count: _last(count, Step("truncate", EXCERPT))),
    (r"protect-(\d{1,6})k-tokens", _protect),
)
