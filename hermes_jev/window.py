"""Fit what a judge is asked into its window: a few requests, each with its own items in full detail.

A request's state holds the goal, a short timeline of the newest events, and the description of at most 32 calls; the
rest of the conversation is folded into one line. Nothing is sent twice but goal and timeline.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .egress import Gate, RedactionError
from .goal import GOAL_CHARS, shorten
from .judge.protocol import USUAL_LIMITS, Limits, Request, Subject
from .outcome import Outcome
from .questions import CONTEXT, questions
from .tokens import content_text, estimate_tokens
from .transcript import Exchange, Message, Transcript

STATE_TOKENS = USUAL_LIMITS.state_tokens
"""Estimated tokens of a request's state, usually; with the estimator's margin it stays under the service's 32,000."""

INPUT_CHARS = 1_000
SEEN_INPUT_CHARS = 200
"""A verdict counts only when at least this much of the input was seen, or all of it."""
HEAD_CHARS = 400
TAIL_CHARS = 300

_EVENTS = 24
_EVENT_CHARS = 160
_FOCUS_CHARS = 600
_TOOL_CHARS = 100

Stage = Literal["whole", "head_tail"]


@dataclass(frozen=True)
class Fitted:
    """`stages` says per ordinal how much of the result the judge sees; `unsent` why an exchange is not asked about."""

    requests: tuple[Request, ...] = ()
    stages: Mapping[int, Stage] = field(default_factory=dict)
    unsent: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """What is asked: the exchanges, largest first, and what they are judged against."""

    transcript: Transcript
    asked: Sequence[Exchange]
    goal: str
    focus: str
    actions: tuple[str, ...]


def fit_local(what: Question) -> Fitted:
    """One request for a judge inside this process: it reads the subjects, so nothing is described or redacted."""
    if not what.asked:
        return Fitted()
    asked = tuple(q for exchange in what.asked for q in questions(exchange.ordinal))
    subjects = tuple(_subject(exchange, what.transcript) for exchange in what.asked)
    goal = shorten(f"{what.goal}\n{what.focus}".strip(), GOAL_CHARS)
    request = Request(state={}, questions=asked, goal=goal, actions=what.actions, subjects=subjects)
    return Fitted((request,), {exchange.ordinal: "whole" for exchange in what.asked})


