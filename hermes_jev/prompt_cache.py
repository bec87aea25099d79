"""What a pass costs at the provider's prompt cache, and after how many calls it has paid for that.

A provider knows a prompt up to the first byte that differs from the one before. What stands behind it is written to the
cache anew, at a price several times that of reading it; in return every later call reads less. Arithmetic only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

PER = 1_000_000
"""Prices are US dollars for so many tokens."""


class CachePrices(NamedTuple):
    """US dollars for a million tokens that are read from the cache, and that are written to it."""

    read: float
    written: float

    @property
    def again(self) -> float:
        """What a token costs more when it is written once more instead of read."""
        return max(0.0, self.written - self.read)


class Change(NamedTuple):
    """Tokens that leave the message at a position."""

    at: int
    freed: int


@dataclass(frozen=True)
class Rewrite:
    """What a pass does to the prompt, in tokens: `first` is the message of the first change, `prefix` what stands
    before it, `rewritten` what the cache knew and gets written once more, `freed` what is gone."""

    first: int
    prefix: int
    rewritten: int
    freed: int
    prices: CachePrices

    @property
    def once(self) -> float:
        """US dollars that the next call costs more."""
        return self.rewritten * self.prices.again / PER

    @property
    def saved(self) -> float:
        """US dollars that each call costs less from then on."""
        return self.freed * self.prices.read / PER

    @property
    def break_even(self) -> float:
        """After how many calls the one is as much as the other; infinite where nothing is saved."""
        return 0.0 if not self.once else self.once / self.saved if self.saved else math.inf

    def gain(self, calls: int) -> float:
        """US dollars that are left after so many calls."""
        return calls * self.saved - self.once

    def pays(self, calls: int) -> bool:
        """Whether anything is left after so many calls."""
        return self.gain(calls) > 0 or not self.once


@dataclass(frozen=True)
class Prompt:
    """A prompt before a pass: the tokens of each message, and the position from which on messages were never sent: the
    cache does not know those, so they cost the same in any case."""

    tokens: Sequence[int]
    sent: int

    def rewrite(self, changes: Sequence[Change], prices: CachePrices) -> Rewrite | None:
        """The arithmetic of all these changes; None where there are none."""
        *_, whole = (None, *self._from_each(changes, prices))
        return whole

    def best_start(self, changes: Sequence[Change], prices: CachePrices, calls: int) -> int:
        """From which position on changes are worth making: leaving out those before it saves more than they free over
        so many calls. As far back in the prompt as that is so; 0 without changes."""
        best, start = -math.inf, 0
        for found in self._from_each(changes, prices):
            if (gain := found.gain(calls)) > best:
                best, start = gain, found.first
        return start

    def _from_each(self, changes: Sequence[Change], prices: CachePrices) -> Iterator[Rewrite]:
        """The arithmetic of the last change, of the last two, and so on."""
        before = [0, *accumulate(self.tokens)]
        freed = freed_of_sent = 0
        for change in sorted(changes, reverse=True):
            freed += change.freed
            freed_of_sent += change.freed if change.at < self.sent else 0
            known = before[max(change.at, self.sent)] - before[change.at] - freed_of_sent
            yield Rewrite(change.at, before[change.at], max(0, known), freed, prices)
