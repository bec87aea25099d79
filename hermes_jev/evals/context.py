"""A conversation as it grows: the prompt of each call, its tokens, and what of it the cache knows already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tokens import message_tokens


class Context:
    """The messages of the next prompt. Estimates are made once for each message."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self._sent: list[Any] = []
        self._counted: dict[int, tuple[Any, int]] = {}

    def add(self, message: Any) -> None:
        """One more message."""
        self.messages.append(message)

    def replace(self, messages: Sequence[Any]) -> None:
        """What a pass made of them."""
        self.messages = list(messages)

    @property
    def tokens(self) -> int:
        """Estimated tokens of the prompt."""
        return sum(map(self.count, self.messages))

    def count(self, message: Any) -> int:
        """Estimated tokens of a message."""
        # The message is held too, or another object could get its place in memory.
        found = self._counted.get(id(message))
        if found is None:
            found = self._counted[id(message)] = (message, message_tokens(message))
        return found[1]

    def send(self) -> int:
        """The prompt goes out; returns how many of its tokens the prompt before it began with."""
        known = 0
        for old, new in zip(self._sent, self.messages, strict=False):
            if old is not new and old != new:
                break
            known += self.count(new)
        self._sent = list(self.messages)
        return known
