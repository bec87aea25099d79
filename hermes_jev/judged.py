"""Get a verdict for each candidate: from the store, else from the judge, else from the embedded one when it is urgent.

Equal exchanges are asked about once, and what still stands of earlier passes (`verdict_cache`) is not asked again. What
may leave the machine is the setting `egress`: with `off` the embedded judge answers; with `metadata` a remote judge is
told no content, so what it says can only keep: a result may go when the embedded judge, which reads it, agrees.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from . import window
from .described import COUNTS
from .egress import Gate
from .judge import Answer, Answers, Judge, Lexical, ask_watched, key_names, limits_of, watch_of
from .judge.protocol import STANDS_IN
from .policy import Verdict
from .questions import question_ids
from .settings import Settings
from .store import Store, StoredVerdict
from .transcript import Exchange, Transcript
from .usage import learn, token_factor
from .verdict_cache import ASK_AGAIN_CALLS, PUT_OFF, VerdictCache

__all__ = ["ASK_AGAIN_CALLS", "PUT_OFF", "Bench", "Judged", "judged"]

OFF = "egress is off: nothing is sent, and the lexical judge decides"
TRIMMED = "trimmed"
"""Stage of a verdict on a call whose texts were cut once more, to 200 characters of head and 100 of tail, since the
service found even one call too long."""

METADATA = "egress is metadata: no text is sent, and a result goes only if the lexical judge agrees"

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
    goal: str = field(repr=False)
    focus: str = field(repr=False)
    actions: tuple[str, ...] = field(repr=False)
    task: str = field(default="", repr=False)

    def cache(self, judge: Judge) -> VerdictCache:
        """The stored verdicts of this judge."""
        return VerdictCache(self.store, self.settings, judge, self.goal, f"{self.task}\0{self.focus}")

    @property
    def goal_hash(self) -> str:
        """Of goal, task and focus together: another one is another question."""
        return self.cache(self.judge).goal_hash

    def key(self, content: str, judge: Judge) -> str:
        """The verdict cache's key."""
        return self.cache(judge).key(content)


def judged(
    transcript: Transcript, candidates: Sequence[Exchange], contents: Mapping[int, str], bench: Bench, urgent: bool
) -> Judged:
    """Verdicts for the candidates. `contents` maps ordinals to content hashes. Never raises for judge or store."""
    standing = {contents[exchange.ordinal]: exchange for exchange in candidates}
    egress, judge = bench.settings.egress, bench.judge
    if egress == "off" and not judge.local:
        first = _ask(transcript, standing, bench, Lexical())
        first = replace(first, problems=(OFF, *first.problems))
    else:
        first = _ask(transcript, standing, bench, judge)
        if egress == "metadata" and not judge.local:
            first = _agreed(first, transcript, standing, bench)
        if first.failed and (urgent or first.answers.declined in STANDS_IN) and not judge.local:
            first = _stood_in(first, transcript, standing, bench)
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


def _stood_in(first: Judged, transcript: Transcript, standing: Mapping[str, Exchange], bench: Bench) -> Judged:
    """The embedded judge's verdicts where the judge gave none."""
    silent = {content: exchange for content, exchange in standing.items() if exchange.ordinal not in first.verdicts}
    second = _ask(transcript, silent, bench, Lexical())
    return replace(
        second,
        verdicts={**second.verdicts, **first.verdicts},
        answers=_joined(first.answers, second.answers),
        problems=(*first.problems, f"{bench.judge.name} did not answer; the lexical judge stood in"),
    )


def _agreed(first: Judged, transcript: Transcript, standing: Mapping[str, Exchange], bench: Bench) -> Judged:
    """Of what a judge said without seeing a text and what the embedded one says of the whole: the higher."""
    seen = {content: exchange for content, exchange in standing.items() if exchange.ordinal in first.verdicts}
    second = _ask(transcript, seen, bench, Lexical())
    verdicts = {
        ordinal: replace(verdict, call=_higher(verdict.call, other.call), output=_higher(verdict.output, other.output))
        for ordinal, verdict in first.verdicts.items()
        if (other := second.verdicts.get(ordinal)) is not None
    }
    return replace(first, verdicts=verdicts, problems=(*first.problems, METADATA, *second.problems))


