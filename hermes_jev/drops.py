"""Whole turns that leave the window, calls and results: which may, what names them, and what is stored of them.

A turn may leave only when the assistant said nothing in it and each of its calls has its one result. Turns that follow
each other without a break leave as one run. The run is named in the nearest notice, a line of its own before the last
one, and stands behind that text in the store: so it goes back to where it was, however the list went on.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from .goal import words_in
from .notice import cut_in
from .settings import NOTICE_CHARS
from .tokens import value_text
from .transcript import Exchange, Message, Transcript
from .wrapping import unwrap

Side = Literal["before", "after"]

NAMED = 3
"""How many of the calls that left a notice names."""
INLINE_CHARS = 64
"""Longer results and inputs stand in the record as a pointer, since they are stored already."""

_GONE = re.compile(
    r'\[hermes_jev: [\d,]+ more calls? ran next to this one, stored: expand\(id="(?P<id>r-[a-z2-7]+)"\)'
    r'(?:, expand\(id="r-[a-z2-7]+"\))*(?:; session_search\(\) lists the rest)?\]'
)


class Group(NamedTuple):
    """A turn of the assistant without words, and its results: the messages from `start` up to `stop`."""

    start: int
    stop: int
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True)
class Run:
    """Turns that leave together, and the call whose result then names them; they stood on that `side` of its turn."""

    groups: tuple[Group, ...]
    anchor: Exchange
    side: Side

    @property
    def start(self) -> int:
        """The first message that leaves."""
        return self.groups[0].start

    @property
    def stop(self) -> int:
        """The first message after those that leave."""
        return self.groups[-1].stop

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The calls that leave, oldest first."""
        return tuple(exchange for group in self.groups for exchange in group.exchanges)


def groups_in(transcript: Transcript) -> list[Group]:
    """The turns that could leave whole, oldest first."""
    by_turn: dict[int, list[Exchange]] = defaultdict(list)
    for exchange in transcript.exchanges:
        by_turn[exchange.call_at].append(exchange)
    found = []
    for start, exchanges in by_turn.items():
        message = transcript.messages[start]
        stop = start + 1
        while stop < len(transcript.messages) and transcript.messages[stop].get("role") == "tool":
            stop += 1
        complete = all(exchange.state == "completed" for exchange in exchanges) and stop - start - 1 == len(exchanges)
        wordless = _is_wordless(message) and not any(words_in(exchange.text) for exchange in exchanges)
        if complete and wordless and start != transcript.newest_assistant:
            found.append(Group(start, stop, tuple(exchanges)))
    return found


def _is_wordless(message: Message) -> bool:
    content = message.get("content")
    return not content or (isinstance(content, str) and not content.strip())


# --- runs and the notices that name them ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Anchors:
    """Which result may name a run. `cut` says of an exchange whether this pass leaves a notice for it, and `can_be_cut`
    whether it could; `fits` whether the naming line still has room there."""

    transcript: Transcript
    cut: Callable[[Exchange], bool]
    can_be_cut: Callable[[Exchange], bool]
    fits: Callable[[Exchange], bool]

    @cached_property
    def _by_turn(self) -> Mapping[int, list[Exchange]]:
        found: dict[int, list[Exchange]] = defaultdict(list)
        for exchange in self.transcript.completed:
            found[exchange.call_at].append(exchange)
        return found

    def runs(self, groups: Iterable[Group]) -> list[Run]:
        """The runs that these turns leave as; of a run without a notice next to it one turn stays to name the rest."""
        found: list[Run] = []
        for chain in _chains(groups):
            found += self._of(chain)
        return found

    def _of(self, chain: list[Group]) -> list[Run]:
        if (outside := self._next_to(chain)) is not None:
            return [Run(tuple(chain), outside, "before")]
        for test in (self.can_be_cut, self._is_plain):
            for place in reversed(range(len(chain))):
                inside = next((exchange for exchange in chain[place].exchanges if test(exchange)), None)
                if inside is not None and self.fits(inside):
                    sides: list[tuple[list[Group], Side]] = [(chain[:place], "before"), (chain[place + 1 :], "after")]
                    return [Run(tuple(part), inside, side) for part, side in sides if part]
        return []

    def _next_to(self, chain: list[Group]) -> Exchange | None:
        """A call of the turn after the run whose result is being cut, unless the run is what keeps two messages of one
        role apart: hosts join such neighbours."""
        messages = self.transcript.messages
        start, stop = chain[0].start, chain[-1].stop
        before = messages[start - 1].get("role") if start else None
        if stop >= len(messages) or before == messages[stop].get("role") or before is None:
            return None
        following = self._by_turn.get(stop, ())
        return next((exchange for exchange in following if self.cut(exchange) and self.fits(exchange)), None)

    @staticmethod
    def _is_plain(exchange: Exchange) -> bool:
        return isinstance(exchange.result, str)


