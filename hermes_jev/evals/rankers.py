"""Baselines at equal size: an order in which results go, until enough is gone."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping

from .case import Case
from .plans import STUB, Plan, Step, gain

Worth = Mapping[int, float]
"""Place of a result → what it is worth; the least goes first."""

Ranker = Callable[[Case], Worth]


def recency(case: Case) -> Worth:
    """The newest is worth most."""
    return {place: place for place in case.results}


def size_and_age(case: Case) -> Worth:
    """Large and old is worth least."""
    return {place: -exchange.size * (case.cut - place) for place, exchange in case.results.items()}


def by_chance(seed: int) -> Ranker:
    """Chance, the same for the same seed and session."""

    def worth(case: Case) -> Worth:
        # Not for secrets: an order that anybody can draw again.
        chance = random.Random(f"{seed} {case.session.id} {case.share}")
        return {place: chance.random() for place in case.results}

    return worth


def oracle(case: Case) -> Worth:
    """The best choice of whole results, found greedily: the fewest characters that still carry every need, and of those
    the ones with the most needs a character."""
    kept: set[int] = set()
    value: Counter[int] = Counter()
    for need in sorted(case.needs, key=lambda need: len(need.carriers)):
        places = [carrier.at for carrier in need.carriers if carrier.slot is None]
        if len(places) < len(need.carriers) or any(place not in case.results for place in places):
            continue  # Arguments stay, so this need is safe.
        place = next((p for p in places if p in kept), min(places, key=lambda p: case.results[p].size))
        kept.add(place)
        value[place] += 1
    return {
        place: 1 + value[place] / (exchange.size + 1) if place in kept else -exchange.size
        for place, exchange in case.results.items()
    }


def plan_to(case: Case, worth: Worth, chars: float, *, exactly: bool = False) -> Plan:
    """Stubs, least worth first, until at least `chars` characters are gone. The last result goes whole, so that up to
    one result too much goes; `exactly` leaves as much of its beginning as there is room for."""
    plan: dict[int, Step] = {}
    freed = 0.0
    for place in sorted(case.results, key=lambda place: worth[place]):
        if freed >= chars:
            break
        freeing = gain(case, place, STUB)
        if freeing <= 0:
            continue
        spare = math.floor(freed + freeing - chars) - 1
        plan[place] = Step("truncate", spare) if exactly and spare > 0 else STUB
        freed += freeing
    return plan
