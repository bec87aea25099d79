"""What later calls have to do with an earlier one, counted here so that nobody is asked to count.

A call refers to an earlier one when its input names the same path, or a path or identifier that first stood in the
earlier output. Names are compared, never shown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from .transcript import Exchange, Transcript

INPUT_CHARS = 4_000
OUTPUT_CHARS = 16_000
"""Characters of an input, and of each end of an output, that are searched for names."""

_NAME = re.compile(r"\w[\w./-]{3,}\w")
_TELLING = re.compile(r"[/._\d]|[a-z][A-Z]")
_PATH = re.compile(r"[/.]")


@dataclass(frozen=True)
class Later:
    """How many later calls make the same call, name a path of its input, name something from its output."""

    repeats: int
    path: int
    output: int

    def words(self) -> str:
        """The same in a phrase."""
        said = [
            "the same call was made again later" if self.repeats else "",
            _counted(self.path, "names a path of its input", "name a path of its input"),
            _counted(self.output, "names a path or id from its output", "name a path or id from its output"),
        ]
        return "; ".join(part for part in said if part) or "no later call refers to it"


def _counted(count: int, one: str, many: str) -> str:
    return "" if not count else f"1 later call {one}" if count == 1 else f"{count} later calls {many}"


@dataclass(frozen=True)
class References:
    """The uses of names in the inputs of one transcript."""

    transcript: Transcript

    def later(self, exchange: Exchange) -> Later:
        """What the calls after `exchange` have to do with it."""
        own = _names(exchange.arguments[:INPUT_CHARS])
        at = exchange.ordinal
        path = {user for name in own if _PATH.search(name) for user in self._users[name] if user > at}
        text = exchange.text
        ends = text if len(text) <= 2 * OUTPUT_CHARS else f"{text[:OUTPUT_CHARS]}\n{text[-OUTPUT_CHARS:]}"
        # A name that was in use before the output was there does not come from it.
        shown = {name for name in self._users.keys() & set(_NAME.findall(ends)) if self._users[name][0] > at}
        output = {user for name in shown for user in self._users[name]}
        again = self._calls[exchange.tool, exchange.arguments]
        return Later(sum(1 for ordinal in again if ordinal > at), len(path), len(output))

    @cached_property
    def _users(self) -> dict[str, list[int]]:
        """Name → ordinals of the calls whose input holds it, ascending."""
        users: dict[str, list[int]] = {}
        for exchange in self.transcript.exchanges:
            for name in _names(exchange.arguments[:INPUT_CHARS]):
                users.setdefault(name, []).append(exchange.ordinal)
        return users

    @cached_property
    def _calls(self) -> dict[tuple[str, str], list[int]]:
        calls: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for exchange in self.transcript.exchanges:
            calls[exchange.tool, exchange.arguments].append(exchange.ordinal)
        return calls


def _names(text: str) -> set[str]:
    return {name for name in _NAME.findall(text) if _TELLING.search(name)}
