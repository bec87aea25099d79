"""Can what was cut be found again? Measured on the evaluation kit's transcripts.

    python benchmarks/recovery.py              the odd sessions, which are the report
    python benchmarks/recovery.py --even       the even sessions, on which anything may be tuned
    python benchmarks/recovery.py --cuts .6    another place of the cut

At the cut every tool result but the last three is put into a store, as if all had been cut. A later step needs a string
of them when it writes one that nothing else holds. The query is what that step and the words before it say, without
the string (at most 40 words, the most frequent first). Counted for each such step: is a result that holds the string
among the first four hits; does the string stand in the one reply of `session_search` (at most 4,000 characters); does
it after one `expand` of a hit, with the lines that the hit names. Beside it plain full text of SQLite (FTS5, its own
words, 24 terms): the same four hits, and the 2,500 characters around the first match of each, 10,000 in all.

`--kit` names the evaluation kit, by default ../shared/evaldata. Needs nothing but it and this package.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import re
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hermes_jev.evals.own_search import OwnSearch, Wanted  # noqa: E402 - a script finds its own package first
from hermes_jev.store import Keep, Kept, Store  # noqa: E402

LAST = 3
LEAST_CHARS = 20_000
WORD = re.compile(r"[A-Za-z0-9_#./-]{3,}")
FILLER = frozenset(
    "the and for with that this from what when where which who how did does was were are you your have has had not but "
    "its our about into they them then than will would could should there their been can she her his him".split()
)
SESSION = "s"


class Need(NamedTuple):
    """A later step: its query, and each string it needs with the results that hold it."""

    query: str
    strings: list[tuple[str, frozenset[int]]]


class Case(NamedTuple):
    """A transcript at a cut: results by position (tool, arguments, text) and what is needed of them."""

    kind: str
    results: dict[int, tuple[str, str, str]]
    needs: list[Need]


class Kit:
    """The evaluation kit, by its own modules."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder))
        sys.dont_write_bytecode = True
        self.needed = importlib.import_module("needed")
        self.loader = importlib.import_module("loader")
        self.generic = self.needed.load_generic()

    def cases(self, cuts: Sequence[float], even: bool) -> Iterator[Case]:
        """The cases of half of the sessions, concatenated ones left out."""
        for transcript in self.loader.load():
            session = self.needed.session_of(transcript)
            number = int(hashlib.sha1(session.encode()).hexdigest()[:8], 16)
            if transcript["composed"] or (number % 2 == 0) != even:
                continue
            for share in cuts:
                case = self._case(transcript, session, share)
                if case is not None and case.needs:
                    yield case

    def _case(self, transcript: dict[str, Any], session: str, share: float) -> Case | None:
        messages = transcript["messages"]
        cut = self.needed.cut_at(messages, share)
        old = [at for at, message in enumerate(messages[:cut]) if message["role"] == "tool"]
        if cut >= len(messages) - 2 or len(old) <= LAST or self.needed.size(messages[:cut]) < LEAST_CHARS:
            return None
        calls = {call["id"]: call["function"] for message in messages for call in message.get("tool_calls") or ()}
        spans, *_ = self.needed.analyze(messages, cut, self.generic, session)
        stored = {at: messages[at] for at in old[:-LAST]}
        left = self.needed.all_text([message for at, message in enumerate(messages[:cut]) if at not in stored])
        by_step: dict[int, list[Any]] = defaultdict(list)
        for span in spans:
            if span["s"] not in left and any(at in stored for at in span["pairs"]):
                by_step[span["use"]].append(span)
        results = {}
        for at, message in stored.items():
            function = calls.get(message.get("tool_call_id"), {})
            results[at] = (function.get("name", "?"), function.get("arguments") or "", self.needed.text(message))
        return Case(transcript["kind"], results, [self._need(messages, at, found) for at, found in by_step.items()])

    def _need(self, messages: Sequence[Any], step: int, spans: Sequence[Any]) -> Need:
        secret = {word.lower() for span in spans for word in WORD.findall(span["s"])}
        before = " ".join(self.needed.text(one) for one in messages[max(0, step - 2) : step] if one["role"] != "tool")
        said = f"{self.needed.out_text(messages[step])[:3000]} {before[:1500]}"
        words = Counter(word for word in WORD.findall(said) if word.lower() not in secret)
        query = " ".join(word for word, _ in words.most_common(40))
        return Need(query, [(span["s"], frozenset(span["pairs"])) for span in spans])


def measured(case: Case, folder: Path) -> Iterator[Counter[str]]:
    """What each need of a case found."""
    store = Store(folder)
    items = [Keep(*result, "unknown", f"{at} {{}}".format) for at, result in case.results.items()]
    replies = store.keep(SESSION, items)
    ids = {at: kept.id for at, kept in zip(case.results, replies, strict=True) if isinstance(kept, Kept)}
    search = OwnSearch(store, SESSION)
    search.take_in()
    for need in case.needs:
        wanted = [Wanted(text, {ids[at] for at in holders if at in ids}) for text, holders in need.strings]
        brought = search.brought(need.query, wanted)
        assert brought.reply_chars <= 4_000
        own = {"four": brought.found, "reply": brought.shown, "expand": brought.expanded, "chars": brought.reply_chars}
        yield Counter(needs=1, **plain(case, need), **own)


def plain(case: Case, need: Need) -> dict[str, int]:
    """What SQLite's own full text finds."""
    words = list(dict.fromkeys(word for word in need.query.split() if word.lower() not in FILLER))[:24]
    texts = {at: f"{text}\n{tool} {arguments}" for at, (tool, arguments, text) in case.results.items()}
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(content)")
        connection.executemany("INSERT INTO t (rowid, content) VALUES (?, ?)", texts.items())
        match = " OR ".join(f'"{word}"' for word in words) or '""'
        rows = connection.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT 4", (match,))
        best = [at for (at,) in rows]
    shown = []
    for at in best:
        text = texts[at]
        places = [place for word in words if (place := text.lower().find(word.lower())) >= 0]
        start = max(0, min(places, default=0) - 625)
        shown.append(text[start : start + 2500])
    return {
        "plain four": any(at in holders for at in best for _, holders in need.strings),
        "plain excerpt": any(string in text for text in shown for string, _ in need.strings),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kit", type=Path, default=ROOT.parent / "shared" / "evaldata", help="the evaluation kit")
    parser.add_argument("--cuts", default=".4,.6,.8", help="shares of the characters at which to cut")
    parser.add_argument("--even", action="store_true", help="the sessions for tuning")
    parser.add_argument("--all", action="store_true", help="all sessions")
    options = parser.parse_args()
    kit, cuts = Kit(options.kit), [float(cut) for cut in options.cuts.split(",")]
    halves = [True, False] if options.all else [options.even]
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for case in (case for half in halves for case in kit.cases(cuts, half)):
        with tempfile.TemporaryDirectory() as folder:
            for found in measured(case, Path(folder)):
                totals[case.kind] += found
                totals["all"] += found
    columns = ("plain four", "plain excerpt", "four", "reply", "expand")
    print("| kind | needs | plain: in first four | plain: in 4 x 2,500 chars | first four | reply | after one expand |")
    print("|---|---|---|---|---|---|---|")
    for kind, total in sorted(totals.items(), key=lambda item: (item[0] == "all", item[0])):
        shares = " | ".join(f"{100 * total[column] / total['needs']:.1f} %" for column in columns)
        print(f"| {kind} | {total['needs']} | {shares} |")
    print(f"mean reply: {totals['all']['chars'] / max(1, totals['all']['needs']):,.0f} characters")


if __name__ == "__main__":
    main()