def _higher(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)


def _ask(transcript: Transcript, standing: Mapping[str, Exchange], bench: Bench, judge: Judge) -> Judged:
    """What one judge says of the exchanges (by content hash): what the store holds, and its answers about the rest."""
    calls = len(transcript.completed)
    problems: list[str] = []
    cache = bench.cache(judge)
    stored = cache.standing(standing, calls, problems)
    verdicts = {
        standing[content].ordinal: Verdict(row.call, row.output, row.stage, row.judge, cached=True)
        for content, row in stored.items()
        if row.stage != PUT_OFF
    }
    rest = {exchange.ordinal: content for content, exchange in standing.items() if content not in stored}
    asked, put_off = _chosen([standing[content] for content in rest.values()], judge, bench, problems)
    fitted = _fitted(window.Question(transcript, asked, bench.goal, bench.focus, bench.actions, rest), judge, bench)
    problems.extend(sorted({f"not asked: {why}" for why in fitted.unsent.values()}))
    if not fitted.requests:
        late = tuple(e for content, e in standing.items() if content in stored and e.ordinal not in verdicts)
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
    rows = {rest[n]: StoredVerdict(v.call, v.output, v.stage, calls, v.judge) for n, v in new.items()}
    cache.save(rows, [rest[exchange.ordinal] for exchange in put_off], calls, problems)
    if not judge.local:
        learn(bench.store, judge, fitted, answers)
    partial = bool(new or verdicts) and len(new) < len(asked) - len(fitted.unsent)
    return Judged({**verdicts, **new}, answers, not new, partial, tuple(problems), tuple(put_off))


def _troubles(judge: Judge, answers: Answers, keys: str) -> list[str]:
    """What went wrong, in words, with what stood behind it; `keys` are the variables that may hold a key."""
    behind = f": {', '.join(answers.details)}" if answers.details else ""
    words = [_WORDS.get(code, "failed").format(keys=keys) for code in sorted(set(answers.errors))]
    troubles = [f"{judge.name} {word}{behind}" for word in words]
    return [*troubles, f"{judge.name} {_DECLINED[answers.declined]}"] if answers.declined else troubles


def _chosen(
    rest: list[Exchange], judge: Judge, bench: Bench, problems: list[str]
) -> tuple[list[Exchange], list[Exchange]]:
    """What is asked about, largest first, and what is put off. The limit is one of cost; a judge inside this process
    has none."""
    rest = sorted(rest, key=lambda exchange: (-exchange.size, exchange.ordinal))
    limit = len(rest) if judge.local else bench.settings.max_candidates
    if len(rest) > limit:
        problems.append(f"{len(rest) - limit} results were not asked about: one pass asks about the largest {limit}")
    return rest[:limit], rest[limit:]


def _fitted(what: window.Question, judge: Judge, bench: Bench) -> window.Fitted:
    if judge.local:
        return window.fit_local(what)
    settings = bench.settings
    factor = token_factor(bench.store, judge)
    most, limits = settings.items_per_request, limits_of(judge)
    return window.fit(what, bench.gate, most, limits, factor=factor, egress=settings.egress)


def _verdict(exchange: Exchange, answers: Answers, stage: str, judge: Judge) -> Verdict | None:
    """None without the answer about the output: it alone says that something may go. Where the judge saw too little
    the answer is recorded as none, with the stage that says why."""
    call, output = (answers.by_id.get(name) for name in question_ids(exchange.ordinal))
    needed = _probability(output)
    if needed is None:
        return None
    if stage not in COUNTS:
        return Verdict(None, None, stage, judge.name)
    seen = TRIMMED if question_ids(exchange.ordinal)[1] in answers.trimmed else stage
    return Verdict(_probability(call), needed, seen, judge.name)


def _probability(answer: Answer | None) -> float | None:
    """P(yes) as a number in [0, 1]; whatever else a judge object gives is no answer."""
    value: object = answer.probabilities.get("true") if answer is not None else None
    if isinstance(value, float | int) and not isinstance(value, bool) and 0.0 <= value <= 1.0:
        return float(value)
    return None


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
