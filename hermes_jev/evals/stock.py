"""The stock prune of Hermes 0.19, by its rule: no model is asked.

Outside a protected tail, tool results over 200 characters become one line that says what was called, and long strings
inside arguments are shortened; anywhere, an older copy of the same result becomes a reference to the newest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..tokens import value_text
from .texts import Message, calls_of, raw_arguments, text_of

TAIL_MESSAGES = 20
SMALL = 200
LONG_ARGUMENTS = 500
ARGUMENT_HEAD = 200
SHOWN_VALUE = 40

_DUPLICATE = "[Duplicate tool output: a more recent call returned the same]"


def stock_prune(messages: Sequence[Message], tail_tokens: int = 0, tail_messages: int = TAIL_MESSAGES) -> list[Any]:
    """The pruned list. The tail holds `tail_messages` messages or, with `tail_tokens`, as many as fit in those tokens
    and the one that no longer does, but no fewer than `tail_messages`."""
    boundary = max(0, len(messages) - _tail(messages, tail_tokens, tail_messages))
    newest = _newest_copies(messages)
    lines = _lines(messages)
    after: list[Any] = []
    for at, message in enumerate(messages):
        content = message.get("content")
        if message.get("role") == "tool" and isinstance(content, str):
            if len(content) >= SMALL and newest[content] != at:
                message = {**message, "content": _DUPLICATE}
            elif at < boundary and len(content) > SMALL and not content.startswith(_DUPLICATE):
                message = {**message, "content": lines.get(at, f"[unknown] ({len(content):,} chars result)")}
        elif at < boundary and message.get("role") == "assistant":
            message = _shorter_arguments(message)
        after.append(message)
    return after


def budget_tokens(message: Message) -> int:
    """The host's estimate for its budgets: four characters a token, the whole envelope of a call."""
    calls = message.get("tool_calls")
    envelopes = sum(len(str(call)) // 4 for call in calls) if isinstance(calls, list) else 0
    return len(text_of(message)) // 4 + 10 + envelopes


def _tail(messages: Sequence[Message], tokens: int, least: int) -> int:
    if tokens <= 0:
        return least
    held, count = 0, 0
    for message in reversed(messages):
        held += budget_tokens(message)
        count += 1
        if held > tokens and count >= least:
            break
    return max(count, min(least, len(messages)))


def _newest_copies(messages: Sequence[Message]) -> dict[str, int]:
    return {
        message["content"]: at
        for at, message in enumerate(messages)
        if message.get("role") == "tool" and isinstance(message.get("content"), str)
    }


def _lines(messages: Sequence[Message]) -> dict[int, str]:
    """For each result the line that would stand for it: the tool, its first two arguments, its size."""
    said: dict[str, str] = {}
    lines: dict[int, str] = {}
    for at, message in enumerate(messages):
        if message.get("role") == "tool":
            call = said.get(str(message.get("tool_call_id")), "[unknown]")
            lines[at] = f"{call} ({len(text_of(message)):,} chars result)"
            continue
        calls = message.get("tool_calls")
        for call, function in zip(calls if isinstance(calls, list) else (), calls_of(message), strict=False):
            if function:
                said[str(call.get("id"))] = f"[{value_text(function.get('name'))}]{_first_arguments(function)}"
    return lines


def _first_arguments(function: Message) -> str:
    given = _json_object(raw_arguments(function))
    return "".join(f" {key}={str(value)[:SHOWN_VALUE]}" for key, value in list(given.items())[:2])


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _shorter_arguments(message: Message) -> Message:
    """The message itself when none of its arguments is long."""
    functions = calls_of(message)
    if not any(len(raw_arguments(function)) > LONG_ARGUMENTS for function in functions):
        return message
    calls = []
    for call, function in zip(message["tool_calls"], functions, strict=True):
        raw = raw_arguments(function)
        given = _json_object(raw) if len(raw) > LONG_ARGUMENTS else {}
        shorter = json.dumps(_shorten(given), ensure_ascii=False) if given else raw
        calls.append({**call, "function": {**function, "arguments": shorter}} if shorter != raw else call)
    return {**message, "tool_calls": calls}


def _shorten(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= ARGUMENT_HEAD else value[:ARGUMENT_HEAD] + "...[truncated]"
    if isinstance(value, dict):
        return {key: _shorten(inner) for key, inner in value.items()}
    return [_shorten(inner) for inner in value] if isinstance(value, list) else value