def _chains(groups: Iterable[Group]) -> list[list[Group]]:
    chains: list[list[Group]] = []
    for group in sorted(groups):
        if chains and chains[-1][-1].stop == group.start:
            chains[-1].append(group)
        else:
            chains.append([group])
    return chains


def naming(pointers: Sequence[str]) -> str:
    """The line that names calls that left: up to three, fewer where pointers are long."""
    count, different = len(pointers), list(dict.fromkeys(pointers))
    for named in range(min(NAMED, len(different)), 0, -1):
        names = ", ".join(f'expand(id="{pointer}")' for pointer in different[:named])
        rest = "; session_search() lists the rest" if len(different) > named else ""
        line = (
            f"[hermes_jev: {count:,} more call{'s' if count > 1 else ''} ran next to this one, stored: {names}{rest}]"
        )
        if len(line) <= NOTICE_CHARS or named == 1:
            return line
    return ""


NAMING_CHARS = NOTICE_CHARS + 1
"""Room that a naming line takes at most."""


def with_naming(text: str, line: str, *, is_notice: bool) -> str:
    """A result's text with the naming line: before its notice, or at the end where there is none."""
    if not is_notice:
        return f"{text}\n{line}"
    above, end, last = text.rpartition("\n")
    return f"{above}{end}{line}\n{last}"


class Standing(NamedTuple):
    """A result that names calls that left: its text, the text without that line, what the user said since, and the
    first pointer that the line names."""

    text: str
    bare: str
    words: str
    id: str


def naming_in(content: object) -> Standing | None:
    """Whether a result names calls that left, by its form."""
    if not isinstance(content, str) or "more call" not in content:
        return None
    cut = cut_in(content)
    words = cut.words if cut is not None else unwrap(content).user_words
    text = content[: len(content) - len(words)]
    lines = text.split("\n")
    place = len(lines) - (1 if cut is None else 2)
    found = _GONE.fullmatch(lines[place]) if place >= 0 else None
    if found is None:
        return None
    return Standing(text, "\n".join((*lines[:place], *lines[place + 1 :])), words, found["id"])


def key(text: str, side: Side) -> str:
    """What the store knows the run by that stood on that side of the turn whose result is `text`."""
    return f"\0hermes_jev {side}\0{text}"


def whole(pointer: str) -> str:
    """What the store knows a result by that nothing was cut of and that names calls that left."""
    return f"\0hermes_jev whole\0{pointer}"


# --- what is stored of a run ------------------------------------------------------------------------------------------

RECORD_TOOL = "[calls]"
"""Stands for the tool of what is stored of a run; no tool can be called that."""


def record(run: Run, transcript: Transcript, pointers: Mapping[int, str]) -> dict[str, Any]:
    """The messages of a run as one value, what is stored already named by its pointer instead of stored again.
    `pointers` are by ordinal."""
    messages = [dict(message) for message in transcript.messages[run.start : run.stop]]
    results: dict[str, str] = {}
    inputs: dict[str, str] = {}
    for exchange in run.exchanges:
        pointer = pointers[exchange.ordinal]
        at = (exchange.result_at or 0) - run.start
        if len(value_text(exchange.result)) > INLINE_CHARS and not _is_cut(exchange.result):
            messages[at]["content"] = None
            results[str(at)] = pointer
        call_at = exchange.call_at - run.start
        raw = transcript.messages[exchange.call_at]["tool_calls"][exchange.slot]["function"].get("arguments")
        if isinstance(raw, str) and len(raw) > INLINE_CHARS and "[hermes_jev: " not in raw:
            messages[call_at] = copy.deepcopy(messages[call_at])
            messages[call_at]["tool_calls"][exchange.slot]["function"]["arguments"] = None
            inputs[f"{call_at}.{exchange.slot}"] = pointer
    return {"messages": messages, "results": results, "inputs": inputs}


def _is_cut(content: object) -> bool:
    return cut_in(content) is not None or naming_in(content) is not None


def pointers_of(stored: Mapping[str, Any]) -> list[str]:
    """The pointers that a record names."""
    return list(dict.fromkeys((*stored["results"].values(), *stored["inputs"].values())))


def messages_of(stored: Mapping[str, Any], originals: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages that were recorded, exactly; `originals` are by pointer."""
    messages: list[dict[str, Any]] = copy.deepcopy(stored["messages"])
    for at, pointer in stored["results"].items():
        messages[int(at)]["content"] = originals[pointer].result
    for place, pointer in stored["inputs"].items():
        at, slot = place.split(".")
        messages[int(at)]["tool_calls"][int(slot)]["function"]["arguments"] = originals[pointer].arguments
    return messages
