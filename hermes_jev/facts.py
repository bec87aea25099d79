"""Which lines of a cut result stay: scored, explained, whole, and in order.

What tells of an error, a failed test or an exit status goes first, one line for each distinct report. The other lines
are weighed by a small logistic model over what stands nowhere else in what stays (identifiers, paths, numbers), what
defines something, and what the task and the last actions name; `facts_weights.py` holds its weights, which
`benchmarks/fit_facts.py` fits. The best per character stay, within a budget that grows with the result.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from .facts_weights import BIAS, LEAST, WEIGHTS
from .notice import GAP, Fact, excerpt
from .scene import Line, Scene
from .settings import Settings
from .signals import Signal, hints, report, signal_of, template
from .transcript import Exchange, Transcript
from .wrapping import unwrap

GROWTH = 0.04
"""Share of a result that its facts may take. What reports a distinct error may take more."""

FEATURES = (
    "length",  # ln(characters / 50)
    "short",  # fewer than 20 characters
    "fresh",  # ln(1 + marks that no kept text holds)
    "only",  # ln(1 + such marks that no other large result holds either)
    "reused",  # ln(1 + marks that later words, arguments or kept results use)
    "goal",  # root of the share of the task that the line names
    "recent",  # root of the share of the last actions that the line names
    "path",  # a fresh path
    "defines",  # a definition
    "early",  # 1 at the top, falling with the line's place
    "repeats",  # ln(lines of the result that differ in digits only)
    "depth",  # ln(1 + columns of indentation), a line number before it aside
    "open",  # an open item of a task list: 1 for the first, falling with the open items before it
)

_ORDER: tuple[Signal, ...] = ("failed test", "error", "cause")

_NUMBERED = r"^\W*(?:\d+\W+)?"
_DEFINES = re.compile(
    _NUMBERED + r"(?:(?:export|public|private|protected|static|async|abstract|final|default|pub|inline|override"
    r"|declare|readonly|virtual|extern|unsafe) +)*"
    r"(?:(?:def|class|function|func|fn|interface|struct|enum|trait|impl|type|module|namespace|CREATE TABLE|create table"
    r"|message|service|rpc|macro_rules!|define|const) +[\w$(*]"
    r"|[A-Z][A-Z0-9_]{3,} *=[^=]|(?:[a-z]+ )*\w+\([^()\n]{0,120}\)[^(){}\n]{0,60}\{ *$)"
)
_OPEN = re.compile(r"^\s*(?:\d+\W+)?(?:[-*+]|\d+[.)]) *\[ \]")
_INDENT = re.compile(r"(?: *\d+(?:[→|:]|\t))?([ \t]*)")
_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))

# Text in these words is the host's, the user's or ours wherever it stands; quoted out of its place it could be taken
# for the real thing.
_RESERVED = re.compile(r"OUT-OF-BAND USER MESSAGE|untrusted_tool_result|persisted-output|\[hermes_jev:|^\s*…\s*$")


_LEAST_ROOM = 12
"""Characters; nothing worth showing fits in less."""


class Facts:
    """The facts of one transcript's results. Nothing is read before the first is asked for, and no result twice."""

    def __init__(self, transcript: Transcript, settings: Settings, task: str | None) -> None:
        self._transcript, self._settings, self._task = transcript, settings, task
        self._weighed: dict[int, Weighed] = {}

    @cached_property
    def _scene(self) -> Scene:
        return Scene.of(self._transcript, self._settings, self._task)

    def of(self, exchange: Exchange, excerpt_chars: int, room: int) -> tuple[Fact, ...]:
        """The pieces of the result's payload that stay beside its first `excerpt_chars` characters, in order; they take
        at most `room` characters."""
        room = min(room, self._settings.fact_chars)
        if room < _LEAST_ROOM:
            return ()
        if exchange.ordinal not in self._weighed:
            self._weighed[exchange.ordinal] = weigh(exchange, self._scene)
        payload = unwrap(exchange.text).payload
        return pick(payload, self._weighed[exchange.ordinal], len(excerpt(payload, excerpt_chars)), room)


class Weighed(NamedTuple):
    """The lines of a result that may stay: the first of each distinct report of how something ended, in the order in
    which they are chosen; and the others with probability and reason, the best per character first."""

    reports: Sequence[tuple[Line, Signal]]
    others: Sequence[tuple[Line, float, str]]


def weigh(exchange: Exchange, scene: Scene) -> Weighed:
    """Score the lines of one result. Linear in its size, sorting aside."""
    lines = [line for line in scene.lines_of(exchange) if not _RESERVED.search(line.text)]
    signals = {
        line: signal
        for line in _hinted(unwrap(exchange.text).payload, lines)
        if (signal := signal_of(line.text)) is not None
    }
    # A second report of the same is worth nothing, whatever else stands in it.
    others = [found for found in scored(lines, exchange.result_at or 0, scene) if found[0] not in signals]
    return Weighed(_reports(signals), others)


def pick(payload: str, weighed: Weighed, start: int, room: int) -> tuple[Fact, ...]:
    """The facts of a result, in order: ranges of its payload from `start` on that take at most `room` characters, gaps
    counted; a line that `start` falls into counts from there."""
    chosen = _Chosen(start, room)
    for line, signal in weighed.reports:
        chosen.add(line, 1.0, signal)
    chosen.limit = min(room, max(chosen.taken, int(GROWTH * len(payload))))
    for line, probability, why in weighed.others:
        if chosen.limit - chosen.taken < _LEAST_ROOM:
            break
        chosen.add(line, probability, why)
    return chosen.in_order()


