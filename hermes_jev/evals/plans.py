"""Shortening by a plan: what happens to each result, carried out on the messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from .case import Case
from .texts import calls_of, text_of

Way = Literal["stub", "truncate", "pair"]


class Step(NamedTuple):
    """`stub` leaves a placeholder, `truncate` the first `keep` characters and a placeholder, `pair` takes call and
    result out of the list."""

    way: Way
    keep: int = 0


STUB = Step("stub")
PAIR = Step("pair")
Plan = Mapping[int, Step]
"""Place of a result → what happens to it; results that are not named stay."""

_SLACK = 60
"""A result that is longer than what stays by no more than this is left alone."""


def placeholder(size: int) -> str:
    """What stands where a result of `size` characters was; as long as a placeholder with a pointer is."""
    return f"[the result of {size} characters was taken out; it is stored]"


def gain(case: Case, place: int, step: Step) -> int:
    """Characters that the step takes away; what it would not shorten it leaves."""
    exchange = case.results[place]
    if step.way == "pair":
        return exchange.size + len(exchange.arguments) + len(exchange.tool)
    if step.way == "stub":
        return exchange.size - len(placeholder(exchange.size))
    left = step.keep + 1 + len(placeholder(exchange.size))
    return exchange.size - left if exchange.size > step.keep + _SLACK else 0


def carry_out(case: Case, plan: Plan) -> list[Any]:
    """The prefix as the plan leaves it; untouched messages are the same objects."""
    gone = {(case.results[p].call_at, case.results[p].slot) for p, step in plan.items() if step.way == "pair"}
    after: list[Any] = []
    for at, message in enumerate(case.prefix):
        step = plan.get(at)
        if step is not None and step.way == "pair":
            continue
        if step is not None:
            if gain(case, at, step) > 0:
                message = {**message, "content": _left(text_of(message), step)}
        elif gone and (dropped := {slot for slot in range(len(calls_of(message))) if (at, slot) in gone}):
            kept = [call for slot, call in enumerate(message["tool_calls"]) if slot not in dropped]
            if not kept and not text_of(message).strip():
                continue
            rest = {key: value for key, value in message.items() if key != "tool_calls"}
            message = {**rest, "tool_calls": kept} if kept else rest
        after.append(message)
    return after


def _left(text: str, step: Step) -> str:
    return f"{text[: step.keep]}\n{placeholder(len(text))}" if step.keep else placeholder(len(text))
