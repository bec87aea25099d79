"""From an engine's `expand` replies back to the value that was stored."""

from __future__ import annotations

import json
from typing import Any

from case_messages import Slot, pointer, slots
from case_run import Run
from case_words import CaseFailed, need
from case_worker import same


def object_of(reply: Any) -> dict[str, Any]:
    """A tool's reply as the JSON object it must be."""
    need(isinstance(reply, str), f"a tool replied with a {type(reply).__name__}, not with text")
    try:
        value = json.loads(reply)
    except ValueError as error:
        raise CaseFailed(f"a tool's reply is not JSON: {reply[:200]!r}") from error
    if not isinstance(value, dict):
        raise CaseFailed(f"a tool's reply is not a JSON object: {reply[:200]!r}")
    return value


def joined(replies: list[Any], what: str) -> Any:
    """The value that pages hold together: a text, or what the JSON of format "json" says. The pages must be without
    gap, overlap or change of total."""
    text = ""
    kind, total = None, None
    for number, reply in enumerate(replies):
        page = object_of(reply)
        need("error" not in page, f"{what}: page {number} is an error: {page.get('error')}")
        need(page["offset"] == len(text), f"{what}: page {number} starts at {page['offset']}, not at {len(text)}")
        kind, total = (page["format"], page["total"]) if number == 0 else (kind, total)
        need((kind, total) == (page["format"], page["total"]), f"{what}: page {number} changes format or total")
        need(bool(page["text"]) or total == 0, f"{what}: page {number} is empty")
        text += page["text"]
        following = page["next_offset"]
        need(following in (None, len(text)), f"{what}: page {number} goes on at {following}, not at {len(text)}")
    need(total == len(text), f"{what}: {len(text)} characters came of {total}")
    return json.loads(text) if kind == "json" else text


def expanded(run: Run, pointer_id: str) -> Any:
    """The original that a pointer opens."""
    return joined(run.pages_of(pointer_id), pointer_id)


def changed(slot: Slot) -> bool:
    return slot.after is None or not same(slot.was, slot.now)


def changed_slots(run: Run) -> list[Slot]:
    """The results that are not as they came."""
    return [slot for slot in slots(run.baseline, run.messages) if changed(slot)]


def slots_of(run: Run, call_id: str) -> list[Slot]:
    """The results of a call in the input, with what stands for them now; at least one."""
    found = [slot for slot in slots(run.baseline, run.messages) if slot.id == call_id]
    need(bool(found), f"the input has no result of {call_id}")
    return found


def original_behind(run: Run, slot: Slot) -> Any:
    """What `expand` gives for a shortened result, by the notice that stands in it."""
    found = pointer(slot.now) if slot.after is not None else run.pointer_of(str(slot.id))
    if found is None:
        raise CaseFailed(f"{slot.id}: the changed result names no stored original")
    return expanded(run, found)
