"""What a text can be found by: its terms, and the names in it.

An identifier, a path or a file name is a term as a whole and by its parts (`src/getUser.py`: itself, `src`, `getuser`,
`get`, `user`, `py`). Text without spaces between words (Chinese, Japanese, Korean, Thai) becomes single characters and
pairs of them. A plural `s` is cut, so that one record and many records meet. Terms hold no blank and no lone surrogate.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from .scripts import BY_SCRIPT, IS_UNSPACED

LONGEST_TERM = 120
"""Characters; what is longer is encoded data and is known by its parts only."""

LONGEST_TEXT = 1_000_000
"""Characters of a text that are looked at: of a longer one the first and the last half of that."""

_LONGEST_SPLIT = 60
_JOINTS = r"./:@+#\\-"
_RUN = re.compile(rf"\w+(?:[{_JOINTS}]+\w+)*")
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_JSON_ESCAPE = re.compile(r'(?<!\\)\\[nrt"]')

_NAME = re.compile(
    r"https?://[^\s\"'<>)\]}]+"
    r"|[\w.+-]+@[\w-]+\.[\w.]+"
    r"|(?:~/|\.{1,2}/|/)?(?:[\w.@+-]+/)+[\w.@+-]*\w"
    r"|\b[\w-]*(?:[a-z][A-Z]|_|\d)[\w-]*\b"
    r"|\b[\w-]+\.[a-z]{1,5}\b"
)

_STOP = frozenset(
    "a an and are as at be been but by can could did do does for from had has have he her his how i if in into is it "
    "its just let like me my no not now of on or our please she should so some than that the their them then there "
    "these they this to too us was we were what when where which who will with would you your about".split()
)


def term_counts(text: str) -> Counter[str]:
    """How often each term stands in a text."""
    found: Counter[str] = Counter()
    for run, count in Counter(_RUN.findall(_prepared(text))).items():
        for term in _terms_of(run):
            found[term] += count
    return found


def terms_in(text: str) -> set[str]:
    """The terms of a short text."""
    return {term for run in _RUN.findall(_prepared(text)) for term in _terms_of(run)}


def query_terms(text: str) -> list[str]:
    """The terms of a query in its order, each once: without filler words, unless it is made of nothing else."""
    terms = list(term_counts(text))
    # A lone character of a script without spaces stands in thousands of words; its pairs say more.
    telling = [term for term in terms if term not in _STOP and len(term) > 1]
    return telling or terms


def names_in(text: str) -> frozenset[str]:
    """Strings that nobody writes by chance: paths, file names, identifiers with a joint, numbers, addresses."""
    return frozenset(_NAME.findall(text))


def _prepared(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        text = f"{text[: LONGEST_TEXT // 2]}\n{text[-LONGEST_TEXT // 2 :]}"
    if text[:1] in ("{", "[", '"'):
        text = _JSON_ESCAPE.sub(" ", text)
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


@lru_cache(maxsize=65_536)
def _terms_of(run: str) -> tuple[str, ...]:
    found: list[str] = []
    words = _WORD.findall(run)
    if len(words) > 1 and len(run) <= LONGEST_TERM:
        found.append(run.casefold())
    for word in words:
        pieces = [word] if word.isascii() else BY_SCRIPT.findall(word)
        for piece in pieces:
            found.extend(_pairs(piece) if IS_UNSPACED.match(piece) else _word_and_parts(piece))
    return tuple(_stem(term) for term in found)


def _word_and_parts(word: str) -> list[str]:
    if len(word) > LONGEST_TERM:
        return []
    parts = _PART.findall(word) if len(word) <= _LONGEST_SPLIT else []
    return [word.casefold(), *(part.casefold() for part in parts if len(parts) > 1 and len(part) > 1)]


def _pairs(text: str) -> list[str]:
    return [*text, *(text[at : at + 2] for at in range(len(text) - 1))]


def _stem(term: str) -> str:
    plural = len(term) > 4 and term.endswith("s") and not term.endswith("ss") and term.isalpha()
    return term[:-1] if plural else term
