"""The rolling schedule: results are settled a few calls after they were made, so that only the tail of the prompt is
ever written again."""

from __future__ import annotations

from dataclasses import dataclass

from .extent import ROLLING_GAIN

NEVER_ASKED = "schedule is rolling, but this host never asks for it: results are settled when the window fills"


@dataclass
class Rolling:
    """Plain state of one engine: the tokens of the prompt when results were last looked at. A pass that cannot free
    enough yet is not even begun, since hosts offer one after every round of tools."""

    looked_at: int = 0

    def due(self, used: int, window: int) -> bool:
        """Whether the prompt has grown enough since to look again."""
        self.looked_at = min(self.looked_at, used)
        return window > 0 and used - self.looked_at >= ROLLING_GAIN * window

    def looked(self, used: int, freed: int) -> None:
        """A look at a prompt of so many tokens, and what it freed."""
        self.looked_at = max(0, used - freed)
