"""Free rules: what an old result's successors alone show to be no longer needed, before any question is asked.

A rule names the later call that holds what this result held, or holds its present state. That call must have ended
well and still show its output. What a rule says nothing about is for the judge.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from .notice import cut_in
from .pins import EXPAND_CALLS, EXPAND_TOOL
from .tool_calls import (
    Kind,
    absolute,
    command_of,
    fields_of,
    kind_of,
    lines_of,
    name_pieces,
    part_of,
    path_of,
    place_after,
    written_by,
)
from .transcript import Exchange, Transcript

Rule = Literal["duplicate", "near duplicate", "read again", "written since", "run again", "older snapshot", "expanded"]

NEARLY_ALL = 0.95
"""Share of a result's characters that must stand, line by line, in one later result for it to be a near duplicate."""

_WORTHWHILE = 200
"""Shorter results are never cut, and "ok" is no copy of "ok"."""
_LONGEST_LINE = 2_000
_CANDIDATES = 3
_SHORT_LINE = 4
_SHRUNK = 4
_REFUSAL = re.compile(r"error|fail|not found|no match|denied|reject|refus|invalid|cannot|could not|unable", re.I)
_REFUSAL_CHARS = 300
_PLANS = frozenset("todo todos plan".split())
_PLAN_VERBS = frozenset("read write update set list".split())
_STATUS_COMMANDS = re.compile(r"\s*(git status|git stash list|docker ps|kubectl get pods|jobs|ps)\b(?:\s+-\S+)*\s*")
_BLANK = re.compile(r"\s+")


class Ruling(NamedTuple):
    """`by` is the ordinal of the call that holds what is left of the matter, 0 where the store itself does."""

    rule: Rule
    by: int

    @property
    def reason(self) -> str:
        """The sentence a receipt gives."""
        return _REASONS[self.rule].format(by=self.by)


_REASONS: Mapping[Rule, str] = {
    "duplicate": "rule: call {by} returned the same",
    "near duplicate": "rule: call {by} returned nearly all of it again",
    "read again": "rule: call {by} read it again",
    "written since": "rule: call {by} wrote the file since",
    "run again": "rule: call {by} ran it again",
    "older snapshot": "rule: call {by} gave a newer state",
    "expanded": "rule: a stored original that expand showed",
}


@dataclass(frozen=True)
class _Act:
    """A completed call with what its arguments say. `place` is the folder it ran in, as far as commands tell."""

    exchange: Exchange
    kind: Kind
    fields: Mapping[str, Any]
    path: str
    place: str
    command: str

    @property
    def failed(self) -> bool:
        return self.exchange.outcome.status == "failed"

    @property
    def is_cut(self) -> bool:
        """Whether its output was cut before: then it shows nothing that an older one could be cut for."""
        text = self.exchange.text
        return text.rstrip().endswith("]") and cut_in(text) is not None


def rulings(transcript: Transcript) -> dict[int, Ruling]:
    """The exchanges that a rule settles: ordinal → ruling. Reads each result once; never raises."""
    acts = _acts(transcript.completed)
    found = _expanded(acts)
    for rule in (_duplicates, _near_duplicates, _superseded):
        for ordinal, ruling in rule(acts).items():
            found.setdefault(ordinal, ruling)
    return found


def _acts(completed: Sequence[Exchange]) -> list[_Act]:
    acts: list[_Act] = []
    place = ""
    for exchange in completed:
        fields = fields_of(exchange.arguments)
        kind = kind_of(exchange.tool)
        command = command_of(fields)
        given = next((fields[key] for key in ("workdir", "cwd") if isinstance(fields.get(key), str)), "")
        here = absolute(given, place) if given else place
        path = path_of(fields)
        acts.append(_Act(exchange, kind, fields, absolute(path, here) if path else "", here, command))
        if kind == "shell" and not given:
            place = place_after(place, command)
    return acts


def _expanded(acts: Sequence[_Act]) -> dict[int, Ruling]:
    old = acts[:-EXPAND_CALLS]
    return {act.exchange.ordinal: Ruling("expanded", 0) for act in old if act.exchange.tool == EXPAND_TOOL}


def _duplicates(acts: Sequence[_Act]) -> dict[int, Ruling]:
    """Results whose very text a later call returned too."""
    newest: dict[str, int] = {}
    found: dict[int, Ruling] = {}
    for act in reversed(acts):
        exchange = act.exchange
        if exchange.size < _WORTHWHILE:
            continue
        if (by := newest.setdefault(exchange.text, exchange.ordinal)) != exchange.ordinal:
            found[exchange.ordinal] = Ruling("duplicate", by)
    return found


