"""Replies of `expand` among the results: they repeat an original that is stored already."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from .errors import StoreError
from .pins import EXPAND_TOOL
from .readable import readable
from .store import Original, Store, is_pointer_id
from .transcript import Exchange

_LINES = re.compile(r"[1-9][0-9]{0,14}-[1-9][0-9]{0,14}")


class Repeat(NamedTuple):
    """The original that a reply shows a part of, and the arguments that ask for that part, empty for its beginning."""

    pointer: str
    page: str


def first_original(exchange: Exchange, store: Store) -> Repeat | None:
    """Which original an `expand` reply shows a part of; None for every other result.

    What the reply says of itself is not believed: its text must be that part of what the store has.
    """
    if exchange.tool != EXPAND_TOOL or not isinstance(exchange.result, str):
        return None
    try:
        page = json.loads(exchange.result)
    except (ValueError, RecursionError):
        return None
    if not isinstance(page, dict) or not is_pointer_id(page.get("id")):
        return None
    pointer: str = page["id"]
    try:
        original = store.get(pointer, None)
    except StoreError:
        return None
    return Repeat(pointer, _page(page)) if _shows(page, original) else None


def _page(page: dict[str, Any]) -> str:
    lines = page.get("lines")
    if isinstance(lines, str):
        return f'lines="{lines}"'
    return f"offset={page['offset']}" if page["offset"] and "contains" not in page else ""


def _shows(page: dict[str, Any], original: Original) -> bool:
    value = original.arguments if page.get("part") == "arguments" else original.result
    offset, shown = page.get("offset"), page.get("text")
    if not isinstance(offset, int) or not isinstance(shown, str) or offset < 0:
        return False
    if "contains" in page:
        lines = {f"{number}:{line}" for number, line in enumerate(readable(value).split("\n"), 1)}
        return all(line in lines for line in shown.split("\n") if "…" not in line)
    if "lines" in page:
        if _LINES.fullmatch(str(page["lines"])) is None:
            return False
        text = readable(value)
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[offset : offset + len(shown)] == shown
