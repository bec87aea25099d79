"""Ask a judge about turns: packed by size, redacted, several requests at a time, one answer a turn."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .egress import Gate, RedactionError
from .judge import Answer, Answers, Judge, Lexical, Question, Request, Watch, ask_watched
from .judge.protocol import STANDS_IN, Spoken
from .settings import Egress
from .turn_questions import turn_id
from .turns import Turn

GIVE_UP_AFTER = 3
"""So many rounds in a row without any answer, and the rest is not asked."""

_LOCAL_DEADLINE_S = 600.0
"""A judge inside this process reads everything in one go, however much it is."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """How turns are put to the judge. `head` and `tail` are characters of a long turn; `most` turns and `characters`
    (JSON) limit a request; `at_once` requests go out in a round of `deadline_s` seconds. `secrets_stay` keeps back
    every turn in which a secret was found, instead of masking it. `watch` remembers how services do. Unless `egress` is
    "redacted" no text may leave, and a turn is nothing but text: then the lexical judge answers."""

    question: Callable[[int], Question]
    context: str
    task: str
    head: int
    tail: int
    most: int
    characters: int
    at_once: int
    deadline_s: float
    watch: Watch
    egress: Egress = "redacted"
    secrets_stay: bool = False


@dataclass(frozen=True)
class Asked:
    """Answers by turn index, what was asked but not sent, and what it took."""

    by_index: Mapping[int, Answer] = field(default_factory=dict)
    unsent: tuple[int, ...] = ()
    judge: str = ""
    model: str = ""
    requests: int = 0
    failed: int = 0
    errors: tuple[str, ...] = ()
    input_tokens: int = 0
    cost: float = 0.0
    latency_ms: int = 0


def ask_turns(turns: Sequence[Turn], judge: Judge, gate: Gate, plan: Plan, progress: Progress | None = None) -> Asked:
    """Never raises for a failing judge: what it did not answer has no entry. Where a service is not even asked, since
    it failed too often or the day's money is spent, the lexical judge answers."""
    if plan.egress != "redacted" and not judge.local:
        judge = Lexical()
    started = time.monotonic()
    requests, unsent = ([_local(turns, plan)], []) if judge.local else _remote(turns, gate, plan)
    answers: list[Answers] = []
    for found in _answers(requests, judge, plan, progress):
        if found.declined in STANDS_IN:
            return ask_turns(turns, Lexical(), gate, plan, progress)
        answers.append(found)
    indices = {turn_id(turn.index): turn.index for turn in turns}
    return Asked(
        by_index={indices[name]: answer for part in answers for name, answer in part.by_id.items() if name in indices},
        unsent=tuple(unsent),
        judge=judge.name,
        model=next((part.model for part in answers if part.model), judge.version),
        requests=sum(part.requests for part in answers),
        failed=sum(part.failed for part in answers),
        errors=tuple(sorted({code for part in answers for code in part.errors})),
        input_tokens=sum(part.input_tokens for part in answers),
        cost=sum(part.cost for part in answers),
        latency_ms=round(1_000 * (time.monotonic() - started)),
    )


def _answers(requests: Sequence[Request], judge: Judge, plan: Plan, progress: Progress | None) -> Iterator[Answers]:
    total = sum(len(request.questions) for request in requests)
    silent = done = 0
    for round_ in _rounds(requests, plan.at_once) if total else ():
        if silent == GIVE_UP_AFTER:
            return
        found = ask_watched(judge, round_, _LOCAL_DEADLINE_S if judge.local else plan.deadline_s, plan.watch)
        yield found
        silent = 0 if found.by_id else silent + 1
        done += sum(len(request.questions) for request in round_)
        if progress is not None:
            progress(done, total)


def _rounds(requests: Sequence[Request], size: int) -> Iterator[Sequence[Request]]:
    for start in range(0, len(requests), size):
        yield requests[start : start + size]


def _local(turns: Sequence[Turn], plan: Plan) -> Request:
    """For a judge inside this process: it reads the turns themselves."""
    newest = max((turn.index for turn in turns), default=0)
    spoken = tuple(
        Spoken(turn_id(turn.index), turn.role, turn.shown, newest - turn.index, turn.content) for turn in turns
    )
    asked = tuple(plan.question(turn.index) for turn in turns)
    return Request(state={}, questions=asked, goal=plan.task, turns=spoken)


def _remote(turns: Sequence[Turn], gate: Gate, plan: Plan) -> tuple[list[Request], list[int]]:
    frame = {"context": plan.context}
    unsent: list[int] = []
    try:
        frame |= {"task": gate.text(plan.task)} if plan.task else {}
    except RedactionError:
        return [], [turn.index for turn in turns]
    requests: list[Request] = []
    batch: list[tuple[int, dict[str, str]]] = []
    used = 0
    for turn in turns:
        item = _item(turn, gate, plan)
        if item is None:
            unsent.append(turn.index)
            continue
        cost = len(json.dumps(item, ensure_ascii=False)) + 16
        if batch and (len(batch) == plan.most or used + cost > plan.characters):
            requests.append(_request(frame, batch, plan))
            batch, used = [], 0
        batch.append((turn.index, item))
        used += cost
    if batch:
        requests.append(_request(frame, batch, plan))
    return requests, unsent


def _request(frame: Mapping[str, str], batch: Sequence[tuple[int, dict[str, str]]], plan: Plan) -> Request:
    asked = tuple(plan.question(index) for index, _ in batch)
    return Request(state={**frame, "turns": [item for _, item in batch]}, questions=asked)


def _item(turn: Turn, gate: Gate, plan: Plan) -> dict[str, str] | None:
    """What is said of a turn; None when it must not leave."""
    text = turn.shown
    try:
        if plan.secrets_stay and gate.text(text) != text:
            return None
        head, tail = gate.head_and_tail(text, plan.head, plan.tail)
    except RedactionError:
        return None
    return {"id": turn_id(turn.index), "role": turn.role, "text": f"{head} … {tail}" if tail else head}
