"""From verdicts to decisions: thresholds, the judge without a signal, and the guard's arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from builders import assistant, exchanges, pair, session, text, user
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev.calibration import fixed
from hermes_jev.policy import (
    CLEARLY_SHORTER,
    FLAT_MINIMUM,
    Action,
    Cuts,
    Pressure,
    Trigger,
    Verdict,
    decide,
    is_flat,
    should_compact,
)
from hermes_jev.settings import Settings
from hermes_jev.transcript import Exchange, Transcript

DEFAULTS = Settings()


def verdict(call: float | None, output: float | None) -> Verdict:
    return Verdict(call, output, "whole", "scripted")


def pressure(
    window: int | None, used: int = 0, estimated: int = 0, settings: Settings = DEFAULTS, **more: Any
) -> Pressure:
    return Pressure(window, used, estimated or used, settings, **more)


def decided(
    candidates: tuple[Exchange, ...], verdicts: Mapping[int, Verdict], where: Pressure | None = None
) -> list[tuple[Action, str]]:
    chosen = where or pressure(None)
    found = decide(candidates, verdicts, chosen, Cuts(chosen.settings))
    assert [decision.exchange.ordinal for decision in found] == [exchange.ordinal for exchange in candidates]
    return [(decision.action, decision.reason) for decision in found]


# --- when -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "window", "reserve", "expected"),
    [
        (0, 100_000, 0, "no"),
        (59_999, 100_000, 0, "no"),
        (60_000, 100_000, 0, "compact"),
        (84_999, 100_000, 0, "compact"),
        (85_000, 100_000, 0, "urgent"),
        (500_000, 100_000, 0, "urgent"),
        (48_000, 100_000, 20_000, "compact"),
        (47_999, 100_000, 20_000, "no"),
        (68_000, 100_000, 20_000, "urgent"),
        (29_999, 100_000, 100_000, "no"),
        (30_000, 100_000, 200_000, "compact"),
        (5, 0, 0, "no"),
        (5, -1, 0, "no"),
        (-1, 100_000, 0, "no"),
        (0, 100_000, 200_000, "no"),
    ],
)
def test_the_trigger_is_arithmetic(used: int, window: int, reserve: int, expected: Trigger) -> None:
    assert should_compact(used, window, Settings(reserve_output_tokens=reserve)) == expected


def test_trigger_and_urgent_may_be_one() -> None:
    settings = Settings(trigger_percent=0.85)

    assert [should_compact(used, 100, settings) for used in (84, 85)] == ["no", "urgent"]


# --- pressure -------------------------------------------------------------------------------------------------------


def of(window: int | None, settings: Settings = DEFAULTS, **more: Any) -> Pressure:
    return Pressure.of(Transcript.parse(session(10)), window, settings, **more)


ESTIMATED = Transcript.parse(session(10)).tokens


@pytest.mark.parametrize("window", [None, 0, -5])
def test_an_unknown_window_has_no_target_no_guard_and_no_ladder(window: int | None) -> None:
    where = of(window, overflow=True)

    assert where.window is None
    assert not where.overflow
    assert not where.urgent
    assert not where.at_rest
    assert where.least_gain == 0.0
    assert not where.is_urgent(10**9)


@pytest.mark.parametrize(("used", "expected"), [(None, ESTIMATED), (0, ESTIMATED), (-1, ESTIMATED), (77_000, 77_000)])
def test_without_a_count_the_estimate_counts(used: int | None, expected: int) -> None:
    where = of(100_000, used=used)

    assert (where.used, where.estimated) == (expected, ESTIMATED)


def test_output_room_is_taken_off_the_window_first() -> None:
    where = of(100_000, Settings(reserve_output_tokens=20_000), used=68_000)

    assert where.window == 80_000
    assert (where.trigger, where.target, where.urgent) == (48_000, 24_000, True)
    assert of(100_000, Settings(reserve_output_tokens=300_000), used=5).window == 50_000


@pytest.mark.parametrize(
    ("used", "given", "overflow", "counted"),
    [
        (100_000, False, False, 100_000),
        (100_001, False, True, 100_001),
        (5_000, True, True, 100_000),
        (120_000, True, True, 120_000),
    ],
)
def test_an_overflow_means_at_least_a_full_window(used: int, given: bool, overflow: bool, counted: int) -> None:
    where = of(100_000, used=used, overflow=given)

    assert (where.overflow, where.used) == (overflow, counted)
    assert where.urgent is (counted >= 85_000)


@pytest.mark.parametrize(
    ("used", "more", "at_rest"),
    [
        (30_000, {}, True),
        (30_001, {}, False),
        (1_000, {"forced": True}, False),
        (1_000, {"overflow": True}, False),
    ],
)
def test_at_or_under_the_target_there_is_nothing_to_do(used: int, more: dict[str, Any], at_rest: bool) -> None:
    assert pressure(100_000, used, **more).at_rest is at_rest


@pytest.mark.parametrize(
    ("used", "more", "least"),
    [
        (70_000, {}, 5_000),
        (84_999, {}, 5_000),
        (85_000, {}, 0),
        (70_000, {"forced": True}, 0),
        (70_000, {"overflow": True}, 0),
    ],
)
def test_the_guard(used: int, more: dict[str, Any], least: float) -> None:
    assert pressure(100_000, used, **more).least_gain == least


@pytest.mark.parametrize(
    ("used", "estimated", "freed", "expected"),
    [
        (60_000, 60_000, 10_000, 50_000),
        (80_000, 60_000, 10_000, 70_000),
        (30_000, 60_000, 10_000, 25_000),
        (60_000, 60_000, 60_000, 0),
        (500, 0, 0, 500),
    ],
    ids=["equal", "schemas beside the messages", "the estimator counts too much", "everything", "no messages"],
)
def test_what_is_left_after_a_pass(used: int, estimated: int, freed: int, expected: float) -> None:
    assert Pressure(100_000, used, estimated, DEFAULTS).after(freed) == pytest.approx(expected)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.integers(1, 10**6), st.integers(0, 10**6), st.data())
def test_freeing_more_never_leaves_more(used: int, estimated: int, data: st.DataObject) -> None:
    less = data.draw(st.integers(0, estimated))
    more = data.draw(st.integers(less, estimated))
    where = Pressure(100_000, used, estimated, DEFAULTS)

    assert where.after(0) == pytest.approx(used)
    assert -0.001 <= where.after(more) <= where.after(less) + 0.001


# --- one cut --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["truncate", "remove"])
@pytest.mark.parametrize("size", [1_501, 2_000, 50_000])
def test_a_cut_is_clearly_shorter_and_settled_by_its_size(action: Action, size: int) -> None:
    (exchange,) = exchanges(text(size))
    cuts = Cuts(DEFAULTS)

    left = cuts.render(exchange, action, "r-abcdefghij")

    assert len(left) <= DEFAULTS.pin_max_chars
    assert size - len(left) >= CLEARLY_SHORTER
    gain = cuts.gain(exchange, action)
    assert gain is not None
    assert gain > 0
    assert cuts.gain(exchange, "keep") == 0


def test_a_cut_that_would_not_be_clearly_shorter_is_not_possible() -> None:
    (exchange,) = exchanges(text(560))
    cuts = Cuts(Settings(pin_max_chars=550, excerpt_chars=300))

    assert cuts.gain(exchange, "truncate") is None
    assert cuts.gain(exchange, "remove") is not None
    assert cuts.possible(exchange, "truncate") == "remove"
    assert cuts.best_gain(exchange) == cuts.gain(exchange, "remove")


def test_words_of_the_user_that_are_too_long_keep_the_result_whole() -> None:
    words = "\n\n[OUT-OF-BAND USER MESSAGE]\n" + text(1_600) + "\n[/OUT-OF-BAND USER MESSAGE]"
    (exchange,) = exchanges(text(9_000) + words)
    cuts = Cuts(DEFAULTS)

    assert cuts.best_gain(exchange) is None
    assert cuts.possible(exchange, "remove") == "keep"
    assert decided((exchange,), {1: verdict(0.1, 0.1)}) == [("keep", "cannot be shortened")]


def test_words_of_the_user_that_fit_beside_a_notice_only_are_kept_that_way() -> None:
    words = "\n\n[OUT-OF-BAND USER MESSAGE]\n" + text(1_100) + "\n[/OUT-OF-BAND USER MESSAGE]"
    (exchange,) = exchanges(text(9_000) + words)

    assert Cuts(DEFAULTS).possible(exchange, "truncate") == "remove"


@pytest.mark.parametrize("blank", ["\n" * 5_000, " " * 5_000, "\x00" * 5_000], ids=["lines", "blanks", "NUL"])
def test_a_cut_that_frees_no_tokens_is_not_made(blank: str) -> None:
    """A run of blank characters costs a prompt fewer tokens than the notice in its place."""
    (exchange,) = exchanges(blank)
    cuts = Cuts(DEFAULTS)

    action, _ = decided((exchange,), {1: verdict(0.1, 0.1)})[0]

    assert action == "keep" or (cuts.gain(exchange, action) or 0) > 0


# --- thresholds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "output", "expected"),
    [
        (0.1, 0.1, ("remove", "call and output not needed")),
        (0.9, 0.1, ("truncate", "output not needed")),
        (0.1, 0.9, ("keep", "output needed")),
        (0.9, 0.9, ("keep", "output needed")),
        (0.1, 0.5, ("keep", "output needed")),
        (0.1, 0.499999, ("remove", "call and output not needed")),
        (0.5, 0.1, ("truncate", "output not needed")),
        (0.499999, 0.1, ("remove", "call and output not needed")),
        (0.0, 0.0, ("remove", "call and output not needed")),
        (1.0, 1.0, ("keep", "output needed")),
        (None, 0.1, ("truncate", "output not needed")),
        (None, 0.5, ("keep", "output needed")),
        (0.1, None, ("keep", "no answer")),
        (0.9, None, ("keep", "no answer")),
        (None, None, ("keep", "no answer")),
    ],
)
def test_two_questions_three_actions(call: float | None, output: float | None, expected: tuple[Action, str]) -> None:
    assert decided(exchanges(text(4_000)), {1: verdict(call, output)}) == [expected]


def test_without_a_verdict_a_result_is_kept() -> None:
    assert decided(exchanges(text(4_000)), {}) == [("keep", "no answer")]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(output_threshold=0.2), "keep"),
        (Settings(output_threshold=0.200001), "truncate"),
        (Settings(call_threshold=0.7), "truncate"),
        (Settings(call_threshold=0.700001), "remove"),
        (Settings(output_threshold=0), "keep"),
        (Settings(call_threshold=0), "truncate"),
        (Settings(output_threshold=1, call_threshold=1), "remove"),
    ],
)
def test_thresholds_are_settings(settings: Settings, expected: Action) -> None:
    assert decided(exchanges(text(4_000)), {1: verdict(0.7, 0.2)}, pressure(None, settings=settings))[0][0] == expected


# --- the judge without a signal -------------------------------------------------------------------------------------


def many(count: int, size: int = 4_000) -> tuple[Exchange, ...]:
    return exchanges(*(text(size, f"n{number}") for number in range(count)))


def flat(count: int, output: float = 0.1) -> dict[int, Verdict]:
    return {ordinal: verdict(0.2, output) for ordinal in range(1, count + 1)}


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (flat(FLAT_MINIMUM), True),
        (flat(FLAT_MINIMUM - 1), False),
        ({**flat(20), 3: verdict(0.5, 0.1)}, False),
        ({**flat(20), 3: verdict(0.1, 0.5)}, False),
        ({**flat(20), 3: verdict(0.49, 0.49)}, True),
        ({**flat(11), 12: verdict(0.1, None)}, False),
        ({**flat(11), 12: verdict(None, 0.1)}, False),
        ({**flat(12), 13: verdict(None, None)}, True),
        ({}, False),
    ],
)
def test_when_a_judge_says_nothing(verdicts: dict[int, Verdict], expected: bool) -> None:
    assert FLAT_MINIMUM == 12
    assert is_flat(verdicts, fixed(DEFAULTS)) is expected


def test_eleven_are_cut_by_threshold_and_twelve_by_rank() -> None:
    for count, kept in ((11, 0), (12, 12)):
        actions = decided(many(count), flat(count), pressure(1_000_000, 300_000))
        assert [action for action, _ in actions].count("keep") == kept
    assert set(actions) == {("keep", "target reached")}


def test_a_judge_without_a_signal_stops_at_the_target() -> None:
    candidates, count = many(20), 20
    each = Cuts(DEFAULTS).gain(candidates[0], "remove") or 0
    window = 100_000
    used = round(0.3 * window + 5.5 * each)

    actions = decided(candidates, flat(count), pressure(window, used))

    assert [action for action, _ in actions].count("remove") == 6
    assert {reason for action, reason in actions if action == "keep"} == {"target reached"}


@pytest.mark.parametrize("where", [pressure(None), pressure(100_000, 40_000, forced=True)], ids=["no window", "forced"])
def test_without_a_target_the_thresholds_alone_decide(where: Pressure) -> None:
    assert {action for action, _ in decided(many(20), flat(20), where)} == {"remove"}


def test_the_least_worth_per_character_leaves_first() -> None:
    candidates = exchanges(*(text(2_000 if n < 10 else 30_000, f"n{n}") for n in range(20)))
    where = pressure(1_000_000, 300_001)

    actions = decided(candidates, flat(20), where)

    assert [at for at, (action, _) in enumerate(actions) if action != "keep"] == [10]
    doubtful = {**flat(20), 11: verdict(0.2, 0.45)}
    actions = decided(candidates, doubtful, where)
    assert [at for at, (action, _) in enumerate(actions) if action != "keep"] == [11]


def test_what_has_no_answer_is_kept_also_from_a_judge_without_a_signal() -> None:
    verdicts = flat(20)
    del verdicts[4]

    actions = decided(many(20), verdicts, pressure(1_000_000, 900_000))

    assert actions[3] == ("keep", "no answer")
    assert [action for action, _ in actions].count("remove") == 19


def test_a_pressure_reads_the_tokens_of_its_transcript() -> None:
    messages = [user("go"), *pair(1, text(9_000)), assistant("done")]

    assert Pressure.of(Transcript.parse(messages), 100_000, DEFAULTS).estimated == Transcript.parse(messages).tokens


def test_a_refusal_is_spread_over_the_messages_so_that_a_second_one_finds_something() -> None:
    """The host counted 20,000 of 100,000 tokens, and the provider refused: a half less is a half less."""
    where = Pressure(100_000, 100_000, 20_000, DEFAULTS, overflow=True, counted=20_000)
    beside = Pressure(100_000, 100_000, 20_000, DEFAULTS, overflow=True, counted=30_000)

    assert where.after(0) == beside.after(0) == 100_000
    assert where.after(10_000) == 50_000
    assert beside.after(10_000) == 55_000
    assert beside.after(20_000) == 10_000
