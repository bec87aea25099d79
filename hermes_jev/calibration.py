"""Where a judge's scores are cut: at the settings' thresholds, by the session's scores, or by what came of cuts.

Judges differ in scale: public replays of one found no score above 0.25, so that a fixed 0.5 keeps nothing. `session`
reads the scale off the scores of the pass; `learned` also moves scores by how often cut results of that tool and score
were fetched again. Both stay within set limits of the settings' thresholds.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .settings import Settings

NEEDED_SHARE = 0.2
"""Share of a session's judged results that `session` keeps: of old results, 13 to 17 % are published as needed again,
and a judge does not find just those."""
LEAST_SCORES = 12
"""Fewer scores have no distribution."""
LEAST_SPREAD = 0.02
"""Where the scores lie closer together, they say nothing about which."""
LOWEST, HIGHEST = 0.1, 1.2
"""A threshold stays within these multiples of the setting."""

BANDS = (0.05, 0.1, 0.2, 0.35, 0.5)
"""Upper ends of the score bands; the last band goes to 1."""
TOLERATED = 0.1
"""Share of cut results that may be fetched again before scores of that kind are raised."""
SMOOTHING = 10
"""Imagined cuts with the tolerated share of regret, so that few outcomes move little."""
LEAST_SHIFT, MOST_SHIFT = -0.5, 1.5
"""Limits of a shift, in logits. Regret is a lower bound of misjudgement, so scores are lowered with more reserve."""


class Tally(NamedTuple):
    """What came of cuts: how many results of this tool and score band were cut, and how many were wanted again."""

    tool: str
    band: int
    cuts: int
    regrets: int


@dataclass(frozen=True)
class Calibration:
    """Thresholds in force, and how far scores of a tool and band are moved, in logits."""

    call: float
    output: float
    shifts: Mapping[tuple[str, int], float] = field(default_factory=dict)

    def score(self, tool: str, output: float) -> float:
        """The judge's P(output needed), moved by what came of earlier cuts."""
        shift = self.shifts.get((tool, band_of(output)), 0.0)
        if not shift or not 0.0 < output < 1.0:
            return output
        return 1 / (1 + math.exp(-math.log(output / (1 - output)) - shift))


def fixed(settings: Settings) -> Calibration:
    """The thresholds of the settings."""
    return Calibration(settings.call_threshold, settings.output_threshold)


def calibrate(
    calls: Sequence[float], outputs: Sequence[float], settings: Settings, tallies: Iterable[Tally] = ()
) -> Calibration:
    """The calibration that the settings ask for, for the scores of one pass. `tallies` are used by `learned` only;
    while they hold no regret it equals `session`."""
    if settings.calibration == "fixed":
        return fixed(settings)
    shifts = _shifts(list(tallies)) if settings.calibration == "learned" else {}
    return Calibration(
        _by_session(calls, settings.call_threshold), _by_session(outputs, settings.output_threshold), shifts
    )


def band_of(score: float) -> int:
    """The score band, counted from 0."""
    return bisect.bisect_right(BANDS, score)


def _by_session(scores: Sequence[float], setting: float) -> float:
    """The score that the needed share of a session reaches, or the setting where the scores tell nothing apart."""
    if len(scores) < LEAST_SCORES or max(scores) - min(scores) < LEAST_SPREAD:
        return setting
    ordered = sorted(scores, reverse=True)
    reached = ordered[max(0, math.ceil(NEEDED_SHARE * len(ordered)) - 1)]
    return min(max(reached, LOWEST * setting), HIGHEST * setting, 1.0)


def _shifts(tallies: Sequence[Tally]) -> dict[tuple[str, int], float]:
    if not any(tally.regrets for tally in tallies):
        return {}
    cuts: dict[tuple[str, int], int] = {}
    regrets: dict[tuple[str, int], int] = {}
    for tally in tallies:
        cell = tally.tool, tally.band
        cuts[cell] = cuts.get(cell, 0) + tally.cuts
        regrets[cell] = regrets.get(cell, 0) + tally.regrets
    return {cell: _shift(cuts[cell], regrets[cell]) for cell in cuts}


def _shift(cuts: int, regrets: int) -> float:
    seen = (regrets + SMOOTHING * TOLERATED) / (max(cuts, regrets) + SMOOTHING)
    return min(max(math.log(seen / TOLERATED), LEAST_SHIFT), MOST_SHIFT)
