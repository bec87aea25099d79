"""How long to leave the host alone after a pass.

Hosts allow a turn only a few passes, overflow included, so a pass that changes nothing is a loss. After one the engine
stays quiet until new results are worth another or, where none are in sight, until the prompt has grown; after two in a
row until the window is urgently full. A pass that did change something is followed by quiet too: the next one over the
same list would change nothing.

The host asks with rough counts before a request and with counts based on the provider's own after it, and the two
differ. So a rough count is compared with the last rough one and a real one with the last real one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["rough", "real"]

GROWTH = 0.05
"""Share of the window by which a prompt has grown."""

IDLE_PASSES = 2
"""So many passes in a row that changed nothing, and only urgent pressure is worth another."""


@dataclass
class Quiet:
    """Plain state of one engine. `active` after a pass; `urgent` if that pass was at urgent pressure already; `idle`
    counts passes in a row, within a turn, that changed nothing or too little; `calls` is after how many more responses
    new results could be worth a pass, None for never."""

    active: bool = False
    urgent: bool = False
    idle: int = 0
    rough: int | None = None
    real: int | None = None
    calls: int | None = None
    responses: int = 0
    fresh: bool = False
    last: tuple[Kind, int] = ("rough", 0)

    def response(self, counted: int, trigger: float) -> None:
        """The provider answered, and counted so many tokens (0 where it did not say)."""
        self.responses += 1
        if counted > 0:
            self.fresh = True
            if counted < trigger:
                self.active, self.idle = False, 0

    def turn_over(self) -> None:
        """A turn ended: the next one has its passes anew, and its first number is not based on a count."""
        self.idle = 0
        self.fresh = False

    def holds(self, used: int, step: float, urgent: bool) -> bool:
        """Whether to stay quiet about a prompt of `used` tokens, where `step` tokens count as growth and `urgent` says
        how full the window is."""
        kind: Kind = "real" if self.fresh else "rough"
        self.fresh = False
        self.last = (kind, used)
        if not self.active or used <= 0 or (urgent and not self.urgent):
            return False
        if self.idle >= IDLE_PASSES and not urgent:
            return True
        if self.calls is not None and self.responses >= self.calls:
            return False
        if self.calls is not None and self.responses and not urgent:
            # What can be cut next is known, and growth alone would not bring it nearer. (A provider that counts nothing
            # sends no responses here; then growth is all there is.)
            return True
        before = self.real if kind == "real" else self.rough
        if before is None:
            self.note(kind, used)
            return True
        return used < before + step

    def after_nothing(self, calls: int | None, urgent: bool) -> Quiet:
        """The state after a pass that changed nothing, judged by the number that led to it."""
        quiet = replace(self, active=True, urgent=urgent, idle=self.idle + 1, rough=None, real=None, calls=calls)
        quiet.responses = 0
        kind, used = self.last
        if used > 0:
            quiet.note(kind, used)
        return quiet

    def after_change(self, calls: int | None, urgent: bool, enough: bool) -> Quiet:
        """The state after a pass that changed the list: what is counted next is where growth starts. `enough` says that
        it brought the prompt under the trigger; else it too was one of the few passes a turn has."""
        return Quiet(active=True, urgent=urgent, idle=0 if enough else self.idle + 1, calls=calls)

    def note(self, kind: Kind, used: int) -> None:
        """Remember the number that growth is measured against."""
        if kind == "real":
            self.real = used
        else:
            self.rough = used
