"""When a failing service is left alone, and for how long: rules without a clock of their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_jev.judge.circuit import FAILURES, LONGEST_WAIT_S, OPEN_S, Standing, admission, after, claimed

NOW = 1_800_000_000.0


def failed(times: int, now: float = NOW) -> Standing:
    standing = Standing()
    for _ in range(times):
        standing = after(standing, now, False, 0.0)
    return standing


def test_the_numbers() -> None:
    assert (FAILURES, OPEN_S) == (3, 300.0)


def test_three_failures_in_a_row_open_it_for_five_minutes_and_then_one_may_try() -> None:
    assert [admission(failed(times), NOW) for times in range(5)] == ["ask", "ask", "ask", "open", "open"]
    assert admission(failed(3), NOW + 299.9) == "open"
    assert admission(failed(3), NOW + 300) == "try"


def test_an_answer_in_between_begins_the_count_anew() -> None:
    assert after(failed(2), NOW, True, 0.0) == Standing()
    assert admission(after(after(failed(2), NOW, True, 0.0), NOW, False, 0.0), NOW) == "ask"


def test_the_try_decides() -> None:
    later = NOW + OPEN_S
    tried = claimed(failed(3), later)

    assert admission(tried, later) == "open"
    assert admission(after(tried, later + 1, True, 0.0), later + 1) == "ask"
    again = after(tried, later + 1, False, 0.0)
    assert [admission(again, later + 1 + wait) for wait in (0, 299, 300)] == ["open", "open", "try"]


def test_a_try_that_nobody_reports_about_is_followed_by_another() -> None:
    tried = claimed(failed(3), NOW + OPEN_S)

    assert admission(tried, NOW + 2 * OPEN_S) == "try"


@pytest.mark.parametrize("standing", [Standing(), failed(2), failed(3)])
def test_only_a_due_try_is_claimed(standing: Standing) -> None:
    assert claimed(standing, NOW) == standing


def test_a_pass_that_says_nothing_changes_nothing() -> None:
    assert after(failed(2), NOW, None, 0.0) == failed(2)


@pytest.mark.parametrize("answered", [True, False, None])
def test_a_wait_is_kept(answered: bool | None) -> None:
    standing = after(Standing(), NOW, answered, 60.0)

    assert [admission(standing, NOW + wait) for wait in (0, 59.9, 60)] == ["wait", "wait", "ask"]


def test_a_wait_is_no_longer_than_an_hour() -> None:
    standing = after(Standing(), NOW, False, 1e300)

    assert admission(standing, NOW + LONGEST_WAIT_S - 1) == "wait"
    assert admission(standing, NOW + LONGEST_WAIT_S) == "ask"


def test_an_open_circuit_is_named_before_a_wait() -> None:
    """While it is open the embedded judge answers, and a wait must not take that away."""
    standing = after(failed(2), NOW, False, 600.0)

    assert admission(standing, NOW) == "open"
    assert admission(standing, NOW + OPEN_S) == "wait"
    assert claimed(standing, NOW + OPEN_S) == standing
    assert admission(standing, NOW + 600) == "try"


@pytest.mark.parametrize("standing", [failed(3), after(Standing(), NOW, False, 3_000.0)], ids=["open", "wait"])
def test_a_clock_that_was_set_back_shuts_nothing_out(standing: Standing) -> None:
    assert admission(standing, NOW - 1) in ("try", "ask")
    assert admission(standing, 0.0) in ("try", "ask")


@given(
    st.lists(st.tuples(st.sampled_from([True, False, None]), st.floats(0, 1e9), st.floats(-1e6, 1e6)), max_size=12),
    st.floats(-1e6, 1e6),
)
def test_whatever_happened_it_may_be_asked_within_an_hour_and_five_minutes(
    events: list[tuple[bool | None, float, float]], moved: float
) -> None:
    now, standing = NOW, Standing()
    for answered, wait_s, step in events:
        now += step
        standing = after(claimed(standing, now), now, answered, wait_s)
    now += moved
    soonest = next(
        (wait for wait in (0, OPEN_S, LONGEST_WAIT_S, LONGEST_WAIT_S + OPEN_S) if may_ask(standing, now + wait)), None
    )

    assert soonest is not None
    assert 0 <= standing.failures <= FAILURES + 1


def may_ask(standing: Standing, now: float) -> bool:
    return admission(standing, now) in ("ask", "try")
