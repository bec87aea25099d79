"""What of old tool output is needed later, found without a model.

A string is needed when an assistant message at or after the cut writes it, no text that every policy keeps holds it
(what humans, the system and the assistant said before the cut), no message between the cut and its use shows it again,
a tool result or the arguments of a call before the cut carry it, and it is not generic. It is lost when the shortened
prefix no longer holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..transcript import Transcript
from .distinctive import distinctive
from .generic import Generic
from .texts import Haystack, Message, argument_values, calls_of, text_of, written_by

MOST_CANDIDATES = 20_000


class Carrier(NamedTuple):
    """Where a string stands: the result at message `at`, or the arguments of its call number `slot`."""

    at: int
    slot: int | None = None


@dataclass(frozen=True)
class Need:
    """A string that message `used_at` writes. `results` are the results, by message, of all calls that carry it in
    their result or arguments; the last one is where it is needed from."""

    text: str
    kind: str
    used_at: int
    carriers: tuple[Carrier, ...]
    results: tuple[int, ...]
    in_arguments: bool


class _Past(NamedTuple):
    kept: str
    dropped: Haystack[Carrier]
    result_of: dict[tuple[int, int], int]


def needs(messages: Sequence[Message], cut: int, generic: Generic, session: str) -> tuple[Need, ...]:
    """The needed strings of a transcript that is cut before message `cut`."""
    past = _past(messages[:cut])
    later = Haystack((at, _shown(messages[at])) for at in range(cut, len(messages)))
    starts = dict(zip(reversed(later.owners), reversed(later.starts), strict=True))
    seen: set[str] = set()
    found: list[Need] = []
    for at in range(cut, len(messages)):
        if messages[at].get("role") != "assistant" or at not in starts:
            continue
        here: list[Need] = []
        given = "\n".join(argument_values(function) for function in calls_of(messages[at]))
        for text, kind in _longest_first(distinctive(written_by(messages[at]))):
            if text in seen:
                continue
            if len(seen) == MOST_CANDIDATES:
                break
            seen.add(text)
            if text in past.kept or later.first(text) < starts[at]:
                continue
            carriers = tuple(dict.fromkeys(past.dropped.holders(text)))
            inside = any(text in need.text and need.carriers == carriers for need in here)
            if carriers and not inside and not generic.holds(text, session):
                here.append(Need(text, kind, at, carriers, _results(carriers, past), text in given))
        found += here
    return tuple(found)


def _shown(message: Message) -> str:
    return written_by(message) if message.get("role") == "assistant" else text_of(message)


def _longest_first(found: dict[str, str]) -> list[tuple[str, str]]:
    return sorted(found.items(), key=lambda item: -len(item[0]))


def _past(prefix: Sequence[Message]) -> _Past:
    kept = Haystack((at, text_of(m)) for at, m in enumerate(prefix) if m.get("role") != "tool").text
    parts: list[tuple[Carrier, str]] = []
    for at, message in enumerate(prefix):
        if message.get("role") == "tool":
            parts.append((Carrier(at), text_of(message)))
        else:
            parts += [(Carrier(at, slot), argument_values(f)) for slot, f in enumerate(calls_of(message))]
    result_of = {
        (e.call_at, e.slot): e.result_at for e in Transcript.parse(prefix).completed if e.result_at is not None
    }
    return _Past(kept, Haystack(parts), result_of)


def _results(carriers: tuple[Carrier, ...], past: _Past) -> tuple[int, ...]:
    places = {c.at if c.slot is None else past.result_of.get((c.at, c.slot)) for c in carriers}
    return tuple(sorted(place for place in places if place is not None))
