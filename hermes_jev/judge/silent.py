"""A judge that cannot be asked: it stands where a judge was named and there is no key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .protocol import Answers, Request


@dataclass(frozen=True)
class Silent:
    """Answers nothing and says why with the error code `code`; sends nothing."""

    name: str = "jev"
    version: str = ""
    code: str = "auth"
    local: bool = False

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        """No answers and the code."""
        return Answers(judge=self.name, errors=(self.code,))
