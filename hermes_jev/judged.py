"""Get a verdict for each candidate: from the store, else from the judge, else from the embedded one when it is urgent.

Equal exchanges are asked about once. A verdict that is stored for the same content, wording, goal and judge is not
asked again until the session has moved on by 20 calls.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from . import window
from .egress import Gate
from .errors import StoreError
from .judge import Answer, Answers, Judge, Lexical, ask_watched, key_names, limits_of, watch_of
from .policy import Verdict
from .questions import VERSION, question_ids
from .settings import Settings
from .store import Store, StoredVerdict
from .transcript import Exchange, Transcript

PUT_OFF = "put off"
"""Stage of a row that says: there were more candidates than one pass asks about. It holds until the session goes on,
so that a second pass over the same conversation asks nothing."""

TRIMMED = "trimmed"
"""Stage of a verdict on a call whose texts were cut once more, to 200 characters of head and 100 of tail, since the
service found even one call too long."""

ASK_AGAIN_CALLS = 20
"""A stored verdict is asked again once this many further calls are completed: needs change as work goes on."""

_WORDS = {
    "auth": "has no key, a refused one or no credit ({keys})",
    "too_large": "found a request too long",
    "transient": "could not be reached or did not answer in time",
    "bad_request": "refused the request",
    "bad_response": "answered in another format",
}

_DECLINED = {
    "paused": "asked to be left alone; it is asked again after that",
    "circuit": "failed three passes in a row; it is asked again within five minutes",
    "budget": "was not asked: the day's cost limit would be crossed (daily_cost_limit_usd)",
}
_STANDS_IN = ("circuit", "budget")
"""Why a service was not asked, where the embedded judge answers in its place."""


@dataclass(frozen=True)
class Judged:
    """Verdicts by ordinal, and what it took. `failed` says that questions were asked and none was answered; `put_off`
    are the candidates beyond what one pass asks a remote judge about."""

    verdicts: Mapping[int, Verdict] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers)
    failed: bool = False
    partial: bool = False
    problems: tuple[str, ...] = ()
    put_off: tuple[Exchange, ...] = ()


@dataclass(frozen=True)
class Bench:
    """Who judges, against what, and where verdicts are kept."""

    judge: Judge
    store: Store
    settings: Settings
    gate: Gate
    goal: str
    focus: str
    actions: tuple[str, ...]

    @property
    def goal_hash(self) -> str:
        """Of goal and focus together: another goal is another question."""
        return hashlib.sha256(f"{self.goal}\0{self.focus}".encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def key(self, content: str, judge: Judge) -> str:
        """The verdict cache's key."""
        parts = json.dumps([content, VERSION, self.goal_hash, judge.name, judge.version])
        return hashlib.sha256(parts.encode()).hexdigest()


def judged(
    transcript: Transcript, candidates: Sequence[Exchange], contents: Mapping[int, str], bench: Bench, urgent: bool
) -> Judged:
    """Verdicts for the candidates. `contents` maps ordinals to content hashes. Never raises for judge or store."""
    standing = {contents[exchange.ordinal]: exchange for exchange in candidates}
    first = _ask(transcript, standing, bench, bench.judge)
    if first.failed and (urgent or first.answers.declined in _STANDS_IN) and not bench.judge.local:
        silent = {content: exchange for content, exchange in standing.items() if exchange.ordinal not in first.verdicts}
        second = _ask(transcript, silent, bench, Lexical())
        first = replace(
            second,
            verdicts={**second.verdicts, **first.verdicts},
            answers=_joined(first.answers, second.answers),
            problems=(*first.problems, f"{bench.judge.name} did not answer; the lexical judge stood in"),
        )
    spread = {
        exchange.ordinal: first.verdicts[standing[contents[exchange.ordinal]].ordinal]
        for exchange in candidates
        if standing[contents[exchange.ordinal]].ordinal in first.verdicts
    }
    late = {contents[exchange.ordinal] for exchange in first.put_off}
    put_off = tuple(exchange for exchange in candidates if contents[exchange.ordinal] in late)
    return replace(first, verdicts=spread, put_off=put_off)


def with_the_rest(transcript: Transcript, found: Judged, contents: Mapping[int, str], bench: Bench) -> Judged:
    """What the embedded judge says of the candidates that were put off, added: in a session of thousands of calls the
    window would fill long before a remote judge was asked about all of them."""
    rest = judged(transcript, found.put_off, contents, replace(bench, judge=Lexical()), False)
    problem = f"the lexical judge answered for {len(rest.verdicts)} results beyond those that one pass asks about"
    return replace(found, verdicts={**found.verdicts, **rest.verdicts}, problems=(*found.problems, problem))


