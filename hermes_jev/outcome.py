"""How a tool call ended, as far as its result says so.

Fields of a JSON object come first (exit code, error, ok, success), then the last lines of plain text (an exit code or
status, a traceback, a line that starts with "error"). What neither says is unknown, never a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from .tokens import content_text
from .wrapping import unwrap, without_project_rules

Status = Literal["ok", "failed", "unknown"]

_EXIT_FIELDS = ("exit_code", "exitCode", "exit_status", "returncode", "return_code")
_EXIT_JSON = re.compile(r'"(?:exit_code|exitCode|exit_status|returncode|return_code)"\s*:\s*(-?\d{1,5})\b')
_EXIT_LINE = re.compile(
    r"\W{0,3}(?:(?:process|command) )?(?:exited with (?:exit )?|exit[ _]?)(code|status) ?[:=]? {0,2}(-?\d{1,5})\W{0,3}",
    re.I,
)
_ERROR_LINE = re.compile(r"^\s*(?:\w*error|fatal|panic)\b\s*[:!\[(]", re.I)
_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b")
_CODES = 100_000
_LINE_CHARS = 80
_TAIL_LINES = 12
_TAIL_CHARS = 4_000
_JSON_CHARS = 1_000_000


class Outcome(NamedTuple):
    """`detail` is a short phrase for a notice, like "exit code: 2"; it never quotes the result's words."""

    status: Status
    detail: str = ""


UNKNOWN = Outcome("unknown")


def outcome_of(content: Any) -> Outcome:
    """The outcome that a tool result states."""
    if isinstance(content, Mapping):
        return _from_fields(content) or UNKNOWN
    text = without_project_rules(unwrap(content_text(content)).payload)
    if text.lstrip()[:1] == "{":
        return _from_json(text)
    return _from_lines(text[-_TAIL_CHARS:])


def _from_json(text: str) -> Outcome:
    if len(text) <= _JSON_CHARS:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return _from_fields(value) or UNKNOWN
    ends = text[:_TAIL_CHARS] + text[-_TAIL_CHARS:]
    codes = _EXIT_JSON.findall(ends)
    return _exit(int(codes[-1])) if codes else _from_lines(text[-_TAIL_CHARS:])


def _from_fields(value: Mapping[str, Any]) -> Outcome | None:
    for name in _EXIT_FIELDS:
        code = value.get(name)
        if isinstance(code, int) and not isinstance(code, bool):
            return Outcome("failed") if code == 0 and _is_error(value.get("error")) else _exit(code)
    if _is_error(value.get("error")) or value.get("success") is False or value.get("ok") is False:
        return Outcome("failed")
    if value.get("success") is True or value.get("ok") is True:
        return Outcome("ok")
    return None


def _is_error(value: Any) -> bool:
    return value is True or (isinstance(value, str | dict | list) and bool(value))


def _exit(code: int, word: str = "code") -> Outcome:
    if code == 0:
        return Outcome("ok")
    # A code that no process has would make the notice as long as it likes.
    return Outcome("failed", f"exit {word}: {code}") if abs(code) < _CODES else Outcome("failed")


def _from_lines(tail: str) -> Outcome:
    lines = [line for line in tail.splitlines() if line.strip()][-_TAIL_LINES:]
    for line in reversed(lines):
        if found := _EXIT_LINE.fullmatch(line.strip()[:_LINE_CHARS]):
            return _exit(int(found[2]), found[1].lower())
    raised = _TRACEBACK in tail and any(_RAISED.match(line) for line in lines[-3:])
    if raised or any(_ERROR_LINE.match(line) for line in lines[-5:]):
        return Outcome("failed")
    return UNKNOWN
