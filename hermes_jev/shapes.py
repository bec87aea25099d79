"""The shape of a call's input, without its content: which fields it has and what kind of value each holds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

FIELDS = 12
"""Fields that are named at most."""

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,31}")
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,15}://\S+", re.I)
_PATH = re.compile(r"(?:[A-Za-z]:)?[\w.~@+ -]*(?:[/\\][\w.~@+ -]*)+|[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,4}")
_EXTENSION = re.compile(r"\.[a-z]{1,5}")
_PATH_CHARS = 400


def shape_of_arguments(arguments: str, redact: Callable[[str], str]) -> Any:
    """Field name → kind of value, for a JSON object; a phrase for anything else. Names of fields pass `redact`; what
    is nested deeper is counted only, since there names may be content."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return kind_of(arguments)
    if not isinstance(value, dict):
        return kind_of(value)
    shape = {
        redact(name) if _FIELD.fullmatch(name) else f"field {place}": kind_of(held)
        for place, (name, held) in enumerate(value.items(), 1)
        if place <= FIELDS
    }
    return shape if len(value) <= FIELDS else {**shape, "others": f"{len(value) - FIELDS} fields"}


def kind_of(value: Any) -> str:
    """What kind of value it is, with its size and never its content."""
    if isinstance(value, str):
        return _kind_of_text(value)
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes or no"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, list):
        return f"a list of {len(value):,}"
    return f"an object with {len(value):,} fields" if isinstance(value, dict) else "something else"


def _kind_of_text(text: str) -> str:
    if len(text) <= _PATH_CHARS and _URL.fullmatch(text):
        return "a URL"
    if len(text) <= _PATH_CHARS and _PATH.fullmatch(text):
        parts = [part for part in re.split(r"[/\\]", text) if part]
        name = parts[-1] if parts else ""
        dot = name.rfind(".")
        ending = name[dot:] if dot > 0 and _EXTENSION.fullmatch(name[dot:]) else ""
        return f"a path of {len(parts)} parts{f' ending in {ending}' if ending else ''}"
    return f"text of {len(text):,} characters"