def _ask(transcript: Transcript, standing: Mapping[str, Exchange], bench: Bench, judge: Judge) -> Judged:
    """What one judge says of the exchanges (by content hash): what the store holds, and its answers about the rest."""
    calls = len(transcript.completed)
    problems: list[str] = []
    keys = {exchange.ordinal: bench.key(content, judge) for content, exchange in standing.items()}
    stored = _stored(bench, keys, calls, problems)
    verdicts = {
        ordinal: Verdict(row.call, row.output, row.stage, row.judge, cached=True)
        for ordinal, row in stored.items()
        if row.stage != PUT_OFF
    }
    rest = [exchange for exchange in standing.values() if exchange.ordinal not in stored]
    rest.sort(key=lambda exchange: (-exchange.size, exchange.ordinal))
    # The limit is one of cost; a judge inside this process has none.
    limit = len(rest) if judge.local else bench.settings.max_candidates
    asked, put_off = rest[:limit], rest[limit:]
    if put_off:
        problems.append(f"{len(put_off)} results were not asked about: one pass asks about the largest {len(asked)}")
    what = window.Question(transcript, asked, bench.goal, bench.focus, bench.actions)
    fitted = (
        window.fit_local(what)
        if judge.local
        else window.fit(what, bench.gate, bench.settings.items_per_request, limits_of(judge))
    )
    problems.extend(sorted({f"not asked: {why}" for why in fitted.unsent.values()}))
    if not fitted.requests:
        late = tuple(e for e in standing.values() if e.ordinal in stored and e.ordinal not in verdicts)
        answers = Answers(judge=judge.name, model=judge.version)
        return Judged(verdicts, answers, problems=tuple(problems), put_off=(*put_off, *late))
    started = time.monotonic()
    watch = watch_of(bench.store, bench.settings.daily_cost_limit_usd)
    answers = ask_watched(judge, fitted.requests, bench.settings.pass_deadline_s, watch)
    answers = replace(answers, latency_ms=round(1_000 * (time.monotonic() - started)))
    problems.extend(_troubles(judge, answers, key_names(bench.settings)))
    new = {
        exchange.ordinal: verdict
        for exchange in asked
        if (verdict := _verdict(exchange, answers, fitted.stages.get(exchange.ordinal, ""), judge)) is not None
    }
    if not new and not answers.errors and not answers.declined:
        problems.append(f"{judge.name} gave no answer that can be used")
    rows = {keys[n]: StoredVerdict(v.call, v.output, v.stage, calls, v.judge) for n, v in new.items()}
    rows |= {keys[e.ordinal]: StoredVerdict(None, None, PUT_OFF, calls, judge.name) for e in put_off}
    _save(bench, rows, problems)
    partial = bool(new) and len(new) < len(asked) - len(fitted.unsent)
    return Judged({**verdicts, **new}, answers, not new, partial, tuple(problems), tuple(put_off))


def _troubles(judge: Judge, answers: Answers, keys: str) -> list[str]:
    """What went wrong, in words, with what stood behind it; `keys` are the variables that may hold a key."""
    behind = f": {', '.join(answers.details)}" if answers.details else ""
    words = [_WORDS.get(code, "failed").format(keys=keys) for code in sorted(set(answers.errors))]
    troubles = [f"{judge.name} {word}{behind}" for word in words]
    return [*troubles, f"{judge.name} {_DECLINED[answers.declined]}"] if answers.declined else troubles


def _stored(bench: Bench, keys: Mapping[int, str], calls: int, problems: list[str]) -> dict[int, StoredVerdict]:
    """The rows that still stand, by ordinal; a store that cannot be read holds none."""
    try:
        rows = bench.store.verdicts(list(keys.values()))
    except StoreError as error:
        problems.append(f"verdicts not read: {error}")
        return {}
    return {ordinal: rows[key] for ordinal, key in keys.items() if key in rows and _holds(rows[key], calls)}


def _save(bench: Bench, rows: Mapping[str, StoredVerdict], problems: list[str]) -> None:
    try:
        bench.store.save_verdicts(rows)
    except StoreError as error:
        problems.append(f"verdicts not saved: {error}")


def _verdict(exchange: Exchange, answers: Answers, stage: str, judge: Judge) -> Verdict | None:
    """None without the answer about the output: it alone says that something may go."""
    call, output = (answers.by_id.get(name) for name in question_ids(exchange.ordinal))
    needed = _probability(output)
    seen = TRIMMED if question_ids(exchange.ordinal)[1] in answers.trimmed else stage
    return None if needed is None else Verdict(_probability(call), needed, seen, judge.name)


def _probability(answer: Answer | None) -> float | None:
    """P(yes) as a number in [0, 1]; whatever else a judge object gives is no answer."""
    value: object = answer.probabilities.get("true") if answer is not None else None
    if isinstance(value, float | int) and not isinstance(value, bool) and 0.0 <= value <= 1.0:
        return float(value)
    return None


def _holds(row: StoredVerdict, calls: int) -> bool:
    """Whether a stored row still stands when this many calls are completed."""
    moved_on = calls - row.calls_seen
    return moved_on == 0 if row.stage == PUT_OFF else 0 <= moved_on < ASK_AGAIN_CALLS


def _joined(first: Answers, second: Answers) -> Answers:
    """The second judge's answers with the costs and errors of both."""
    return replace(
        second,
        requests=first.requests + second.requests,
        failed=first.failed + second.failed,
        errors=(*first.errors, *second.errors),
        input_tokens=first.input_tokens + second.input_tokens,
        cost=first.cost + second.cost,
        latency_ms=first.latency_ms + second.latency_ms,
    )
