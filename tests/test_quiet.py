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
TRIGGER = 60_000
URGENT = 85_000


def after_nothing(used: int, *, real: bool = False, calls: int | None = None, before: Quiet | None = None) -> Quiet:
    """The state after a pass that changed nothing and that a number of this kind led to."""
    quiet = before or Quiet()
    if real:
        quiet.response(used, TRIGGER)
    quiet.holds(used, STEP, urgent=False)
    return quiet.after_nothing(calls, urgent=False)


def holds(quiet: Quiet, used: int) -> bool:
    return quiet.holds(used, STEP, urgent=used >= URGENT)


def test_without_a_pass_it_is_never_quiet() -> None:
    quiet = Quiet()

    assert [holds(quiet, used) for used in (0, 60_000, 60_000)] == [False] * 3


@pytest.mark.parametrize(
    ("used", "quiet"), [(60_000, True), (64_999, True), (65_000, False), (90_000, False), (10_000, True), (0, False)]
)
def test_it_is_quiet_until_the_prompt_has_grown(used: int, quiet: bool) -> None:
    assert holds(after_nothing(60_000), used) is quiet


def test_growth_in_small_steps_adds_up() -> None:
    quiet = after_nothing(60_000)

    assert [holds(quiet, used) for used in range(61_000, 67_000, 1_000)] == [True] * 4 + [False] * 2


def test_a_rough_number_is_compared_with_a_rough_one_and_a_real_with_a_real_one() -> None:
    """The provider counts 20,000 tokens fewer than the host's rough estimate."""
    quiet = after_nothing(80_000)

    quiet.response(60_000, TRIGGER)
    assert holds(quiet, 60_000)
    assert holds(quiet, 82_000)
    quiet.response(64_999, TRIGGER)
    assert holds(quiet, 64_999)
    quiet.response(65_000, TRIGGER)
    assert not holds(quiet, 65_000)
    assert not holds(quiet, 84_999 + 1)


def test_the_first_number_of_a_kind_is_what_growth_is_measured_from() -> None:
    quiet = after_nothing(60_000, real=True)

    assert holds(quiet, 70_000)
    assert holds(quiet, 74_999)
    assert not holds(quiet, 75_000)


@pytest.mark.parametrize(
    ("calls", "responses", "quiet"), [(2, 1, True), (2, 2, False), (0, 0, False), (None, 50, True)]
)
def test_it_ends_when_new_results_could_be_worth_a_pass(calls: int | None, responses: int, quiet: bool) -> None:
    state = after_nothing(60_000, calls=calls)
    for _ in range(responses):
        state.response(0, TRIGGER)

    assert holds(state, 60_000) is quiet


def test_growth_alone_does_not_bring_known_results_nearer() -> None:
    quiet = after_nothing(60_000, calls=2)
    quiet.response(0, TRIGGER)

    assert holds(quiet, 80_000)
    assert not holds(quiet, URGENT)


def test_where_no_response_is_heard_of_growth_is_all_there_is() -> None:
    assert not holds(after_nothing(60_000, calls=2), 65_000)


def test_a_second_pass_in_a_row_that_changed_nothing_leaves_only_urgent_pressure() -> None:
    """The host allows a turn three passes: one is left for the window that is really full."""
    quiet = after_nothing(66_000, calls=1, before=after_nothing(60_000, calls=1))
    quiet.response(0, TRIGGER)

    assert all(holds(quiet, used) for used in range(66_000, URGENT, 1_000))
    assert not holds(quiet, URGENT)


def test_at_urgent_pressure_growth_counts_again() -> None:
    quiet = Quiet()
    for used in (60_000, 66_000):
        quiet = after_nothing(used, before=quiet)
    assert not holds(quiet, URGENT)

    quiet = quiet.after_nothing(None, urgent=True)

    assert holds(quiet, URGENT + STEP - 1)
    assert not holds(quiet, URGENT + STEP)


def test_a_count_under_the_trigger_starts_anew() -> None:
    quiet = after_nothing(66_000, before=after_nothing(60_000))

    quiet.response(TRIGGER - 1, TRIGGER)

    assert not holds(quiet, 60_000)
    assert quiet.idle == 0


def test_after_a_pass_that_changed_the_list_the_next_number_is_where_growth_starts() -> None:
    quiet = Quiet().after_change(None, urgent=False, enough=True)

    assert holds(quiet, 62_000)
    assert holds(quiet, 66_999)
    assert not holds(quiet, 67_000)


def test_urgent_pressure_after_a_pass_without_it_is_not_waited_out() -> None:
    assert not holds(Quiet().after_change(None, urgent=False, enough=True), URGENT)
    assert holds(Quiet().after_change(None, urgent=True, enough=True), URGENT)


def test_a_pass_that_left_the_window_over_the_trigger_counts_as_one_for_nothing() -> None:
    quiet = after_nothing(60_000).after_change(None, urgent=False, enough=False)

    assert all(holds(quiet, used) for used in (62_000, 70_000, URGENT - 1))
    assert not holds(quiet, URGENT)
    assert not holds(quiet.after_change(None, urgent=False, enough=True), 0)


def test_it_is_plain_data() -> None:
    quiet = after_nothing(60_000, calls=2)

    assert copy.deepcopy(quiet) == quiet


# --- after how many calls -----------------------------------------------------------------------------------------


def wait(messages: list[Message], window: int, settings: Settings | None = None) -> int | None:
    chosen = settings or Settings()
    transcript, cuts = Transcript.parse(messages), Cuts(chosen)
    where = Pressure.of(transcript, window, chosen, used=round(0.7 * window))
    return calls_until_worth(survey(transcript, chosen, cuts), len(transcript.completed), where, cuts)


def test_one_large_pinned_result_is_worth_a_pass_after_one_call() -> None:
    assert wait([user("go"), *pair(1, text(60_000)), *pair(2, "x"), *pair(3, "x")], 100_000) == 1


def test_small_pinned_results_add_up() -> None:
    assert wait(session(3, 24_000), 100_000) == 2


def test_with_fewer_calls_than_are_pinned_it_takes_the_more() -> None:
    assert wait([user("go"), *pair(1, text(80_000))], 100_000) == 3


@pytest.mark.parametrize("messages", [[user("go")], session(3, 1_000), session(3, 2_000)])
def test_what_is_pinned_and_small_never_is(messages: list[Message]) -> None:
    assert wait(messages, 1_000_000) is None


def test_instructions_never_become_worth_a_pass() -> None:
    assert wait([user("go"), *pair(1, text(90_000), "memory"), assistant("done")], 100_000) is None
