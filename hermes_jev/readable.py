"""A tool result as a person reads it, line by line.

Most tools of Hermes answer with one line of JSON in which the real lines are escaped. Searching, and asking for lines,
needs them as lines. What is no JSON with lines in it stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_LEVELS = 6


def readable(value: Any) -> str:
    """The text of a result: a text as it is, or, when it is JSON that holds several lines, its fields line by line;
    of a list of content parts the texts; of other values their JSON."""
    if isinstance(value, str):
        opened = _opened(value)
        return value if opened is None else "\n".join(_lines(opened, "", _LEVELS))
    if isinstance(value, list) and any(_part_text(part) is not None for part in value):
        return "\n".join(text for part in value if (text := _part_text(part)) is not None)
    return json.dumps(value, ensure_ascii=False)


def _opened(text: str) -> Any:
    """The object or list that a text is the JSON of, when reading it line by line helps; else None."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "[") or "\\n" not in stripped or stripped.count("\n") > stripped.count("\\n"):
        return None
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _part_text(part: Any) -> str | None:
    text = part.get("text") if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else None


def _lines(value: Any, name: str, levels: int) -> Iterator[str]:
    """Lines `name: value`; a text of several lines stands under its name."""
    if isinstance(value, dict) and levels:
        for key, inner in value.items():
            yield from _lines(inner, f"{name}.{key}" if name else str(key), levels - 1)
    elif isinstance(value, list) and levels:
        for at, inner in enumerate(value):
            yield from _lines(inner, f"{name}[{at}]", levels - 1)
    elif isinstance(value, str) and "\n" in value:
        yield f"{name}:"
        yield from value.split("\n")
    else:
        yield f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
