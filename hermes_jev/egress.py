"""The gate to the outside: every text for a remote judge passes here, redacted as a whole and only then cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .redact import RedactionError, Redactor, chain, redact, redact_arguments, redact_excerpt

__all__ = ["Gate", "RedactionError"]

_WHOLE_ARGUMENTS = 20_000
_MARGIN = 2_048


@dataclass(frozen=True)
class Gate:
    """The package's own redactor, always, and `on_top` (the host's) after it.

    Every method raises RedactionError when a redactor fails: what cannot be redacted is not sent.
    """

    on_top: tuple[Redactor, ...] = ()

    def text(self, text: str) -> str:
        """A short text, whole."""
        return chain(redact, *self.on_top)(text)

    def head_and_tail(self, text: str, head: int, tail: int) -> tuple[str, str]:
        """The first `head` and the last `tail` characters; of a text that fits into both, all of it as the head."""
        if len(text) <= head + tail:
            return self._piece(text, 0, len(text)), ""
        return self._piece(text, 0, head), self._piece(text, len(text) - tail, len(text))

    def start(self, text: str, limit: int) -> str:
        """The first `limit` characters."""
        return self._piece(text, 0, min(limit, len(text)))

    def arguments(self, arguments: str, limit: int) -> tuple[str, bool]:
        """A call's input, redacted by field name and by value, and whether it is whole."""
        if len(arguments) > _WHOLE_ARGUMENTS:
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
