"""Replies of `expand` among the results: they repeat an original that is stored already."""

from __future__ import annotations

import json
from typing import Any

from .errors import StoreError
from .pins import EXPAND_TOOL
from .readable import readable
from .store import Original, Store, is_pointer_id
from .transcript import Exchange


def first_original(exchange: Exchange, store: Store) -> str | None:
    """The pointer of the original that an `expand` reply shows a part of; None for every other result.

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
    return pointer if _shows(page, original) else None


def _shows(page: dict[str, Any], original: Original) -> bool:
    value = original.arguments if page.get("part") == "arguments" else original.result
    offset, shown = page.get("offset"), page.get("text")
    if not isinstance(offset, int) or not isinstance(shown, str) or offset < 0:
        return False
    if "contains" in page:
        lines = {f"{number}:{line}" for number, line in enumerate(readable(value).split("\n"), 1)}
        return all(line in lines for line in shown.split("\n") if "…" not in line)
    if "lines" in page:
        text = readable(value)
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[offset : offset + len(shown)] == shown
