"""In which order results go, and how far an order is followed."""

from __future__ import annotations

import random
from typing import Any

import pytest
from builders import GOAL, exchanges, pair, text, user
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev.policy import Cuts, Decision, Known, Pressure, Verdict, decide, rank_order, ranked
from hermes_jev.rank import Standing, standings, until, worths
from hermes_jev.rules import Ruling
from hermes_jev.settings import Settings
from hermes_jev.to_size import ENOUGH, IN_ORDER, decide_to
from hermes_jev.transcript import Exchange, Transcript

DEFAULTS = Settings()


def of(count: int, size: int = 5_000) -> tuple[Exchange, ...]:
    return exchanges(*(text(size, f"n{number}") for number in range(count)))


def transcript(*steps: tuple[str, Any, str]) -> Transcript:
    messages = [user(GOAL)]
    for number, (tool, arguments, content) in enumerate(steps, 1):
        messages += pair(number, content, tool, arguments)
    return Transcript.parse(messages)


# --- worth ----------------------------------------------------------------------------------------------------------


def test_what_a_rule_settles_is_worth_least() -> None:
    found = of(3)

    worth = worths(found, {1: 0.05, 2: 0.5}, {3: Ruling("read again", 9)}, {})

    assert worth[3] < worth[1] < worth[2]


def test_a_judge_that_tells_results_apart_is_believed() -> None:
    found = of(4)
    standing = {e.ordinal: Standing(4 - e.ordinal, "reads", 0) for e in found}

    worth = worths(found, {1: 0.9, 2: 0.02, 3: 0.6, 4: 0.2}, {}, standing)

    assert worth == pytest.approx({1: 0.9, 2: 0.02, 3: 0.6, 4: 0.2})


@pytest.mark.parametrize("said", [0.0, 0.12, 1.0])
def test_where_a_judge_says_the_same_of_all_age_and_use_decide(said: float) -> None:
    found = of(4)
    standing = {1: Standing(9, "reads", 0), 2: Standing(9, "reads", 3), 3: Standing(4, "reads", 0)}

    worth = worths(found, dict.fromkeys((1, 2, 3), said), {}, standing)

    assert worth[1] < worth[2]
    assert worth[1] < worth[3]


def test_no_answer_is_an_even_chance_and_extremes_stay_finite() -> None:
    worth = worths(of(3), {1: 0.0, 2: 1.0}, {}, {})

    assert worth == pytest.approx({1: 0.001, 2: 0.999, 3: 0.5})


def test_what_changed_things_is_protected_more() -> None:
    found = of(2)
    standing = {1: Standing(3, "writes", 0), 2: Standing(3, "reads", 0)}

    worth = worths(found, {1: 0.2, 2: 0.2}, {}, standing)

    assert worth[1] == pytest.approx(2 * worth[2])


def test_standings() -> None:
    steps = [("read_file", {"path": "lib/a.py"}, "x"), ("patch", {"path": "lib/a.py"}, "x"), ("todo", {}, "x")]

    assert standings(transcript(*steps)) == {
        1: Standing(2, "reads", 1),
        2: Standing(1, "writes", 0),
        3: Standing(0, "other", 0),
    }


def test_use_counts_only_among_the_last_ten_calls() -> None:
    steps = [("read_file", {"path": "a.py"}, "x"), ("terminal", {"command": "cat a.py"}, "x")]
    later = [("terminal", {"command": f"step {number}"}, "x") for number in range(10)]

    assert standings(transcript(*steps, *later[:9]))[1].in_use == 1
    assert standings(transcript(*steps, *later))[1].in_use == 0


def test_the_order_is_least_worth_per_character_and_older_first() -> None:
    found = exchanges(text(4_000, "a"), text(40_000, "b"), text(4_000, "c"), text(4_000, "d"))
    verdicts = {1: 0.3, 2: 0.3, 3: 0.01, 4: 0.3}
    decisions = [Decision(e, "keep", "", Verdict(0.1, verdicts[e.ordinal], "whole", "x")) for e in found]

    assert [d.exchange.ordinal for d in rank_order(ranked(decisions))] == [3, 2, 1, 4]
    assert [d.exchange.ordinal for d in rank_order(decisions)] == [3, 2, 1, 4]


def test_a_better_judge_loses_less() -> None:
    """An oracle whose answers are chance for a growing share of the results: what is lost grows with it."""
    chance = random.Random(5)
    found = of(200, 2_000)
    needed = {e.ordinal for e in found if chance.random() < 0.2}
    standing = {e.ordinal: Standing(200 - e.ordinal, "reads", 0) for e in found}
    lost: list[float] = []
    for noise in (0.0, 0.25, 0.5, 0.75, 1.0):
        total = 0
        for _ in range(20):
            truth = {n: chance.random() if chance.random() < noise else float(n in needed) for n in standing}
            worth = worths(found, truth, {}, standing)
            total += len(needed & set(sorted(worth, key=lambda n: worth[n])[:100]))
        lost.append(total / 20)

    assert lost[0] == 0
    assert lost == sorted(lost)
    assert lost[4] > 10


