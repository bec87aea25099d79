"""When a pass answers a refusal of the provider, and when not."""

from __future__ import annotations

from typing import Any

import pytest
from builders import assistant, call, pair, user

from hermes_jev.told import Told

WAITING: list[Any] = [user("go"), *pair(1, "out")]
ANSWERED: list[Any] = [*WAITING, assistant("done")]


def begin(told: Told, tokens: int, counted: int = 0, messages: Any = WAITING, announced: bool = True) -> bool:
    return told.begin_pass(tokens, counted, messages, turns_announced=announced)


def after(due: bool, asked: int) -> Told:
    told = Told()
    told.say(due, asked)
    return told


def test_a_pass_nobody_asked_about_is_no_refusal() -> None:
    assert begin(Told(), 50_000) is False


@pytest.mark.parametrize("tokens", [46_000, 0])
def test_a_pass_that_was_due_is_none(tokens: int) -> None:
    assert begin(after(True, 46_000), tokens) is False


def test_a_pass_with_the_providers_own_count_is_none() -> None:
    assert begin(after(True, 46_000), 45_000, counted=45_000) is False


def test_a_pass_although_none_was_due_is_one() -> None:
    assert begin(after(False, 30_000), 28_000) is True


def test_a_due_pass_that_the_host_skipped_is_one_later() -> None:
    """The host was told, sent the prompt all the same, and was refused: it comes with a count of the messages alone."""
    assert begin(after(True, 46_000), 43_000, counted=45_500) is True


def test_a_second_pass_without_a_question_is_one() -> None:
    told = after(True, 46_000)
    begin(told, 46_000)

    assert begin(told, 47_000) is True
    told.forget()
    assert begin(told, 47_000) is False


def test_after_an_answer_there_is_nothing_to_refuse() -> None:
    assert begin(after(False, 30_000), 28_000, messages=ANSWERED) is False
    open_call = [*WAITING, assistant("and", call("c9"))]
    assert begin(after(False, 30_000), 28_000, messages=open_call) is True


def test_a_compaction_by_hand_after_an_interrupted_request_is_none() -> None:
    """Hosts that do not force it count the tools as well, so more than was asked about."""
    assert begin(after(False, 30_000), 30_900, announced=False) is False
    assert begin(after(False, 30_000), 28_000, announced=False) is True
    assert begin(after(False, 30_000), 30_900, announced=True) is True


@pytest.mark.parametrize("odd", [[], None, [5], "text", [None]])
def test_whatever_the_messages_are(odd: Any) -> None:
    assert begin(after(False, 30_000), 1, messages=odd) in (True, False)
