"""What this package's own requests say of tool calls and turns, read back from their state.

A question is recognised by its words and the entry that it names, never by its id, since ids mean nothing to a judge.
An entry holds less than the call itself: of a long output only the ends, and everything redacted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..judge.protocol import Spoken, Subject
from ..questions import questions
from ..turn_questions import LEVELS, fate_question, value_question
from .schema import Asked

Part = Literal["call", "output", "turn"]

_ITEM = re.compile(r"`t([0-9]{1,9})` of `items`")
_TURN = re.compile(r"`T([0-9]{1,9})` of `turns`")
_CHARACTERS = re.compile(r"([0-9][0-9,]{0,14}) characters")
_AGO = re.compile(r"([0-9]{1,9}) calls? ago")
_CUT = " … (cut)"
_NEWEST = "the newest call"
_CALLED = re.compile(r"t[0-9]{1,9} (.*): (?:ended|failed|still running|its result)", re.S)
_SAID = "assistant: "


@dataclass(frozen=True)
class Told:
    """What a state tells: the goal, the last actions (oldest first), calls by their ordinal, turns by their index."""

    goal: str
    actions: tuple[str, ...]
    subjects: Mapping[int, Subject]
    turns: Mapping[int, Spoken]


def told(state: Any) -> Told:
    """What the state tells of calls and turns; nothing, where it is none of ours."""
    fields = state if isinstance(state, dict) else {}
    goal = "\n".join(filter(None, (_string(fields, "goal") or _string(fields, "task"), _string(fields, "focus"))))
    return Told(goal, _actions(fields.get("timeline")), _subjects(fields.get("items")), _turns(fields.get("turns")))


def about(question: Asked, what: Told) -> tuple[Part, int] | None:
    """Which call or turn a question is about, and what of it; None where it is about something else."""
    text = question.instructions
    if not isinstance(text, str):
        return None
    if question.kind == "noul" and (found := _ITEM.search(text)) and (ordinal := int(found[1])) in what.subjects:
        for part, ours in zip(("call", "output"), questions(ordinal), strict=True):
            # A service that takes no side alone has both in the instructions.
            if text.startswith(ours.instructions):
                return ("call", ordinal) if part == "call" else ("output", ordinal)
    if (found := _TURN.search(text)) and (index := int(found[1])) in what.turns:
        ours = fate_question(index) if question.kind == "choice" else value_question(index, LEVELS)
        return ("turn", index) if text.startswith(ours.instructions) else None
    return None


def _string(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _entries(value: Any, letter: str) -> dict[int, Mapping[str, Any]]:
    found: dict[int, Mapping[str, Any]] = {}
    for entry in value if isinstance(value, list) else ():
        name = entry.get("id") if isinstance(entry, dict) else None
        if isinstance(name, str) and name[:1] == letter and name[1:].isascii() and name[1:].isdigit():
            found.setdefault(int(name[1:10]), entry)
    return found


def _subjects(items: Any) -> dict[int, Subject]:
    entries = _entries(items, "t")
    newest = max(entries, default=0)
    return {ordinal: _subject(ordinal, entry, newest) for ordinal, entry in entries.items()}


def _subject(ordinal: int, entry: Mapping[str, Any], newest: int) -> Subject:
    result = _result(entry)
    size = _CHARACTERS.search(_string(entry, "size"))
    age, ago = _string(entry, "age"), _AGO.search(_string(entry, "age"))
    return Subject(
        ordinal=ordinal,
        tool=_string(entry, "tool"),
        arguments=_string(entry, "input").removesuffix(_CUT),
        result=result,
        size=int(size[1].replace(",", "")) if size else len(result),
        age=int(ago[1]) if ago else 0 if age == _NEWEST else newest - ordinal,
        outcome=_outcome(_string(entry, "outcome")),
    )


def _result(entry: Mapping[str, Any]) -> str:
    head, tail = _string(entry, "output"), _string(entry, "output_end")
    if not tail:
        return head or _string(entry, "text")
    lines = entry.get("output_lines")
    middle = "\n".join(map(str, lines)) if isinstance(lines, list) else lines if isinstance(lines, str) else ""
    return "\n".join(part for part in (head.removesuffix(" …"), middle, tail.removeprefix("… ")) if part)


def _outcome(words: str) -> str:
    if words.startswith("failed"):
        return "failed"
    return "ok" if words == "ended without an error" else "unknown"


def _turns(turns: Any) -> dict[int, Spoken]:
    entries = _entries(turns, "T")
    newest = max(entries, default=0)
    return {
        index: Spoken(f"T{index}", _string(entry, "role"), _string(entry, "text"), newest - index)
        for index, entry in entries.items()
    }


def _actions(timeline: Any) -> tuple[str, ...]:
    """What the assistant said and called last: each of its messages with the calls that follow it."""
    found: list[list[str]] = []
    open_message = False
    for line in timeline if isinstance(timeline, Sequence) and not isinstance(timeline, str) else ():
        if not isinstance(line, str):
            continue
        called = _CALLED.match(line)
        if called and open_message:
            found[-1].append(called[1])
        elif called:
            found.append([called[1]])
        elif line.startswith(_SAID):
            found.append([line.removeprefix(_SAID)])
        open_message = line.startswith(_SAID) or (bool(called) and open_message)
    return tuple(" ".join(words) for words in found[-3:])