class _Chosen:
    """Facts so far. No line stays twice."""

    def __init__(self, start: int, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self._start = start
        self._texts: set[str] = set()
        self._facts: list[Fact] = []

    def add(self, line: Line, score: float, why: str) -> None:
        start = max(line.start, self._start)
        cost = line.end - start + len(GAP)
        text = line.text.strip()
        if start < line.end and self.taken + cost <= self.limit and text not in self._texts:
            self.taken += cost
            self._texts.add(text)
            self._facts.append(Fact(start, line.end, score, why))

    def in_order(self) -> tuple[Fact, ...]:
        return tuple(sorted(self._facts))


def _reports(signals: Mapping[Line, Signal]) -> list[tuple[Line, Signal]]:
    """One line for each distinct report, one of each kind before a second of any; among those the exit status, the last
    there is, then failed tests, errors and causes."""
    exits = [line for line, signal in signals.items() if signal == "exit status"]
    kinds: set[str] = set()
    told: set[str] = set()
    first: list[tuple[Line, Signal]] = []
    again: list[tuple[Line, Signal]] = []
    for line, signal in signals.items():
        form = report(line.text, signal)
        if signal == "exit status" or form in told:
            continue
        told.add(form)
        kind = form if signal == "failed test" else template(line.text)
        (again if kind in kinds else first).append((line, signal))
        kinds.add(kind)
    first.sort(key=lambda item: _ORDER.index(item[1]))
    return [*((line, "exit status") for line in exits[-1:]), *first, *again]


def _hinted(payload: str, lines: Sequence[Line]) -> Iterator[Line]:
    """The lines that hold a word of a signal, in order."""
    places = iter(hints(payload))
    at = next(places, None)
    for line in lines:
        while at is not None and at < line.start:
            at = next(places, None)
        if at is None:
            return
        if at < line.end:
            yield line


def scored(lines: Sequence[Line], result_at: int, scene: Scene) -> list[tuple[Line, float, str]]:
    """The lines that are likely enough to be needed, the likeliest per character first."""
    found = []
    for line, row in zip(lines, rows(lines, result_at, scene), strict=True):
        if row is None:
            continue
        parts = [weight * value for weight, value in zip(WEIGHTS, row, strict=True)]
        odds = BIAS + sum(parts)
        if odds >= LEAST:
            found.append((line, 1 / (1 + math.exp(-min(odds, 30.0))), FEATURES[parts.index(max(parts))]))
    found.sort(key=lambda item: (-item[1] / (item[0].end - item[0].start + len(GAP)), item[0].start))
    return found


def rows(lines: Sequence[Line], result_at: int, scene: Scene) -> list[tuple[float, ...] | None]:
    """The numbers of `FEATURES` for each line of one result; None for a line that names nothing, defines nothing and
    is no open item of a list of tasks."""
    said, holders = scene.said, scene.holders
    out: list[tuple[float, ...] | None] = []
    waiting = _waiting(lines)
    telling = [
        bool(line.marks or line.terms or wait) or _DEFINES.match(line.text) is not None
        for line, wait in zip(lines, waiting, strict=True)
    ]
    forms = [line.text.translate(_NO_DIGITS) if tells else "" for line, tells in zip(lines, telling, strict=True)]
    often = Counter(forms)
    for number, (line, form, tells) in enumerate(zip(lines, forms, telling, strict=True)):
        if not tells:
            out.append(None)
            continue
        marks, size = line.marks, len(line.text)
        fresh = [mark for mark in marks if mark not in said]
        only = sum([holders[mark] == 1 for mark in fresh])
        reused = sum([said.get(mark, -1) > result_at for mark in marks]) if len(fresh) < len(marks) else 0
        out.append(
            (
                math.log(max(4, size) / 50),
                float(size < 20),
                math.log1p(len(fresh)),
                math.log1p(only),
                math.log1p(reused),
                _share(line.terms, scene.goal),
                _share(line.terms, scene.recent),
                float(any(["/" in mark for mark in fresh])),
                float(_DEFINES.match(line.text) is not None),
                1 / (1 + number / 10),
                math.log(often[form]),
                math.log1p(_depth(line.text)),
                waiting[number],
            )
        )
    return out


def _waiting(lines: Sequence[Line]) -> list[float]:
    """How soon each line's turn comes in a list of tasks, in (0, 1]; 0 for lines that are no open item of one. What is
    written down to be done is done in that order."""
    found, before = [], 0
    for line in lines:
        is_open = _OPEN.match(line.text) is not None
        found.append(1 / (1 + before / 20) if is_open else 0.0)
        before += is_open
    return found


def _depth(text: str) -> int:
    """Columns of indentation, a tab as four."""
    found = _INDENT.match(text)
    return len(found[1].expandtabs(4)) if found else 0


def _share(terms: Iterable[str], weights: dict[str, float]) -> float:
    return math.sqrt(sum([weights.get(term, 0.0) for term in terms])) if terms else 0.0
