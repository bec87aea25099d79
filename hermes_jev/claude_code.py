"""Session files in the form Claude Code writes (and `hermes sessions export --format trace`): read as chat messages.

Each line is an event; those of type `user` and `assistant` carry a `message` whose content is text or blocks. One
assistant turn may be spread over several lines with the same message id. Calls (`tool_use`) and results
(`tool_result`) become `tool_calls` and `tool` messages; other events are the program's own records and no part of the
conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_SPOKEN = ("user", "assistant")


def is_session(rows: Sequence[Any]) -> bool:
    """Whether these JSON lines are events of such a session: none is a chat message, some carry one."""
    if not rows or not all(isinstance(row, Mapping) and isinstance(row.get("type"), str) for row in rows):
        return False
    return any(_spoken(row) for row in rows) and not any("role" in row for row in rows)


def conversations(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Chat messages by conversation: the main one under `sessionId`, each sub-agent's side chain under its own name."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if _spoken(row):
            found.setdefault(_conversation(row), []).append(row)
    return {name: _messages(lines) for name, lines in found.items()}


def _spoken(row: Mapping[str, Any]) -> bool:
    message = row.get("message")
    return row.get("type") in _SPOKEN and isinstance(message, Mapping) and message.get("role") in _SPOKEN


def _conversation(row: Mapping[str, Any]) -> str:
    session = str(row.get("sessionId") or "session")
    return f"{session}/{row.get('agentId') or 'side'}" if row.get("isSidechain") is True else session


def _messages(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    turn: dict[str, Any] | None = None
    identity: Any = None
    for row in rows:
        message = row["message"]
        if message["role"] == "user":
            new = _user(message.get("content"))
            messages.extend(new)
            # Results come between the lines of one turn when its calls ran in parallel: the turn goes on.
            turn = None if any(each["role"] == "user" for each in new) else turn
            continue
        if turn is None or identity is None or message.get("id") != identity:
            turn = {"role": "assistant", "content": None}
            messages.append(turn)
        identity = message.get("id")
        _add(turn, message.get("content"))
    return messages


def _user(content: Any) -> list[dict[str, Any]]:
    """Results first, then what the user said, as a chat has them."""
    if not isinstance(content, list):
        return [{"role": "user", "content": content}]
    results = [
        {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": _plain(block.get("content"))}
        for block in content
        if _is(block, "tool_result")
    ]
    said = [block for block in content if not _is(block, "tool_result")]
    return results + ([{"role": "user", "content": _plain(said)}] if said else [])


def _add(message: dict[str, Any], content: Any) -> None:
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    said = [block for block in blocks if not _is(block, "tool_use")]
    calls = [_call(block) for block in blocks if _is(block, "tool_use")]
    before = message["content"]
    parts = [{"type": "text", "text": before}] if isinstance(before, str) else list(before or ())
    if said:
        message["content"] = _plain([*parts, *said])
    if calls:
        message["tool_calls"] = [*message.get("tool_calls", ()), *calls]


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(block.get("input") if block.get("input") is not None else {}, ensure_ascii=False)
    return {
        "id": block.get("id"),
        "type": "function",
        "function": {"name": str(block.get("name") or ""), "arguments": arguments},
    }


def _is(block: Any, kind: str) -> bool:
    return isinstance(block, Mapping) and block.get("type") == kind


def _plain(content: Any) -> Any:
    """One text block is its text; anything else stays a list of parts."""
    if (
        isinstance(content, list)
        and len(content) == 1
        and _is(content[0], "text")
        and set(content[0]) == {"type", "text"}
    ):
        return content[0]["text"]
    return "" if content is None else content
