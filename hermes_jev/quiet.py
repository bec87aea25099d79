"""When a pass changed nothing: how long to leave the host alone.

The host asks with rough counts before a request and with the provider's own after it, and the two differ. So a rough
count is compared with the last rough one and a real one with the last real one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["rough", "real"]


@dataclass
class Quiet:
    """Plain state of one engine. `active` after a pass that changed nothing; `calls` is after how many more responses
    new results could be worth a pass, None for never."""

    active: bool = False
    rough: int | None = None
    real: int | None = None
    calls: int | None = None
    responses: int = 0
    fresh: bool = False
    last: tuple[Kind, int] = ("rough", 0)

    def response(self) -> None:
        """The provider answered: one more round of calls can have been made."""
        self.responses += 1

    def counted(self) -> None:
        """The answer came with a count: the next number asked about is based on it."""
        self.fresh = True

    def holds(self, used: int, step: float) -> bool:
        """Whether to stay quiet about a prompt of `used` tokens, where `step` tokens count as growth."""
        kind: Kind = "real" if self.fresh else "rough"
        self.fresh = False
        self.last = (kind, used)
        if not self.active or used <= 0:
            return False
        if self.calls is not None and self.responses >= self.calls:
            return False
        before = self.real if kind == "real" else self.rough
        if before is None:
            self.note(kind, used)
            return True
        return used < before + step

    def after_nothing(self, calls: int | None) -> Quiet:
        """The state after a pass that changed nothing, judged by the number that led to it."""
        quiet = replace(self, active=True, rough=None, real=None, calls=calls, responses=0)
        kind, used = self.last
        if used > 0:
            quiet.note(kind, used)
        return quiet

    def note(self, kind: Kind, used: int) -> None:
        """Remember the number that growth is measured against."""
        if kind == "real":
            self.real = used
        else:
            self.rough = used
