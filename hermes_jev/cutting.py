"""Cut what is stored, then check the promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import JevError
from .keeping import Stored
from .policy import CLEARLY_SHORTER
from .transcript import Message, Transcript


def cut(messages: Sequence[Message], stored: Stored) -> list[Any]:
    """The list with what is stored replaced or gone; every other message is the same object."""
    gone = _gone(stored)
    inputs: dict[int, dict[int, str]] = {}
    for (at, slot), kept in stored.inputs.items():
        inputs.setdefault(at, {})[slot] = kept.text
    new: list[Any] = []
    for at, message in enumerate(messages):
        if at in gone:
            continue
        changed: Any = message
        shorter = stored.results.get(at) or stored.texts.get(at)
        if shorter is not None:
            changed = {**changed, "content": shorter.text}
        if at in inputs:
            changed = {**changed, "tool_calls": _with_inputs(changed["tool_calls"], inputs[at])}
        new.append(changed)
    return new


def _gone(stored: Stored) -> set[int]:
    return {at for run in stored.plan.runs for at in range(run.start, run.stop)}


def _with_inputs(calls: Sequence[Any], short: Mapping[int, str]) -> list[Any]:
    return [
        {**call, "function": {**call["function"], "arguments": short[slot]}} if slot in short else call
        for slot, call in enumerate(calls)
    ]


def check(before: Sequence[Message], after: Sequence[Message], stored: Stored) -> None:
    """The promises about a pruned list, checked on every pass; a breach is a defect and the pass is given up."""
    gone = _gone(stored)
    left = [(at, message) for at, message in enumerate(before) if at not in gone]
    if len(left) != len(after):
        raise JevError("the pruned list has another length")
    naming = {run.anchor.result_at for run in stored.plan.runs}
    turns = {at for at, _ in stored.inputs}
    for (at, old), new in zip(left, after, strict=True):
        if at in stored.results:
            _check_result(at, old, new, names=at in naming)
        elif at in stored.texts or at in turns:
            changed = {key for key in old if old[key] is not new.get(key)}
            changed -= {"content"} if at in stored.texts else set()
            changed -= {"tool_calls"} if at in turns else set()
            if list(old) != list(new) or changed or old.get("role") == "tool":
                raise JevError(f"message {at} was changed beyond what was decided")
        elif old is not new:
            raise JevError(f"message {at} was changed without a decision")
    if _pairs(after) != _pairs([message for _, message in left]):
        raise JevError("a call lost its result")


def _pairs(messages: Sequence[Message]) -> list[tuple[str, int, str, int | None]]:
    return [(e.state, e.call_at, e.tool, e.result_at) for e in Transcript.parse(messages).exchanges]


def _check_result(at: int, old: Message, new: Message, *, names: bool) -> None:
    if old.get("role") != "tool" or {**old, "content": None} != {**new, "content": None}:
        raise JevError(f"message {at} was changed beyond its content")
    content = old.get("content")
    if not names and isinstance(content, str) and len(content) - len(new["content"]) < CLEARLY_SHORTER:
        raise JevError(f"message {at} did not become clearly shorter")
