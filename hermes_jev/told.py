"""Why the host asks for a pass: because it was told that one is due, or because the provider refused the prompt.

Hosts do not say it. They ask whether a pass is due before and after each request, and ask for one with the number they
asked about; after a refusal they ask for one without a question, with a count of the messages alone. So a pass that
nobody was told to make, or one with another number than was asked about, answers a refusal. Some hosts compact by hand
in the same way; then the conversation ends with an answer, or the count holds more than was asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Answer = Literal["", "due", "not due", "done"]


@dataclass
class Told:
    """What the host was told since the provider's last response. Plain data."""

    answer: Answer = ""
    asked: int = 0

    def say(self, due: bool, tokens: int) -> None:
        """The host asked whether a pass is due at this many tokens."""
        self.answer, self.asked = ("due" if due else "not due"), tokens

    def forget(self) -> None:
        """A response came, or a turn, a session or a window ended: nothing is open any more."""
        self.answer, self.asked = "", 0

    def begin_pass(self, tokens: int, counted: int, messages: Sequence[Any], *, turns_announced: bool) -> bool:
        """A pass is asked for with `tokens` (0 for none), while the last real count is `counted`. Returns whether the
        provider refused the prompt. `turns_announced` says that the host is one that forces what is done by hand."""
        by_hand = not turns_announced and self.answer == "not due" and tokens > self.asked > 0
        refused = self._refused(tokens, counted) and not by_hand and not _ends_with_answer(messages)
        self.answer = "done" if self.answer else ""
        return refused

    def _refused(self, tokens: int, counted: int) -> bool:
        if self.answer == "due":
            # Told to make it: with the number it was told about, the provider's own, or none.
            return tokens not in (0, self.asked, counted)
        return self.answer in ("not due", "done")


def _ends_with_answer(messages: Sequence[Any]) -> bool:
    """Whether the assistant spoke last: no request ends like that, so none was refused."""
    last = messages[-1] if messages else None
    return isinstance(last, Mapping) and last.get("role") == "assistant" and not last.get("tool_calls")
