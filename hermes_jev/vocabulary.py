"""What the lines of a transcript are made of, for deciding which of them stand nowhere else.

*Marks* are strings nobody writes by chance: paths, file names, long identifiers, ids, numbers; as written. *Terms* are
the words and parts of identifiers, small letters, that say what a line is about; only those of a given task count.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST = 120
"""Characters; a longer run is encoded data, not a name."""

_RUN = re.compile(r"\w[\w./@+~-]*")
_JOINTS = "./@+~-"
_SPLIT = re.compile(r"[./@+~-]+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_a-zA-Z]+")
_FILE = re.compile(r"[\w-]{1,80}\.[A-Za-z][A-Za-z0-9]{0,5}")
_HUMP = re.compile(r"[a-z][A-Z]")
_DIGIT = re.compile(r"\d")
_COMMON = frozenset(
    "about after again all also and any are because been before being but can class const could def did does done "
    "each false for from function get had has have her here his how import into its just let like make more name "
    "need new none not now null one only other our out over please return see self set she should some string "
    "such than that the their them then there these they this true type use used using value want was were what "
    "when where which who will with would you your".split()
)


class Words(NamedTuple):
    """The marks of a text and its terms that the task has too."""

    marks: frozenset[str]
    terms: frozenset[str]


_NOTHING = Words(frozenset(), frozenset())


def terms_of(text: str) -> frozenset[str]:
    """The terms of a text that says what is wanted."""
    return frozenset(_stem(low) for part in _PART.findall(text) if len(low := part.lower()) >= 3 and low not in _COMMON)


def _stem(word: str) -> str:
    """Without the commonest English endings, so that drop, drops and dropped meet."""
    for ending, shortest in (("ing", 6), ("ed", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= shortest and not word.endswith("ss"):
            word = word[: -len(ending)]
            return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz" else word
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


class Vocabulary:
    """Reads the texts of one transcript: the same runs of letters come again and again, and each is looked at once."""

    def __init__(self, task: frozenset[str]) -> None:
        self._task = task
        self._known: dict[str, Words | None] = {}

    def words(self, text: str) -> Words:
        """The words of `text`. Linear."""
        known = self._known
        found: list[Words] = []
        for run in _RUN.findall(text):
            if run not in known:
                known[run] = self._look_at(run)
            if words := known[run]:
                found.append(words)
        if len(found) < 2:
            return found[0] if found else _NOTHING
        return Words(
            frozenset([mark for words in found for mark in words.marks]),
            frozenset([term for words in found for term in words.terms]),
        )

    def _look_at(self, run: str) -> Words | None:
        """None for a run that says nothing."""
        if len(run) < 5 and run.islower():
            term = _stem(run)
            return Words(frozenset(), frozenset((term,))) if term in self._task and run not in _COMMON else None
        run = run.rstrip(_JOINTS)
        if len(run) > LONGEST:
            return None
        marks = frozenset(_marks(run))
        terms = terms_of(run) & self._task
        return Words(marks, terms) if marks or terms else None


def _marks(run: str) -> list[str]:
    if run.isalpha():
        return [run] if _is_mark(run) else []
    parts = _SPLIT.split(run)
    found = [part for part in parts if _is_mark(part)]
    if len(parts) > 1:
        if _is_joined_mark(run):
            found.append(run)
        name = run.rpartition("/")[2]
        if name != run and len(name) >= 6 and _FILE.fullmatch(name):
            found.append(name)
    return found


def _is_mark(word: str) -> bool:
    if len(word) < 5:
        return False
    if _DIGIT.search(word):
        return True
    return len(word) >= 8 and ("_" in word.strip("_") or _HUMP.search(word) is not None)


def _is_joined_mark(run: str) -> bool:
    if len(run) < 6:
        return len(_DIGIT.findall(run)) >= 3
    if "/" in run or "@" in run:
        return len(run) >= 8
    return _FILE.fullmatch(run) is not None or _DIGIT.search(run) is not None
