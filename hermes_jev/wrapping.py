"""What the host puts around a tool's own words, and the user's words it glues to a result.

A result can be wrapped as untrusted data, and while the agent works the host appends what the user says to the newest
result. The wrapper keeps its closing tag when the inside is shortened, and the user's words are never shortened.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_USER_LINE = re.compile(r"^\[OUT-OF-BAND USER MESSAGE[^\]\n]*\]", re.MULTILINE)
_USER_CLOSE = "[/OUT-OF-BAND USER MESSAGE]"
_UNTRUSTED_OPEN = "<untrusted_tool_result"
_UNTRUSTED_CLOSE = "</untrusted_tool_result>"
# The tag and the host's own sentence about what is inside, up to the tool's first word.
_HEAD = re.compile(r"<untrusted_tool_result[^>\n]*>\n?(?:The following content was retrieved[^\n]*\n\n)?")
_PERSISTED = "<persisted-output>"
_PERSISTED_CLOSE = "</persisted-output>"
_RULES = "\n\n[Subdirectory context discovered: "

PREVIEW_CHARS = 6_000
"""The host's previews hold about 1,500 characters of the output and the path of the file."""
RULES_CHARS = 32_400
"""The hosts append at most 32,000 characters of a rules file."""


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
    """Where the last user block that ends at `end` starts, with the blank lines before it.

    The user may write the mark too, so the block starts at the first opening line after whatever mark was closed
    before. A tool can pass its output off as the user's that way; then it stays whole, which loses nothing.
    """
    stop = end
    while stop and text[stop - 1].isspace():
        stop -= 1
    if not text.endswith(_USER_CLOSE, 0, stop):
        return None
    inside = stop - len(_USER_CLOSE)
    closed = text.rfind(_USER_CLOSE, 0, inside)
    opening = _USER_LINE.search(text, closed + len(_USER_CLOSE) if closed >= 0 else 0, inside)
    if opening is None:
        return None
    start = opening.start()
    while start and text[start - 1] == "\n":
        start -= 1
    return start


def is_file_preview(text: str) -> bool:
    """Whether the host already replaced this result by a preview of a file it saved."""
    payload = without_project_rules(unwrap(text).payload).strip()
    return payload.startswith(_PERSISTED) and payload.endswith(_PERSISTED_CLOSE) and len(payload) <= PREVIEW_CHARS


def without_project_rules(text: str) -> str:
    """A result without the rules of a folder (AGENTS.md and the like) that the host appended to it. It shows them once
    a session, to the result that first touched the folder."""
    while (start := text.rfind(_RULES)) >= 0 and len(text) - start <= RULES_CHARS:
        text = text[:start]
    return text


def has_project_rules(text: str) -> bool:
    """Whether the host appended the rules of a folder to this result."""
    payload = unwrap(text).payload
    return len(without_project_rules(payload)) < len(payload)
