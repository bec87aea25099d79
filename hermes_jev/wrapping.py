"""What the host puts around a tool's own words, and the user's words it glues to a result.

A result can be wrapped as untrusted data, and while the agent works the host appends what the user says to the newest
result. The wrapper keeps its closing tag when the inside is shortened, and the user's words are never shortened.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_USER_OPEN = "[OUT-OF-BAND USER MESSAGE"
_USER_CLOSE = "[/OUT-OF-BAND USER MESSAGE]"
_UNTRUSTED_OPEN = "<untrusted_tool_result"
_UNTRUSTED_CLOSE = "</untrusted_tool_result>"
# The tag and the host's own sentence about what is inside, up to the tool's first word.
_HEAD = re.compile(r"<untrusted_tool_result[^>\n]*>\n?(?:The following content was retrieved[^\n]*\n\n)?")
_PERSISTED = "<persisted-output>"


class Wrapped(NamedTuple):
    """A result's text taken apart; `head + payload + tail + user_words` is the text again."""

    head: str
    payload: str
    tail: str
    user_words: str


def unwrap(text: str) -> Wrapped:
    """Take the host's wrapper and the user's appended words off a result. Only what stands at the very end counts as
    the user's: a look-alike inside a tool's output is tool output."""
    end = len(text)
    while (start := _user_block(text, end)) is not None:
        end = start
    body, user_words = text[:end], text[end:]
    if not body.startswith(_UNTRUSTED_OPEN) or not body.rstrip().endswith(_UNTRUSTED_CLOSE):
        return Wrapped("", body, "", user_words)
    close = body.rindex(_UNTRUSTED_CLOSE)
    head = _HEAD.match(body)
    opening = min(head.end() if head else 0, close)
    inner = close - 1 if body[close - 1] == "\n" and close - 1 >= opening else close
    return Wrapped(body[:opening], body[opening:inner], body[inner:], user_words)


def _user_block(text: str, end: int) -> int | None:
    """Where the last user block that ends at `end` starts, with the blank lines before it."""
    stop = end
    while stop and text[stop - 1].isspace():
        stop -= 1
    if not text.endswith(_USER_CLOSE, 0, stop):
        return None
    start = text.rfind(_USER_OPEN, 0, stop - len(_USER_CLOSE))
    if start < 0:
        return None
    while start and text[start - 1] == "\n":
        start -= 1
    return start


def is_file_preview(text: str) -> bool:
    """Whether the host already replaced this result by a preview of a file it saved."""
    return text.lstrip().startswith(_PERSISTED)
