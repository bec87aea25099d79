"""The gate to the outside: every text for a remote judge passes here, redacted first and only then cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .redact import RedactionError, Redactor, chain, redact, redact_arguments, redact_excerpt

__all__ = ["Gate", "RedactionError"]

_WHOLE = 20_000
"""Texts up to this length are redacted whole; of longer ones the part that is shown, with what stands around it."""
_MARGIN = 2_048


@dataclass(frozen=True)
class Gate:
    """The package's own redactor, always, and `on_top` (the host's) after it.

    Every method raises RedactionError when a redactor fails: what cannot be redacted is not sent. Lengths count
    characters of the redacted text.
    """

    on_top: tuple[Redactor, ...] = ()

    def text(self, text: str) -> str:
        """A short text, whole."""
        return chain(redact, *self.on_top)(text)

    def head_and_tail(self, text: str, head: int, tail: int) -> tuple[str, str]:
        """The first `head` and the last `tail` characters; of a text that fits into both, all of it as the head."""
        if len(text) <= _WHOLE:
            safe = self.text(text)
            return (safe, "") if len(safe) <= head + tail else (safe[:head], safe[len(safe) - tail :])
        size = len(text)
        first = self._piece(text, 0, head + _MARGIN)[:head]
        last = self._piece(text, size - tail - _MARGIN, size)
        return first, last[max(0, len(last) - tail) :]

    def start(self, text: str, limit: int) -> str:
        """The first `limit` characters."""
        return self._piece(text, 0, limit + _MARGIN)[:limit]

    def arguments(self, arguments: str, limit: int) -> tuple[str, bool]:
        """A call's input, redacted by field name and by value, and whether it is whole."""
        if len(arguments) > _WHOLE:
            return self.start(arguments, limit), False
        safe = self._on_top(redact_arguments(arguments))
        return safe[:limit], len(safe) <= limit

    def _piece(self, text: str, start: int, end: int) -> str:
        return self._on_top(redact_excerpt(text, start, end, _MARGIN))

    def _on_top(self, text: str) -> str:
        return chain(*self.on_top)(text) if self.on_top else text


def gate(on_top: Sequence[Redactor] = ()) -> Gate:
    """A gate with these redactors after the package's own."""
    return Gate(tuple(on_top))
