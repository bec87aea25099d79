"""Words for hits: how old one is, and what its call was about."""

from __future__ import annotations

import json
from typing import Any

CALL_CHARS = 40


def age(seconds: float) -> str:
    """How long ago, in the largest unit that fits; a clock that was set back makes nothing older than now."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def call_words(arguments: str) -> str:
    """The first telling value of a call's input, on one line."""
    try:
        value: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        value = arguments
    if isinstance(value, dict):
        texts = [inner for inner in value.values() if isinstance(inner, str) and inner.strip()]
        value = texts[0] if texts else json.dumps(value, ensure_ascii=False) if value else ""
    text = " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())
    return text if len(text) <= CALL_CHARS else f"{text[: CALL_CHARS - 1]}…"