# --- how far --------------------------------------------------------------------------------------------------------


def chosen(items: list[tuple[float, int]], need: float) -> list[tuple[float, int]]:
    ordered = sorted(items, key=lambda item: item[0] / item[1] ** 0.75)
    return list(until(ordered, need, lambda item: item[1], lambda item: item[0]))


def test_nothing_is_chosen_for_no_need() -> None:
    assert chosen([(0.1, 5)], 0) == chosen([(0.1, 5)], -1) == chosen([], 9) == []


def test_a_huge_result_does_not_go_for_a_small_rest() -> None:
    huge, small = (0.3, 100_000), (0.1, 2_000)

    assert chosen([huge, small], 1_500) == [small]
    assert chosen([huge, small], 50_000) == [huge]


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.floats(0.001, 1), st.integers(1, 10**6)), max_size=40, unique=True),
    st.integers(0, 10**7),
)
def test_enough_is_chosen_and_no_more_than_it_takes(items: list[tuple[float, int]], need: int) -> None:
    found = chosen(items, need)

    freed = [size for _, size in found]
    assert len(set(found)) == len(found)
    assert sum(freed) >= min(need, sum(size for _, size in items))
    assert not freed or sum(freed[:-1]) < need


# --- to a size ------------------------------------------------------------------------------------------------------


def to_size(found: tuple[Exchange, ...], need: float, outputs: dict[int, float], known: Known | None = None) -> Any:
    decisions = decide_to(found, outputs, need, Cuts(DEFAULTS), known or Known())
    assert [d.exchange.ordinal for d in decisions] == [e.ordinal for e in found]
    return {d.exchange.ordinal: (d.action, d.reason) for d in decisions}


def test_a_size_is_reached_in_rank_order() -> None:
    found = of(4)
    outputs = {1: 0.9, 2: 0.1, 3: 0.2, 4: 0.8}

    assert to_size(found, 0, outputs) == dict.fromkeys((1, 2, 3, 4), ("keep", ENOUGH))
    after = to_size(found, 9_000, outputs)
    assert {n: action != "keep" for n, (action, _) in after.items()} == {1: False, 2: True, 3: True, 4: False}
    assert after[2][1] == IN_ORDER


@pytest.mark.parametrize("need", [1, 4_000, 12_000, 19_000, 19_400, 10**9])
def test_as_much_goes_as_was_asked_for_or_all(need: int) -> None:
    found, cuts = of(4), Cuts(DEFAULTS)

    decisions = decide_to(found, {}, need, cuts, Known())

    freed = sum(d.exchange.size - cuts.chars(d.exchange, d.action) for d in decisions)
    most = sum(e.size - cuts.chars(e, "remove") for e in found)
    assert freed >= min(need, most)
    assert freed == most or need < 10**9


def test_rules_come_first_and_cut_as_they_say() -> None:
    found = of(3)
    known = Known({1: Ruling("duplicate", 3), 2: Ruling("written since", 3)})

    after = to_size(found, 9_000, {3: 0.3}, known)

    assert after[1] == ("remove", "rule: call 3 returned the same")
    assert after[2] == ("truncate", "rule: call 3 wrote the file since")
    assert after[3] == ("keep", ENOUGH)


def test_a_judge_without_a_signal_stops_at_the_target_with_what_is_oldest_gone() -> None:
    """What rules settle goes in any case; the rest in rank order, until the target is reached."""
    found = of(30)
    verdicts = {e.ordinal: Verdict(0.1, 0.1, "whole", "flat") for e in found[1:]}
    standing = {e.ordinal: Standing(30 - e.ordinal, "reads", 0) for e in found}
    known = Known({1: Ruling("duplicate", 30)}, standing)
    cuts = Cuts(DEFAULTS)
    each = cuts.gain(found[1], "remove") or 0
    used = round(0.3 * 1_000_000) + 5 * each

    decisions = decide(found, verdicts, Pressure(1_000_000, used, used, DEFAULTS), cuts, known)

    cut = [d.exchange.ordinal for d in decisions if d.action != "keep"]
    assert cut[0] == 1
    assert len(cut) == 5
    assert cut == [1, 2, 3, 4, 5]
    assert {d.reason for d in decisions if d.action == "keep"} == {"target reached"}
