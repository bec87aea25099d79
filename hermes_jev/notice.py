"""What stands where something was cut.

A notice is the last line of a result, at most 200 characters, in plain words, and gives no order. It says that the
call ran, how much it returned, and the pointer under which every byte is stored. Above it stand the start of a
shortened result and the pieces that were picked from the rest, in order, with a mark where text was left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from .settings import NOTICE_CHARS
from .transcript import Exchange
from .wrapping import unwrap

_WAY_BACK = 'expand(id="{id}")'
_WITHOUT = " Without that tool only a new call shows them.]"
_LINE = re.compile(
    r"\[hermes_jev: this call (?:ran|failed(?: \([a-z ]+: -?\d+\))?)"
    r"(?: and returned (?P<size>[\d,]+) characters; the first (?P<above>\d+)(?: and (?P<more>\d+) more)? are above, all"
    r" are stored|; its (?P<removed>[\d,]+) characters are stored(?:, (?P<shown>\d+) shown)?)"
    r': expand\(id="(?P<id>r-[a-z2-7]+)"(?:, offset=\d+|, lines="\d+-\d+")?\)(?:\.' + re.escape(_WITHOUT) + r"|\])"
)


GAP = "\n…\n"
"""Stands where text was left out before a picked piece."""

_NAMED_CHARS = 20
"""Characters by which saying how much was picked lengthens a notice, at most."""


class Fact(NamedTuple):
    """A piece of a payload that stays: its range, which holds no line end and is more than blanks or a mark; the
    probability that it is needed, 1 for what is shown whenever it fits; and what speaks for it."""

    start: int
    end: int
    score: float
    why: str


class Notice(NamedTuple):
    """A notice as read from a text. `whole` says that everything around it fits what the engine writes."""

    id: str
    whole: bool


def truncated(exchange: Exchange, pointer: str, excerpt_chars: int, picked: Sequence[Fact] = ()) -> str:
    """The shortened result: the start of the tool's own words and the picked pieces of the rest, the host's wrapper
    closed, the user's words whole, and the notice."""
    wrapped = unwrap(exchange.text)
    above = excerpt(wrapped.payload, excerpt_chars)
    block, more = _pieces(wrapped.payload, len(above), picked)
    head = (
        f"[hermes_jev: this call {_ended(exchange)} and returned {exchange.size:,} characters; "
        f"the first {len(above)}{f' and {more} more' if more else ''} are above, all are stored: "
    )
    return f"{wrapped.head}{above}{block}{wrapped.tail}{wrapped.user_words}\n{_line(head, pointer)}"


def removed(exchange: Exchange, pointer: str, picked: Sequence[Fact] = ()) -> str:
    """What stands for a removed result: the picked pieces, if any, in the host's wrapper, the user's words, if any, and
    one line."""
    wrapped = unwrap(exchange.text)
    block, shown = _pieces(wrapped.payload, 0, picked)
    stored = f"its {exchange.size:,} characters are stored{f', {shown} shown' if shown else ''}"
    line = _line(f"[hermes_jev: this call {_ended(exchange)}; {stored}: ", pointer)
    if shown:
        # A mark that starts the text needs no line end before it.
        block = block[1:] if block.startswith(GAP) else block
        return f"{wrapped.head}{block}{wrapped.tail}{wrapped.user_words}\n{line}"
    words = wrapped.user_words.lstrip("\n")
    return f"{words}\n{line}" if words else line


def spare(exchange: Exchange, left: str, longest: int) -> int:
    """Characters that facts may take beside `left`, which was made without any, so that all is `longest` at most. Facts
    of a removed result need the host's wrapper around them too."""
    wrapped = unwrap(exchange.text)
    whole = len(wrapped.head) + len(wrapped.tail) + len(wrapped.user_words)
    return longest - max(len(left), whole + len(left.rpartition("\n")[2]) + 1) - _NAMED_CHARS


def _pieces(payload: str, at: int, picked: Sequence[Fact]) -> tuple[str, int]:
    """The picked pieces as they follow `payload[:at]`, and how many characters of the payload they are."""
    block: list[str] = []
    shown = 0
    for fact in picked:
        between = payload[at : fact.start]
        if between not in ("", "\n"):
            between = GAP
        block.append(between + payload[fact.start : fact.end])
        shown += fact.end - fact.start + (between == "\n")
        at = fact.end
    return "".join(block), shown


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
    if found["shown"]:
        block = wrapped.payload
        marked = block.startswith(GAP[1:])
        return Notice(found["id"], _picked("\n" + block if marked else block) == int(found["shown"]))
    if found["removed"]:
        return Notice(found["id"], not (wrapped.head + wrapped.payload + wrapped.tail))
    above, more = int(found["above"]), int(found["more"] or 0)
    if more:
        return Notice(found["id"], len(wrapped.payload) > above and _picked(wrapped.payload[above:]) == more)
    # Line ends between the excerpt and the user's words belong to either.
    between = len(wrapped.user_words) - len(wrapped.user_words.lstrip("\n"))
    return Notice(found["id"], len(wrapped.payload) <= above <= len(wrapped.payload) + between)


def _picked(block: str) -> int:
    """Characters of a block of pieces without the marks of what was left out."""
    return len(block) - len(GAP) * block.count(GAP)
