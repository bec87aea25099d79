"""The tool `jev_compact_select` as Hermes' model calls it: a list of turns, or a session by its id."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .egress import Gate
from .errors import JevError
from .judge import Judge
from .select import KEEP_LAST, LIMIT, select
from .settings import Settings

TOOL = "jev_compact_select"

SCHEMA: Mapping[str, Any] = {
    "name": TOOL,
    "description": (
        "Shorten a conversation to a fixed size: says which turns to keep whole, which to keep as background and which "
        "to drop, and returns a digest. Give `messages`, or `session_id` to read a session of this machine's history; "
        "with neither it is the current session. Skill: hermes_jev:jev-compaction."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "messages": {
                "type": "array",
                "description": "The turns, oldest first.",
                "items": {
                    "type": "object",
                    "properties": {
                        "role": {"type": "string", "description": "system, user, assistant or tool."},
                        "content": {"type": "string", "description": "What was said."},
                    },
                    "required": ["role", "content"],
                },
            },
            "session_id": {"type": "string", "description": "A session of this machine's history."},
            "keep_last": {
                "type": "integer",
                "description": f"Turns at the end that always stay whole. Default {KEEP_LAST}.",
            },
            "limit": {"type": "integer", "description": f"Characters of the digest, at most. Default {LIMIT}."},
            "task": {"type": "string", "description": "What the work is about."},
        },
    },
}


def run(
    arguments: Any,
    current: str,
    session: Callable[[str], list[dict[str, Any]]],
    gate: Gate,
    settings: Settings | Mapping[str, Any],
    judge: str | Judge = "auto",
) -> str:
    """Run the tool. `current` is the calling session's id, `session` reads one by its id. Always a JSON object: the
    selection, or an `error` that says what to give."""
    given = arguments if isinstance(arguments, Mapping) else {}
    try:
        messages = given.get("messages")
        if isinstance(messages, Mapping):
            messages = messages.get("messages")
        if messages is None:
            named = str(given.get("session_id") or current or "")
            if not named:
                return json.dumps({"error": f"{TOOL}: give `messages` (a list of role and content) or `session_id`"})
            messages = session(named)
        selected = select(
            messages,
            judge,
            keep_last=_number(given.get("keep_last"), KEEP_LAST),
            limit=_number(given.get("limit"), LIMIT),
            task=str(given["task"]) if given.get("task") else None,
            settings=settings,
            gate=gate,
        )
    except JevError as error:
        return json.dumps({"error": f"{TOOL}: {error}"})
    return json.dumps(selected.to_dict(), ensure_ascii=True)


def _number(value: Any, default: int) -> Any:
    """Models write numbers as text at times; what is none is refused by `select`, by name."""
    if value is None:
        return default
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.strip().isdigit() else value
