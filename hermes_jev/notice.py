"""What stands where something was cut.

A notice is the last line of a result, at most 200 characters, in plain words, and gives no order. It says that the
call ran, how much it returned, and the pointer under which every byte is stored.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from .settings import NOTICE_CHARS
from .transcript import Exchange
from .wrapping import unwrap

_WAY_BACK = 'expand(id="{id}")'
_WITHOUT = " Without that tool only a new call shows them.]"
_LINE = re.compile(
    r"\[hermes_jev: this call (?:ran|failed(?: \([a-z ]+: -?\d+\))?)"
    r"(?: and returned (?P<size>[\d,]+) characters; the first (?P<above>\d+) are above, all are stored"
    r"|; its (?P<removed>[\d,]+) characters are stored)"
    r': expand\(id="(?P<id>r-[a-z2-7]+)"(?:, offset=\d+|, lines="\d+-\d+")?\)(?:\.' + re.escape(_WITHOUT) + r"|\])"
)


class Notice(NamedTuple):
    """A notice as read from a text. `whole` says that everything around it fits what the engine writes."""

    id: str
    whole: bool


def truncated(exchange: Exchange, pointer: str, excerpt_chars: int) -> str:
    """The shortened result: the start of the tool's own words, the host's wrapper closed, the user's words whole, and
    the notice."""
    wrapped = unwrap(exchange.text)
    above = excerpt(wrapped.payload, excerpt_chars)
    head = (
        f"[hermes_jev: this call {_ended(exchange)} and returned {exchange.size:,} characters; "
        f"the first {len(above)} are above, all are stored: "
    )
    return f"{wrapped.head}{above}{wrapped.tail}{wrapped.user_words}\n{_line(head, pointer)}"


def removed(exchange: Exchange, pointer: str) -> str:
    """What stands for a removed result: the user's words, if any, and one line."""
    words = unwrap(exchange.text).user_words.lstrip("\n")
    head = f"[hermes_jev: this call {_ended(exchange)}; its {exchange.size:,} characters are stored: "
    return f"{words}\n{_line(head, pointer)}" if words else _line(head, pointer)


def of_page(text: str, page: str) -> str:
    """A shortened or removed result whose notice names a page of the original, like `offset=20000`; empty for none."""
    body, newline, line = text.rpartition("\n")
    call, end, rest = line.rpartition('")')
    if not page or not end:
        return text
    line = f'{call}", {page}){rest}'
    if len(line) > NOTICE_CHARS:
        line = line.removesuffix(f".{_WITHOUT}") + "]"
    return f"{body}{newline}{line}"


def _line(head: str, pointer: str) -> str:
    way_back = _WAY_BACK.format(id=pointer)
    line = f"{head}{way_back}.{_WITHOUT}"
    return line if len(line) <= NOTICE_CHARS else f"{head}{way_back}]"


def _ended(exchange: Exchange) -> str:
    """`ran` where the result does not say: success is never guessed."""
    if exchange.outcome.status != "failed":
        return "ran"
    return f"failed ({exchange.outcome.detail})" if exchange.outcome.detail else "failed"


def excerpt(text: str, limit: int) -> str:
    """The first `limit` characters, less where the cut would fall inside what a reader sees as one character."""
    end = min(limit, len(text))
    while 0 < end < len(text) and _joined(text[end - 1], text[end]):
        end -= 1
    return text[:end] or text[: min(limit, len(text))]


def _joined(left: str, right: str) -> bool:
    if left == "\r" and right == "\n":
        return True
    if "\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff":
        return True
    if "\U0001f1e6" <= left <= "\U0001f1ff" and "\U0001f1e6" <= right <= "\U0001f1ff":
        return True
    joiners = ("\u200d", "\ufe0e", "\ufe0f")
    modifier = "\U0001f3fb" <= right <= "\U0001f3ff"
    return left == "\u200d" or right in joiners or modifier or bool(unicodedata.combining(right))


class Cut(NamedTuple):
    """A result that was cut: its text up to the notice, the notice, and what the user said after it."""

    text: str
    notice: Notice
    words: str


def cut_in(content: object) -> Cut | None:
    """The cut that a result is, by its form; the host may have appended the user's words since."""
    if not isinstance(content, str):
        return None
    words = "" if read(content) is not None else unwrap(content).user_words
    text = content[: len(content) - len(words)]
    found = read(text)
    return Cut(text, found, words) if found is not None else None


def read(content: object) -> Notice | None:
    """The notice that ends a result, if one does. What reads like a notice may still be ordinary text: only the store
    knows which ids were issued."""
    if not isinstance(content, str):
        return None
    body, _, line = content.rpartition("\n")
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    wrapped = unwrap(body)
    if found["removed"]:
        return Notice(found["id"], not (wrapped.head + wrapped.payload + wrapped.tail))
    # Line ends between the excerpt and the user's words belong to either.
    between = len(wrapped.user_words) - len(wrapped.user_words.lstrip("\n"))
    above = int(found["above"])
    return Notice(found["id"], len(wrapped.payload) <= above <= len(wrapped.payload) + between)