def _near_duplicates(acts: Sequence[_Act]) -> dict[int, Ruling]:
    """Results nearly all of whose lines stand in one later result, whatever tool returned it.

    Candidates are the results that next hold most of the lines; each is then compared in full.
    """
    next_holder: dict[str, int] = {}
    held: dict[int, frozenset[str]] = {}
    found: dict[int, Ruling] = {}
    for act in reversed(acts):
        exchange = act.exchange
        lines = _lines(exchange.text) if exchange.size >= _WORTHWHILE else []
        enough = NEARLY_ALL * sum(map(len, lines))
        for by, count in Counter(map(next_holder.get, lines)).most_common(_CANDIDATES):
            if by is None or count < len(lines) // _CANDIDATES:
                continue
            if sum(len(line) for line in lines if line in held[by]) >= enough:
                found[exchange.ordinal] = Ruling("near duplicate", by)
                break
        held[exchange.ordinal] = frozenset(lines)
        next_holder.update(dict.fromkeys(lines, exchange.ordinal))
    return found


def _lines(text: str) -> list[str]:
    """The lines of a result that say something; a text of very long lines has none to compare."""
    lines = [line for part in text.splitlines() if len(line := part.strip()) >= _SHORT_LINE]
    return lines if max(map(len, lines), default=0) <= _LONGEST_LINE else []


def _superseded(acts: Sequence[_Act]) -> dict[int, Ruling]:
    """Results whose call was made again, or whose file was written, later."""
    later = _Later()
    found: dict[int, Ruling] = {}
    for act in reversed(acts):
        if (ruling := later.ruling(act)) is not None:
            found[act.exchange.ordinal] = ruling
        later.add(act)
    return found


class _Later:
    """The calls after the one that is looked at, read from the newest backwards."""

    def __init__(self) -> None:
        self._same: dict[tuple[str, ...], _Act] = {}
        self._reads: dict[str, list[_Act]] = defaultdict(list)
        self._written: dict[str, _Act] = {}
        self._states: dict[tuple[str, ...], _Act] = {}

    def ruling(self, act: _Act) -> Ruling | None:
        """What the later calls say of this one."""
        state = _state(act)
        if state is not None and (newer := self._states.get(state)):
            return Ruling("older snapshot", newer.exchange.ordinal)
        if again := self._again(act):
            return Ruling("run again", again.exchange.ordinal)
        if not act.path or act.kind == "writes":
            return None
        written = self._written.get(act.path)
        for read in self._reads[act.path]:
            if _covers(read, act) and _shows(act, read, written):
                return Ruling("read again", read.exchange.ordinal)
        return Ruling("written since", written.exchange.ordinal) if written else None

    def _again(self, act: _Act) -> _Act | None:
        """The same command, or the same look-up, made again; a failed one stands only for one that failed too."""
        repeats = (act.kind == "shell" and act.command) or (act.kind == "reads" and act.fields)
        if not repeats or act.path:
            return None
        again = self._same.get(_call(act))
        if again is None or (again.failed and not act.failed):
            return None
        return again if act.kind == "shell" or _shows(act, again, None) else None

    def add(self, act: _Act) -> None:
        """Take a call in. Of equal ones the newest stays, of writes the one that came first after the read."""
        if act.is_cut:
            return
        self._same.setdefault(_call(act), act)
        if act.failed:
            return
        if state := _state(act):
            self._states.setdefault(state, act)
        if act.path and act.kind != "writes":
            self._reads[act.path].append(act)
        if not _refused(act):
            for name in written_by(act.kind, act.fields):
                self._written[absolute(name, act.place)] = act


def _shows(act: _Act, again: _Act, written: _Act | None) -> bool:
    """Whether a later look shows the matter at all: some hosts answer a repeated read with one line. After a write the
    file may have become short."""
    between = written is not None and written.exchange.ordinal < again.exchange.ordinal
    return between or again.exchange.size * _SHRUNK >= act.exchange.size


def _refused(act: _Act) -> bool:
    """Whether the answer to a write reads like a refusal; what is in doubt supersedes nothing."""
    text = act.exchange.text
    return act.exchange.outcome.status != "ok" and _REFUSAL.search(text[:_REFUSAL_CHARS]) is not None


def _call(act: _Act) -> tuple[str, ...]:
    """Equal for the same call in the same place."""
    return act.exchange.tool, _BLANK.sub(" ", act.exchange.arguments), act.place


def _state(act: _Act) -> tuple[str, ...] | None:
    """Equal for two looks at the same changing state: a list of tasks, a status."""
    tool = act.exchange.tool
    if act.kind == "shell":
        asked = _STATUS_COMMANDS.fullmatch(act.command)
        return (tool, act.place, asked[1]) if asked else None
    pieces = name_pieces(tool)
    if pieces & _PLANS and pieces <= _PLANS | _PLAN_VERBS:
        return (tool,)
    return _call(act) if "status" in pieces and act.kind in ("reads", "other") else None


def _covers(later: _Act, earlier: _Act) -> bool:
    """Whether the later read asked for at least the lines of the earlier one and can have shown them: a reader may stop
    after its own limit, so the end of a known part must be within what it returned."""
    wide, narrow = lines_of(later.fields), lines_of(earlier.fields)
    if wide is None or narrow is None:
        return part_of(later.fields) == part_of(earlier.fields)
    if not (wide.first <= narrow.first and wide.last >= narrow.last):
        return False
    if narrow == wide or narrow.last == math.inf:
        return narrow.first == wide.first
    text = later.exchange.text
    return wide.last < math.inf or wide.first + text.count("\n") + text.count("\\n") >= narrow.last
