"""Would one search have brought back what was lost?

For each later step that misses something, the query is made of words the step really wrote, without the missing
strings. The searcher can be exchanged; the one here is a plain BM25 over whole results, with one excerpt a hit. The
engine's own search is asked in `own_search`.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .case import Case
from .needed import Need
from .score import Loss
from .texts import text_of, written_by

HITS = 4
QUERY_TERMS = 24
QUERY_CHARS = 3_000
BEFORE_CHARS = 1_500
EXCERPT_CHARS = 2_500

_TERM = re.compile(r"[A-Za-z0-9_#./-]{3,}")
_COMMON = frozenset(
    "the and for with that this from what when where which who how did does was were are you your have has had not but"
    " its our about into they them then than will would could should there their been can she her his him".split()
)


class Document(NamedTuple):
    """A result that was cut: its place, and its text with the call that made it."""

    at: int
    text: str


class Hit(NamedTuple):
    """A found document and what of it is shown."""

    at: int
    excerpt: str


Searcher = Callable[[Sequence[Document], str, int], Sequence[Hit]]
"""Documents, query, how many hits at most → hits, best first."""


class Recovery(NamedTuple):
    """Of `steps` that missed something: how many had a right result among the first hits (`found`), and how many saw a
    missing string in what those hits show (`shown`)."""

    steps: int
    found: int
    shown: int


def recovery_of(case: Case, loss: Loss, searcher: Searcher) -> Recovery:
    """Search once for each step that misses something carried by a result."""
    missing = missing_of(loss)
    if not missing:
        return Recovery(0, 0, 0)
    documents = [_document(case, place) for place in case.results if place in loss.cut]
    found = shown = 0
    for step, needs in missing.items():
        hits = searcher(documents, query_of(case, step, needs), HITS)
        found += any(hit.at in need.results for need in needs for hit in hits)
        shown += any(need.text in hit.excerpt for need in needs for hit in hits)
    return Recovery(len(missing), found, shown)


def missing_of(loss: Loss) -> dict[int, list[Need]]:
    """The lost strings that a result carried, by the later step that writes them."""
    missing: dict[int, list[Need]] = defaultdict(list)
    for need in loss.lost:
        if need.results:
            missing[need.used_at].append(need)
    return missing


def _document(case: Case, place: int) -> Document:
    exchange = case.results[place]
    return Document(place, f"{exchange.text}\n{exchange.tool} {exchange.arguments}")


def query_of(case: Case, step: int, missing: Sequence[Need]) -> str:
    """The most frequent words of a step and of what was said just before it; none of the missing strings' words."""
    banned = {term.lower() for need in missing for term in _TERM.findall(need.text)}
    messages = case.session.messages
    before = " ".join(text_of(m) for m in messages[max(0, step - 2) : step] if m.get("role") != "tool")
    said = f"{written_by(messages[step])[:QUERY_CHARS]} {before[:BEFORE_CHARS]}"
    words = Counter(w for w in _TERM.findall(said) if w.lower() not in banned and w.lower() not in _COMMON)
    return " ".join(word for word, _ in words.most_common(QUERY_TERMS))


class Bm25:
    """Plain BM25 over whole documents. An instance reads each document once, as long as it is given the same ones."""

    def __init__(self) -> None:
        self._texts: dict[str, Counter[str]] = {}

    def __call__(self, documents: Sequence[Document], query: str, most: int) -> list[Hit]:
        """The best documents that share a word with the query."""
        terms = list(dict.fromkeys(word.lower() for word in _TERM.findall(query)))
        counts = [self._counts(document.text) for document in documents]
        lengths = [count.total() for count in counts]
        mean = sum(lengths) / max(1, len(lengths)) or 1.0
        scores = [0.0] * len(documents)
        for term in terms:
            holders = [at for at, count in enumerate(counts) if term in count]
            rarity = math.log(1 + (len(documents) - len(holders) + 0.5) / (len(holders) + 0.5))
            for at in holders:
                often = counts[at][term]
                scores[at] += rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * lengths[at] / mean))
        best = sorted((at for at in range(len(documents)) if scores[at] > 0), key=lambda at: (-scores[at], -at))[:most]
        return [Hit(documents[at].at, _excerpt(documents[at].text, terms)) for at in best]

    def _counts(self, text: str) -> Counter[str]:
        if text not in self._texts:
            self._texts[text] = Counter(word.lower() for word in _TERM.findall(text))
        return self._texts[text]


def _excerpt(text: str, terms: Sequence[str]) -> str:
    """What stands around the first word of the query."""
    lowered = text.lower()
    places = [place for term in terms if (place := lowered.find(term)) >= 0]
    start = max(0, min(places, default=0) - EXCERPT_CHARS // 4)
    return text[start : start + EXCERPT_CHARS]
