"""How long a reply to the model may be, and replies that keep to it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CHARS_PER_TOKEN = 4
_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
REPLY_CHARS = 20_000
LEAST_REPLY_CHARS = 600
"""Under this a reply is mostly its own frame: better refused with a reason."""


@dataclass(frozen=True)
class Room:
    """How long a reply may be. `window` and `used` are tokens, None where they are not known; `handed` the characters
    that replies since the last count have taken already."""

    window: int | None = None
    used: int | None = None
    handed: int = 0

    @property
    def chars(self) -> int:
        """Characters of the encoded reply: under half the free window, a tenth of the window, and 20,000, since the
        host cuts larger tool replies. A token counts as four characters."""
        limits = [REPLY_CHARS]
        if self.window and self.window > 0:
            limits.append(CHARS_PER_TOKEN * self.window // 10)
            if self.used and self.used > 0:
                free = CHARS_PER_TOKEN * max(0, self.window - self.used) - self.handed
                limits.append(max(0, free) // 2)
        return min(limits)

    @property
    def refusal(self) -> str:
        """Why there is no room for a reply, and what to do; empty when there is room."""
        if self.chars >= LEAST_REPLY_CHARS:
            return ""
        handed = f", and {self.handed:,} characters were just handed out" if self.handed else ""
        return (
            f"the window is too full for a page ({self.used or 0:,} of {self.window or 0:,} tokens are used{handed}); "
            "go on with what you have, and call again after the next compaction or in a later turn"
        )


def encode(reply: Mapping[str, Any], compact: bool = False) -> str:
    """JSON with characters as they are, so that a reply holds more; escaped where UTF-8 has no form for them."""
    separators = (",", ":") if compact else None
    text = json.dumps(reply, ensure_ascii=False, separators=separators)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(reply, separators=separators)
    return text


_TEXT_LIMITS = (4_000, 2_000, 1_000, 500, 250, 100)
_ANCHOR_SHARE = 2


def fitted(reply: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """The reply with its long texts shortened alike until it encodes to at most `limit` characters, if it can; the text
    of the message that was asked for (`anchor`) keeps up to half of that."""
    whole: dict[str, Any] = dict(reply)
    shorter = whole
    for chars in _TEXT_LIMITS:
        if len(encode(shorter)) <= limit:
            break
        shorter = {name: _shortened(value, chars, limit // _ANCHOR_SHARE) for name, value in whole.items()}
    return shorter


def _shortened(value: Any, chars: int, anchor: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= chars else f"{value[: chars - 1]}…"
    if isinstance(value, list):
        return [_shortened(one, chars, anchor) for one in value]
    if isinstance(value, dict):
        own = max(chars, anchor) if value.get("anchor") is True else chars
        return {name: _shortened(one, own, anchor) for name, one in value.items()}
    return value


def error(message: str, **more: Any) -> str:
    """A reply that says what went wrong."""
    return encode({"error": message, **more})


def page(frame: Mapping[str, Any], text: str, start: int, end: int, limit: int) -> str:
    """The longest page of `text` between `start` and `end` whose encoded reply has at most `limit` characters.

    `frame` is the reply without its text; `next_offset` in it becomes where to go on, null at `end`.
    """

    def reply(stop: int) -> str:
        following = stop if stop < end else None
        return encode({**frame, "next_offset": following, "text": text[start:stop]})

    low, high = start + 1, min(end, start + limit)
    best = reply(_whole(text, start, min(end, low)))
    while low <= high:
        middle = (low + high) // 2
        tried = reply(_whole(text, start, middle))
        if len(tried) <= limit:
            best, low = tried, middle + 1
        else:
            high = middle - 1
    return best


def _whole(text: str, start: int, end: int) -> int:
    """JSON reads two lone surrogates that stand together as one character, so a page ends between them."""
    if found := _SPLIT_PAIR.search(text, start, end):
        return found.start() + 1
    return end
