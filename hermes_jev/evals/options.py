"""What is evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..settings import Settings
from . import baselines

ENGINE = "hermes_jev"
"""The policy that is this engine."""

THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Options:
    """What is evaluated. `cuts` are shares of a session's characters at which it is cut, `shares` the sizes at which
    rankers are compared, `policies` names of baselines (the engine is `hermes_jev`)."""

    cuts: tuple[float, ...] = (0.4, 0.6, 0.8)
    shares: tuple[float, ...] = (0.3, 0.5, 0.7, 0.8)
    policies: tuple[str, ...] = (*baselines.DEFAULT, ENGINE)
    judges: tuple[str, ...] = ("lexical",)
    thresholds: bool = False
    seed: int = 7
    least_chars: int = 0
    settings: Settings = field(default_factory=Settings)
