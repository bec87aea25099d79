"""Thresholds by setting, by session, and by what came of cuts."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import GOAL, ByOrdinal, assistant, pair, text, user
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev.calibration import (
    BANDS,
    HIGHEST,
    LEAST_SHIFT,
    LOWEST,
    MOST_SHIFT,
    Calibration,
    Tally,
    band_of,
    calibrate,
    fixed,
)
from hermes_jev.job import Job
from hermes_jev.prune import prune, run
from hermes_jev.settings import Settings
from hermes_jev.store import Store
from hermes_jev.store.outcomes import CutRow, add_cuts, regretted

FIXED, SESSION, LEARNED = (Settings(calibration=name) for name in ("fixed", "session", "learned"))  # type: ignore[arg-type]
LOW = [0.04 + 0.01 * number for number in range(20)]
"""Scores as public replays found them: none near one half."""


def test_fixed_is_the_default_and_keeps_the_settings_thresholds() -> None:
    assert Settings().calibration == "fixed"
    assert calibrate(LOW, LOW, FIXED) == Calibration(0.5, 0.5) == fixed(FIXED)


def test_a_session_keeps_the_fifth_that_scores_highest() -> None:
    found = calibrate(LOW, LOW, SESSION)

    assert sum(score >= found.output for score in LOW) == 4
    assert found.output == pytest.approx(0.2)


@pytest.mark.parametrize(
    "scores", [[], LOW[:11], [0.1] * 30, [0.1 + number / 10_000 for number in range(100)]], ids=len
)
def test_scores_that_tell_nothing_apart_leave_the_setting(scores: list[float]) -> None:
    assert calibrate(scores, scores, SESSION) == fixed(SESSION)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(st.floats(0, 1), max_size=60), st.floats(0, 1))
def test_a_threshold_stays_within_its_limits(scores: list[float], setting: float) -> None:
    chosen = Settings(calibration="session", call_threshold=setting, output_threshold=setting)

    found = calibrate(scores, scores, chosen)

    assert LOWEST * setting <= found.output <= min(1.0, HIGHEST * setting + 1e-12) or found.output == setting
    assert found.call == found.output


def test_without_regret_learned_is_session() -> None:
    assert calibrate(LOW, LOW, LEARNED) == calibrate(LOW, LOW, SESSION)
    assert calibrate(LOW, LOW, LEARNED, [Tally("read_file", 1, 500, 0)]) == calibrate(LOW, LOW, SESSION)


def test_only_learned_learns() -> None:
    tallies = [Tally("read_file", 1, 50, 40)]

    assert calibrate(LOW, LOW, SESSION, tallies).shifts == {}
    assert calibrate(LOW, LOW, FIXED, tallies).shifts == {}


def test_what_is_fetched_again_often_is_kept_sooner() -> None:
    found = calibrate(LOW, LOW, LEARNED, [Tally("read_file", 1, 40, 20), Tally("terminal", 1, 40, 0)])

    assert found.score("read_file", 0.08) > 0.08 > found.score("terminal", 0.08)
    assert found.score("browser", 0.08) == 0.08
    assert found.score("read_file", 0.3) == 0.3


@pytest.mark.parametrize(("cuts", "regrets"), [(1, 1), (10**6, 10**6), (10**6, 1), (0, 5)])
def test_a_shift_stays_within_its_limits(cuts: int, regrets: int) -> None:
    shift = calibrate(LOW, LOW, LEARNED, [Tally("x", 1, cuts, regrets)]).shifts["x", 1]

    assert LEAST_SHIFT <= shift <= MOST_SHIFT


def test_few_outcomes_move_little() -> None:
    once = calibrate(LOW, LOW, LEARNED, [Tally("x", 1, 5, 1)]).shifts["x", 1]
    often = calibrate(LOW, LOW, LEARNED, [Tally("x", 1, 50, 10)]).shifts["x", 1]

    assert 0 < once < often


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_certainty_does_not_move(score: float) -> None:
    assert Calibration(0.5, 0.5, {("x", band_of(score)): 1.0}).score("x", score) == score


def test_bands() -> None:
    assert [band_of(score) for score in (0.0, 0.049, 0.05, 0.49, 0.5, 1.0)] == [0, 0, 1, 4, 5, 5]
    assert len(BANDS) == 5


# --- in a pass ------------------------------------------------------------------------------------------------------


def messages(count: int) -> list[dict[str, object]]:
    made: list[dict[str, object]] = [user(GOAL)]
    for number in range(1, count + 1):
        made += pair(number, text(3_000, f"w{number}"), "read_file", {"path": f"m{number}.py"})
    return [*made, assistant("done")]


def low_judge(count: int) -> ByOrdinal:
    return ByOrdinal({number: (0.3, 0.04 + 0.01 * number) for number in range(1, count + 1)})


def test_a_pass_keeps_by_session_what_a_fixed_threshold_would_cut(tmp_path: Path) -> None:
    made = messages(18)

    kept = {}
    for chosen in (FIXED, SESSION):
        pruned = prune(made, low_judge(18), tmp_path / chosen.calibration, chosen)
        kept[chosen.calibration] = [d.exchange.ordinal for d in pruned.decisions if d.action == "keep"]
        assert pruned.receipt.output_threshold == pytest.approx(0.5 if chosen is FIXED else 0.17)
        again = prune(pruned.messages, low_judge(18), tmp_path / chosen.calibration, chosen)
        assert len([d for d in again.decisions if d.action != "keep"]) == 0

    assert kept == {"fixed": [], "session": [13, 14, 15]}


def test_a_pass_learns_from_what_the_store_holds(tmp_path: Path) -> None:
    """Reads of this judge and band were fetched again: what is just under the threshold is kept now."""
    store = Store(tmp_path)
    rows = [CutRow(f"r-{'a' * 9}{letter}", "read_file", "scripted", 0.15, "x") for letter in "abcdefghijklmnop"]
    add_cuts(store, "before", rows)
    made, judge = messages(18), low_judge(18)
    settings_ = LEARNED.model_copy(update={"output_threshold": 0.5})

    first = run(made, Job(settings=settings_, judge=judge, store=store))
    assert [d.exchange.ordinal for d in first.decisions if d.action == "keep"] == [13, 14, 15]

    regretted(store, ["before"], [row.pointer for row in rows], "expand")
    second = run(made, Job(settings=settings_, judge=judge, store=store))
    assert [d.exchange.ordinal for d in second.decisions if d.action == "keep"] == [6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
