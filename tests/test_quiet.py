"""How long the host is left alone after a pass that changed nothing."""

from __future__ import annotations

import copy

import pytest
from builders import Message, assistant, pair, session, text, user

from hermes_jev import Settings
from hermes_jev.policy import Cuts, Pressure
from hermes_jev.quiet import Quiet
from hermes_jev.survey import calls_until_worth, survey
from hermes_jev.transcript import Transcript

STEP = 5_000


def after_nothing(used: int, *, real: bool = False, calls: int | None = None) -> Quiet:
    """The state after a pass that changed nothing and that a number of this kind led to."""
    quiet = Quiet()
    if real:
        quiet.counted()
    quiet.holds(used, STEP)
    return quiet.after_nothing(calls)


def test_without_a_pass_it_is_never_quiet() -> None:
    quiet = Quiet()

    assert [quiet.holds(used, STEP) for used in (0, 60_000, 60_000)] == [False] * 3


@pytest.mark.parametrize(
    ("used", "quiet"), [(60_000, True), (64_999, True), (65_000, False), (90_000, False), (10_000, True), (0, False)]
)
def test_it_is_quiet_until_the_prompt_has_grown(used: int, quiet: bool) -> None:
    assert after_nothing(60_000).holds(used, STEP) is quiet


def test_growth_in_small_steps_adds_up() -> None:
    quiet = after_nothing(60_000)

    assert [quiet.holds(used, STEP) for used in range(61_000, 67_000, 1_000)] == [True] * 4 + [False] * 2


def test_a_rough_number_is_compared_with_a_rough_one_and_a_real_with_a_real_one() -> None:
    """The provider counts 20,000 tokens fewer than the host's rough estimate."""
    quiet = after_nothing(80_000)

    quiet.counted()
    assert quiet.holds(60_000, STEP)
    assert quiet.holds(82_000, STEP)
    quiet.counted()
    assert quiet.holds(64_999, STEP)
    quiet.counted()
    assert not quiet.holds(65_000, STEP)
    assert not quiet.holds(85_000, STEP)


def test_the_first_number_of_a_kind_is_what_growth_is_measured_from() -> None:
    quiet = after_nothing(60_000, real=True)

    assert quiet.holds(90_000, STEP)
    assert quiet.holds(94_999, STEP)
    assert not quiet.holds(95_000, STEP)


@pytest.mark.parametrize(
    ("calls", "responses", "quiet"), [(2, 1, True), (2, 2, False), (0, 0, False), (None, 50, True)]
)
def test_it_ends_when_new_results_could_be_worth_a_pass(calls: int | None, responses: int, quiet: bool) -> None:
    state = after_nothing(60_000, calls=calls)
    for _ in range(responses):
        state.response()

    assert state.holds(60_000, STEP) is quiet


def test_another_pass_that_changed_nothing_starts_anew() -> None:
    quiet = after_nothing(60_000, calls=2)
    quiet.response()
    quiet.response()
    assert not quiet.holds(66_000, STEP)

    again = quiet.after_nothing(3)

    assert again.responses == 0
    assert again.holds(66_000, STEP)
    assert not again.holds(71_000, STEP)


def test_it_is_plain_data() -> None:
    quiet = after_nothing(60_000, calls=2)

    assert copy.deepcopy(quiet) == quiet


# --- after how many calls -----------------------------------------------------------------------------------------


def wait(messages: list[Message], window: int, settings: Settings | None = None) -> int | None:
    chosen = settings or Settings()
    transcript, cuts = Transcript.parse(messages), Cuts(chosen)
    where = Pressure.of(transcript, window, chosen, used=round(0.7 * window))
    return calls_until_worth(survey(transcript, chosen, cuts), where, cuts)


def test_one_large_pinned_result_is_worth_a_pass_after_one_call() -> None:
    assert wait([user("go"), *pair(1, text(60_000)), *pair(2, "x"), *pair(3, "x")], 100_000) == 1


def test_small_pinned_results_add_up() -> None:
    assert wait(session(3, 8_000), 100_000) == 2


@pytest.mark.parametrize("messages", [[user("go")], session(3, 1_000), session(3, 2_000)])
def test_what_is_pinned_and_small_never_is(messages: list[Message]) -> None:
    assert wait(messages, 1_000_000) is None


def test_instructions_never_become_worth_a_pass() -> None:
    assert wait([user("go"), *pair(1, text(90_000), "memory"), assistant("done")], 100_000) is None
