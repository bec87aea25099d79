"""The window ladder, rung by rung."""

from __future__ import annotations

from collections.abc import Mapping

from builders import exchanges, text, user
from test_policy import many, pressure, verdict

from hermes_jev.ladder import LADDER_MARGIN, ladder
from hermes_jev.pins import Pin
from hermes_jev.plan import Costs, Plan
from hermes_jev.policy import Action, Cuts, Decision, Pressure, Verdict
from hermes_jev.settings import Settings
from hermes_jev.survey import Survey
from hermes_jev.transcript import Exchange, Transcript

DEFAULTS = Settings()


def climb(decisions: list[Decision], pinned: list[tuple[Exchange, Pin]], where: Pressure, cuts: Cuts) -> list[Decision]:
    """The rungs about results alone: the transcript that the others look at has nothing for them."""
    costs = Costs(Transcript.parse([user("go")]), where.settings, cuts)
    found = Survey({exchange.ordinal: pin for exchange, pin in pinned}, (), tuple(pinned), {}, ())
    return list(ladder(Plan(tuple(decisions)), found, where, costs).decisions)


def climbed(
    kept: tuple[Exchange, ...], pinned: list[tuple[Exchange, Pin]], where: Pressure, verdicts: Mapping[int, Verdict]
) -> dict[int, tuple[Action, str]]:
    cuts = Cuts(where.settings)
    decisions = [Decision(exchange, "keep", "output needed", verdicts.get(exchange.ordinal)) for exchange in kept]
    found = climb(decisions, pinned, where, cuts)
    return {decision.exchange.ordinal: (decision.action, decision.reason) for decision in found}


def gain(exchange: Exchange, action: Action = "truncate") -> int:
    return Cuts(DEFAULTS).gain(exchange, action) or 0


def over(window: int, tokens: int) -> Pressure:
    """A prompt that is `tokens` over where the ladder stops, in overflow."""
    used = round(LADDER_MARGIN * 0.6 * window) + tokens
    return pressure(window, used, overflow=True)


def test_each_rung_is_climbed_only_until_the_trigger() -> None:
    found = many(6)
    kept, pinned = found[:3], [(exchange, "last_calls") for exchange in found[3:]]
    each = gain(found[0])
    verdicts = {ordinal: verdict(0.9, 0.9) for ordinal in (1, 2, 3)}

    def cut(tokens: int) -> list[int]:
        after = climbed(kept, pinned, over(1_000_000, tokens), verdicts)  # type: ignore[arg-type]
        return [ordinal for ordinal, (action, _) in after.items() if action != "keep"]

    assert cut(-1) == []
    assert cut(0) == [1]
    assert cut(each + each // 2) == [1, 2]
    assert cut(3 * each + each // 2) == [1, 2, 3, 4]
    assert cut(100 * each) == [1, 2, 3, 4, 5, 6]


def test_rungs_name_themselves() -> None:
    found = many(4)

    after = climbed(found[:2], [(e, "protected") for e in found[2:]], over(1_000_000, 500_000), {1: verdict(0.1, 0.9)})

    assert after == {
        1: ("remove", "ladder: unpinned"),
        2: ("truncate", "ladder: unpinned"),
        3: ("truncate", "ladder: pinned"),
        4: ("truncate", "ladder: pinned"),
    }


def test_pinned_results_go_from_the_largest_down() -> None:
    found = exchanges(*(text(size, f"n{size}") for size in (3_000, 9_000, 5_000)))

    after = climbed((), [(exchange, "last_calls") for exchange in found], over(1_000_000, 0), {})

    assert after == {2: ("truncate", "ladder: pinned")}


def test_what_the_model_has_not_read_is_cut_last_and_only_in_an_overflow() -> None:
    found = exchanges(*(text(size, f"n{size}") for size in (3_000, 9_000, 5_000)))
    pinned: list[tuple[Exchange, Pin]] = [(found[0], "last_calls"), (found[1], "newest_turn"), (found[2], "last_calls")]

    order = list(climbed((), pinned, over(1_000_000, 500_000), {}))
    urgent = climbed((), pinned, pressure(1_000_000, 900_000), {})

    assert order == [3, 1, 2]
    assert sorted(urgent) == [1, 3]


def test_unpinned_results_go_in_rank_order() -> None:
    found = many(3)
    verdicts = {1: verdict(0.9, 0.9), 2: verdict(0.9, 0.6), 3: verdict(0.9, None)}

    after = climbed(found, [], over(1_000_000, 0), verdicts)

    assert [ordinal for ordinal, (action, _) in after.items() if action != "keep"] == [3]


def test_what_was_cut_already_counts_and_is_not_cut_twice() -> None:
    found = many(3)
    cuts = Cuts(DEFAULTS)
    decisions = [
        Decision(found[0], "remove", "call and output not needed"),
        Decision(found[1], "keep", "output needed"),
    ]
    where = over(1_000_000, gain(found[0], "remove") - 1)

    assert climb(decisions, [(found[2], "last_calls")], where, cuts) == decisions
    assert sum(cuts.gain(d.exchange, d.action) or 0 for d in decisions) == cuts.gain(found[0], "remove")


def test_every_decision_of_before_is_still_there() -> None:
    found = many(5)
    decisions = [Decision(exchange, "keep", "no answer") for exchange in found]

    after = climb(decisions, [], over(1_000_000, 10**9), Cuts(DEFAULTS))

    assert [decision.exchange for decision in after] == list(found)
