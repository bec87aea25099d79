"""The checks on what was sent to the scorer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from case_expand import changed_slots
from case_judge import Sent
from case_messages import calls, strings, text_of
from case_run import Run, Step
from case_words import CaseFailed, check, need

GOAL_KEYS = ("goal", "task", "focus")


def _sent(run: Run) -> list[Sent]:
    """All requests; there must be some."""
    need(bool(run.judge.requests), "the scorer was never asked")
    return run.judge.requests


def _by_step(run: Run) -> Iterator[tuple[int, Step, Sent]]:
    """(number of the step, step, request) of every request that a step sent."""
    requests = run.judge.requests
    for number, step in enumerate(run.steps):
        yield from ((number, step, requests[at]) for at in step.requests)


def _asked(step: Step, request: Sent) -> set[str | None]:
    """Ids of the calls that a request asks about."""
    return {step.calls[ordinal - 1] for ordinal in request.ordinals if ordinal <= len(step.calls)}


def _said(request: Sent) -> str:
    """Everything a request says: each string in its body, JSON inside strings decoded."""
    return "\n".join(strings(request.body))


@check
def scorer_calls(run: Run, max: int | None = None, min: int | None = None) -> None:
    _in_range(len(run.judge.requests), min, max)


@check
def scorer_calls_in_step(run: Run, step: int, max: int | None = None, min: int | None = None) -> None:
    _in_range(len(run.steps[step].requests), min, max)


def _in_range(count: int, least: int | None, most: int | None) -> None:
    need((least, most) != (None, None), "the check names no number")
    need(least is None or count >= least, f"{count} requests")
    need(most is None or count <= most, f"{count} requests")


@check
def max_concurrent_requests(run: Run, max: int) -> None:
    found = run.judge.max_concurrent
    need(found <= max, f"{found} requests at the same time")


@check
def max_request_bytes(run: Run, max: int) -> None:
    largest = len(sorted(_sent(run), key=lambda request: len(request.raw))[-1].raw)
    need(largest <= max, f"a request has {largest} bytes")


@check
def scorer_request_contains(run: Run, text: str) -> None:
    need(any(text in _said(request) for request in _sent(run)), f"no request says {text!r}")


@check
def scorer_request_not_contains(run: Run, text: str) -> None:
    for request in _sent(run):
        raw = request.raw.decode("utf-8", "replace")
        need(text not in raw and text not in _said(request), f"a request says {text!r}")


@check
def every_scorer_request_contains(run: Run, text: str) -> None:
    for number, request in enumerate(_sent(run)):
        need(text in _said(request), f"request {number} does not say {text!r}")


@check
def scorer_goal_not(run: Run, text: str) -> None:
    for number, request in enumerate(_sent(run)):
        state = request.state if isinstance(request.state, dict) else {}
        goals = [state[key] for key in GOAL_KEYS if key in state]
        need(any(goals), f"request {number} names no goal: {sorted(state)}")
        need(text not in "\n".join(strings(goals)), f"the goal of request {number} says {text!r}")


@check
def scorer_request_is_valid_utf8(run: Run) -> None:
    for number, request in enumerate(_sent(run)):
        try:
            json.loads(request.raw.decode("utf-8"))
            _said(request).encode("utf-8")
        except ValueError as error:
            raise CaseFailed(f"request {number} is not valid UTF-8 JSON: {error}") from error


@check
def not_asked_about(run: Run, tool_call_id: str) -> None:
    _sent(run)
    for number, step, request in _by_step(run):
        need(tool_call_id not in _asked(step, request), f"step {number} asks about {tool_call_id}")


@check
def not_scored_again(run: Run, tool_call_id: str | None = None, ids: list[str] | None = None) -> None:
    """Once asked about and answered, never asked about in a later step."""
    wanted = {tool_call_id} if tool_call_id else set(ids or [])
    first: dict[Any, int] = {}
    for number, step, request in _by_step(run):
        for call_id in _asked(step, request):
            if not wanted or call_id in wanted:
                seen = first.setdefault(call_id, number)
                need(seen == number, f"{call_id} was asked about in step {seen} and again in step {number}")
    need(bool(first), "none of the calls was ever asked about")


@check
def every_shrunk_call_was_described_in_its_request(run: Run) -> None:
    """Whoever asked about a call also described it: its tool, and some of its own text."""
    found = changed_slots(run)
    need(bool(found), "nothing was shortened")
    described = {
        step.calls[ordinal - 1]: request.item(ordinal)
        for _, step, request in _by_step(run)
        for ordinal in request.ordinals
        if ordinal <= len(step.calls) and request.item(ordinal) is not None
    }
    tools = {call.id: call.name for call in calls(run.baseline)}
    for slot in found:
        said = "\n".join(strings(described.get(slot.id)))
        need(bool(said), f"{slot.id} was cut and never described")
        need(tools[slot.id] in said, f"{slot.id}: its tool is not named")
        need(text_of(slot.was).strip()[:20] in said, f"{slot.id}: nothing of its text was shown")


@check
def scorer_request_bytes_for_call(run: Run, tool_call_id: str, max: int) -> None:
    seen = 0
    for number, step, request in _by_step(run):
        for ordinal in request.ordinals:
            if ordinal <= len(step.calls) and step.calls[ordinal - 1] == tool_call_id:
                seen += 1
                size = len(json.dumps(request.item(ordinal), ensure_ascii=False).encode("utf-8", "replace"))
                need(request.item(ordinal) is not None, f"step {number} asks about {tool_call_id} undescribed")
                need(size <= max, f"step {number}: {size} bytes describe {tool_call_id}")
    need(seen > 0, f"{tool_call_id} was never asked about")