def fit(what: Question, gate: Gate, items_per_request: int, limits: Limits = USUAL_LIMITS) -> Fitted:
    """Requests for a remote judge: redacted, at most `items_per_request` calls each, within the service's limits."""
    try:
        frame = _frame(what, gate)
    except RedactionError:
        return Fitted(unsent={exchange.ordinal: "cannot be redacted" for exchange in what.asked})
    base = estimate_tokens(json.dumps(frame, ensure_ascii=False))
    most = max(1, min(items_per_request, limits.questions // len(questions(0))))
    asking = sum(estimate_tokens(question.instructions + str(question.criteria)) for question in questions(10_000))
    requests: list[Request] = []
    stages: dict[int, Stage] = {}
    unsent: dict[int, str] = {}
    batch: list[tuple[Exchange, dict[str, str]]] = []
    used = base
    for exchange in what.asked:
        try:
            item, stages[exchange.ordinal] = _item(exchange, what.transcript, gate)
        except RedactionError:
            unsent[exchange.ordinal] = "cannot be redacted"
            continue
        cost = estimate_tokens(json.dumps(item, ensure_ascii=False))
        full = used + cost > limits.state_tokens or used + cost + asking * (len(batch) + 1) > limits.request_tokens
        if batch and (full or len(batch) == most):
            requests.append(_request(frame, batch))
            batch, used = [], base
        batch.append((exchange, item))
        used += cost
    if batch:
        requests.append(_request(frame, batch))
    return Fitted(tuple(requests), stages, unsent)


def _request(frame: Mapping[str, Any], batch: Sequence[tuple[Exchange, dict[str, str]]]) -> Request:
    asked = tuple(q for exchange, _ in batch for q in questions(exchange.ordinal))
    return Request(state={**frame, "items": [item for _, item in batch]}, questions=asked)


def _frame(what: Question, gate: Gate) -> dict[str, Any]:
    """What every request carries: how to read it, the goal, and the newest events."""
    frame: dict[str, Any] = {"context": CONTEXT, "goal": _ends(what.goal, GOAL_CHARS, gate)}
    if what.focus:
        frame["focus"] = _ends(what.focus, _FOCUS_CHARS, gate)
    frame["timeline"] = _timeline(what.transcript, gate)
    return frame


def _ends(text: str, limit: int, gate: Gate) -> str:
    head, tail = gate.head_and_tail(text, limit * 2 // 3, limit // 3)
    return f"{head} … {tail}" if tail else head


def _timeline(transcript: Transcript, gate: Gate) -> list[str]:
    by_call: dict[int, list[Exchange]] = {}
    for exchange in transcript.exchanges:
        by_call.setdefault(exchange.call_at, []).append(exchange)
    lines: list[str] = []
    for at in reversed(range(len(transcript.messages))):
        lines.extend(reversed(_events(transcript.messages[at], by_call.get(at, ())[-_EVENTS:], gate)))
        if len(lines) >= _EVENTS:
            lines.append(f"({at} earlier messages are not shown)") if at else None
            break
    return lines[::-1]


def _events(message: Message, calls: Sequence[Exchange], gate: Gate) -> list[str]:
    role = message.get("role")
    if role not in ("user", "assistant"):
        return []
    lines = []
    if text := content_text(message.get("content")).strip():
        lines.append(f"{role}: {gate.start(text, _EVENT_CHARS)}")
    for exchange in calls:
        shown, _ = gate.arguments(exchange.arguments, _EVENT_CHARS)
        tool = gate.start(exchange.tool, _TOOL_CHARS)
        lines.append(f"t{exchange.ordinal} {tool} {shown}: {_ended(exchange)}")
    return lines


def _ended(exchange: Exchange) -> str:
    if exchange.state == "open":
        return "still running"
    if exchange.state == "ambiguous":
        return "its result is unclear"
    return f"{_outcome_words(exchange.outcome)}, {exchange.size:,} characters"


def _item(exchange: Exchange, transcript: Transcript, gate: Gate) -> tuple[dict[str, str], Stage]:
    """One call in full detail, numbers said in words."""
    shown, whole = gate.arguments(exchange.arguments, INPUT_CHARS)
    head, tail = gate.head_and_tail(exchange.text, HEAD_CHARS, TAIL_CHARS)
    item = {
        "id": f"t{exchange.ordinal}",
        "tool": gate.start(exchange.tool, _TOOL_CHARS),
        "input": shown if whole else f"{shown} … (cut)",
        "outcome": _outcome_words(exchange.outcome),
        "size": f"{exchange.size:,} characters",
        "age": _age_words(_age(exchange, transcript)),
        "output": head,
    }
    if tail:
        item["output"] = f"{head} …"
        item["output_end"] = f"… {tail}"
    return item, "head_tail" if tail else "whole"


def _subject(exchange: Exchange, transcript: Transcript) -> Subject:
    return Subject(
        ordinal=exchange.ordinal,
        tool=exchange.tool,
        arguments=exchange.arguments,
        result=exchange.text,
        size=exchange.size,
        age=_age(exchange, transcript),
        outcome=exchange.outcome.status,
    )


def _age(exchange: Exchange, transcript: Transcript) -> int:
    """Calls after this one."""
    return len(transcript.exchanges) - exchange.ordinal


def _age_words(calls: int) -> str:
    return "the newest call" if calls == 0 else "1 call ago" if calls == 1 else f"{calls} calls ago"


def _outcome_words(outcome: Outcome) -> str:
    if outcome.status == "ok":
        return "ended without an error"
    if outcome.status == "failed":
        return f"failed ({outcome.detail})" if outcome.detail else "failed"
    return "ended; the result does not say how"
