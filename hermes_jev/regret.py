"""Cuts that were wrong as far as anyone can see: the original was fetched again, or the same call was made again.

A lower bound of the misjudgements: what was needed and not asked for leaves no trace. A store that cannot be used costs
the record and nothing else.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from .calibration import Tally, band_of
from .errors import StoreError
from .job import Job
from .notice import cut_in
from .policy import Decision, Verdict
from .redact import redact
from .store import Kept, Store
from .store.outcomes import CutRow, add_cuts, outcomes, regretted, scores
from .tool_calls import fields_of, kind_of, written_by
from .transcript import Transcript

logger = logging.getLogger(__name__)

_TOOL_CHARS = 100
_NO_JUDGE = _NO_SESSION = ""


def repeated(transcript: Transcript) -> tuple[str, ...]:
    """Pointers of cut results whose call was made again with nothing written in between."""
    found: list[str] = []
    later: set[tuple[str, str]] = set()
    for exchange in reversed(transcript.completed):
        call = exchange.tool, exchange.arguments
        fields, kind = fields_of(exchange.arguments), kind_of(exchange.tool)
        if kind == "writes" or written_by(kind, fields):
            later.clear()
            continue
        if call in later and exchange.text.rstrip().endswith("]") and (cut := cut_in(exchange.text)) is not None:
            found.append(cut.notice.id)
        later.add(call)
    return tuple(reversed(found))


def record_repeats(job: Job, transcript: Transcript) -> None:
    """Count the calls that were made again since they were cut."""
    if pointers := repeated(transcript):
        _attempt(lambda: regretted(job.store, [job.session or _NO_SESSION], pointers, "again"))


def record_cuts(job: Job, decisions: Sequence[Decision], kept: Mapping[int, Kept]) -> None:
    """Put what was cut on record, so that what comes of it can be counted."""
    rows = [
        CutRow(
            kept[decision.exchange.result_at].id,
            redact(decision.exchange.tool)[:_TOOL_CHARS],
            decision.verdict.judge if decision.verdict else _NO_JUDGE,
            decision.verdict.output if decision.verdict else None,
            decision.reason,
            decision.verdict.call if decision.verdict else None,
        )
        for decision in decisions
        if decision.exchange.result_at is not None and decision.exchange.result_at in kept
    ]
    _attempt(lambda: add_cuts(job.store, job.session or _NO_SESSION, rows))


def record_expand(reply: str, store: Store, sessions: Callable[[], Collection[str]]) -> None:
    """Count what a reply of `expand` showed: its original was wanted after all. An error counts nothing."""
    shown = json.loads(reply)
    pointer = shown.get("id") if "error" not in shown else None
    if isinstance(pointer, str):
        _attempt(lambda: regretted(store, sessions(), [pointer], "expand"))


def tallies(job: Job, judge: str) -> list[Tally]:
    """What came of this judge's cuts by tool and score band; empty unless the calibration learns."""
    if job.settings.calibration != "learned":
        return []
    cuts: Counter[tuple[str, int]] = Counter()
    regrets: Counter[tuple[str, int]] = Counter()
    try:
        rows = outcomes(job.store, judge)
    except StoreError as error:
        logger.warning("hermes_jev: what came of earlier cuts cannot be read: %s", error)
        return []
    for row in rows:
        if row.score is None:
            continue
        cell = row.tool, band_of(row.score)
        cuts[cell] += 1
        regrets[cell] += bool(row.regret)
    return [Tally(tool, band, count, regrets[tool, band]) for (tool, band), count in sorted(cuts.items())]


def earlier_verdicts(job: Job, transcript: Transcript, judge: str) -> list[Verdict]:
    """What this judge said of the results that are cut in this transcript already: they belong to the session's
    distribution, or a second pass would measure what is left by itself and cut on."""
    if job.settings.calibration == "fixed":
        return []
    cut = (cut_in(exchange.text) for exchange in transcript.completed if exchange.text.rstrip().endswith("]"))
    pointers = [one.notice.id for one in cut if one is not None]
    try:
        found = scores(job.store, pointers, judge)
    except StoreError as error:
        logger.warning("hermes_jev: what was said of cut results cannot be read: %s", error)
        return []
    return [Verdict(call, output, "cut", judge, cached=True) for call, output in found]


def _attempt(record: Callable[[], object]) -> None:
    try:
        record()
    except StoreError as error:
        logger.warning("hermes_jev: what came of a cut was not recorded: %s", error)
