"""Means with intervals: whole sessions are drawn again, since cuts of one session say much the same."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

LEAST_SESSIONS = 5
"""With fewer sessions no interval is given: a few draws of the same few say nothing."""

DRAWS = 2_000
_LOW, _HIGH = 0.025, 0.975


class Estimate(NamedTuple):
    """A mean over cases and its 95 % interval over sessions; None where it is not defined."""

    mean: float | None
    low: float | None
    high: float | None
    cases: int
    sessions: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def text(self, digits: int = 1) -> str:
        """As it stands in a table."""
        if self.mean is None:
            return "not defined (no case)"
        if self.low is None or self.high is None:
            return f"{self.mean:.{digits}f} [no interval: {_count(self.sessions, 'session')}]"
        return f"{self.mean:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def estimate(values: Iterable[tuple[str, float | None]], seed: int, draws: int = DRAWS) -> Estimate:
    """`values` are (session, value) of each case; a value of None does not count. The same seed gives the same
    interval."""
    by_session: dict[str, list[float]] = defaultdict(list)
    for session, value in values:
        if value is not None:
            by_session[session].append(value)
    parts = [(sum(found), len(found)) for _, found in sorted(by_session.items())]
    cases = sum(count for _, count in parts)
    if not cases:
        return Estimate(None, None, None, 0, 0)
    mean = sum(total for total, _ in parts) / cases
    if len(parts) < LEAST_SESSIONS:
        return Estimate(mean, None, None, cases, len(parts))
    chance = random.Random(seed)
    means = []
    for _ in range(draws):
        drawn = chance.choices(parts, k=len(parts))
        means.append(sum(total for total, _ in drawn) / sum(count for _, count in drawn))
    means.sort()
    return Estimate(mean, means[int(_LOW * draws)], means[int(_HIGH * draws)], cases, len(parts))
