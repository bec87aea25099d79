"""Words and identifiers of a text, for judges that compare texts without a model.

Two vocabularies come out of one scan. *Terms* are for relevance: identifiers and paths fall into their parts
(`getUserName`, `get_user_name` and `user/name` meet), English endings are cut lightly, CJK and other scripts without
spaces become pairs of characters, every other script stays by word. *Marks* are for provenance: strings nobody writes
by chance (paths, file names, long identifiers, ids, numbers), kept exactly as written.
"""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..scripts import BY_SCRIPT, IS_UNSPACED

LONGEST = 200
"""Characters; an ASCII run longer than this is encoded data, not language."""

_JOINTS = "./@+~-"
_ASCII_RUN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@+~-]*")
# \w knows letters and digits only. Vowel signs and accents that stand as characters of their own would cut a word in
# Hindi, Arabic or Thai into pieces, so the blocks that hold them are named.
_SIGNS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06ed\u0711"
    "\u0730-\u074a\u0900-\u0963\u0966-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84"
    "\u102b-\u103e\u17b4-\u17d3\u3099\u309a"
)
_ANY_RUN = re.compile(rf"[\w{_SIGNS}][\w{_SIGNS}./@+~-]*")
_SPLIT = re.compile(r"[./@+~-]+")
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[\\\"/nrtbf])")
_FILE = re.compile(r"[\w-]{1,80}\.[A-Za-z][A-Za-z0-9]{0,5}")
_HUMP = re.compile(r"[a-z][A-Z]")
_STOP = frozenset(
    "a an and are as at be been but by can could did do does for from had has have he her his how i if in into is it "
    "its just let like me my no not now of on or our please she should so some than that the their them then there "
    "these they this to too us was we were what when where which who will with would you your".split()
)


@dataclass(frozen=True, slots=True)
class Words:
    """What a text is made of: how often each term occurs, how many terms in all, and which marks."""

    terms: Mapping[str, int]
    length: int
    marks: frozenset[str]


NOTHING = Words({}, 0, frozenset())


def words(text: str, window: int) -> Words:
    """Terms and marks of the first and last `window` characters (of everything, up to twice that)."""
    if not text:
        return NOTHING
    if len(text) > 2 * window:
        text = text[:window] + "\n" + text[-window:]
    return _known.words(text)


class _Known:
    """What texts are made of, by their content hash, so that the next pass counts only what is new. Bounded by the
    terms and marks it holds; the oldest leave first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._found: dict[bytes, Words] = {}
        self._lock = threading.Lock()

    def words(self, text: str) -> Words:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if (found := self._found.get(key)) is not None:
                return found
        found = _words(text)
        with self._lock:
            if key not in self._found:
                self._found[key] = found
                self._held += _weight(found)
            while self._held > self._limit and len(self._found) > 1:
                self._held -= _weight(self._found.pop(next(iter(self._found))))
        return found


def _weight(found: Words) -> int:
    return 1 + len(found.terms) + len(found.marks)


_known = _Known(limit=400_000)


def _words(text: str) -> Words:
    if text[0] in '{["' and "\\" in text:
        text = _ESCAPE.sub(_unescape, text)
    if text.isascii():
        runs = Counter(_ASCII_RUN.findall(text))
    else:
        runs = Counter(_ANY_RUN.findall(unicodedata.normalize("NFKC", text)))
    terms: dict[str, int] = {}
    marks: set[str] = set()
    length = 0
    for run, count in runs.items():
        parts, found = _known_parts(run) if len(run) <= LONGEST else _parts(run)
        length += count * len(parts)
        for part in parts:
            terms[part] = terms.get(part, 0) + count
        marks.update(found)
    return Words(terms, length, frozenset(marks))


def _unescape(found: re.Match[str]) -> str:
    """A JSON escape as what it stands for; without this, the line "\\nfoo" would hold the word nfoo."""
    code = found[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return "/" if code == "/" else " "


def _parts(run: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Terms and marks of one run of word characters and joints."""
    run = run.rstrip(_JOINTS)
    if len(run) > LONGEST and run.isascii():
        return (), ()
    terms = tuple(term for word in _SPLIT.split(run) for term in _word_terms(word))
    return terms, tuple(_marks(run)) if len(run) <= LONGEST else ()


_known_parts = lru_cache(maxsize=1 << 14)(_parts)
"""The same runs come again and again; long ones do not, and would fill the memory."""


def _word_terms(word: str) -> Iterator[str]:
    if not word.isascii():
        yield from _foreign_terms(word)
        return
    pieces = _CAMEL.findall(word)
    if len(pieces) > 1 and len(word) <= 80:
        yield word.replace("_", "").lower()
    for piece in pieces:
        low = piece.lower()
        if len(low) > 1 and low not in _STOP:
            yield stem(low)


def _foreign_terms(word: str) -> Iterator[str]:
    for piece in BY_SCRIPT.findall(word):
        if not IS_UNSPACED.match(piece):
            if piece.isascii():
                yield from _word_terms(piece)
            else:
                yield from (part.casefold()[:LONGEST] for part in piece.split("_") if part)
        elif len(piece) == 1:
            yield piece
        else:
            yield from (piece[at : at + 2] for at in range(len(piece) - 1))


def stem(word: str) -> str:
    """`word` (lower case) without the commonest English endings, so that parse, parses, parsed and parsing meet."""
    if len(word) < 4 or word[0].isdigit():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, shortest in (("ing", 6), ("ed", 5)):
        if word.endswith(ending) and len(word) >= shortest:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _marks(run: str) -> Iterator[str]:
    words_in_run = _SPLIT.split(run)
    if len(words_in_run) > 1:
        if _is_joined_mark(run):
            yield run
        name = run.rpartition("/")[2]
        if name != run and _FILE.fullmatch(name) and len(name) >= 6:
            yield name
    for word in words_in_run:
        if _is_mark(word):
            yield word


def _is_mark(word: str) -> bool:
    if len(word) < 5 or not word.isascii():
        return False
    if any("0" <= letter <= "9" for letter in word):
        return True
    return len(word) >= 8 and ("_" in word.strip("_") or _HUMP.search(word) is not None)


def _is_joined_mark(run: str) -> bool:
    if len(run) < 6:
        return sum("0" <= letter <= "9" for letter in run) >= 3
    if "/" in run or "@" in run:
        return len(run) >= 8
    return _FILE.fullmatch(run) is not None or any("0" <= letter <= "9" for letter in run)
