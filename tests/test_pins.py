"""What is never judged, and why."""

from __future__ import annotations

from typing import Any

import pytest
from builders import Message, assistant, call, pair, result, text, user

from hermes_jev.pins import pins
from hermes_jev.settings import Settings
from hermes_jev.transcript import Transcript

BIG = 4_000
NO_LAST = Settings(pin_last_calls=0)


def found(messages: list[Message], settings: Settings | None = None) -> dict[int, str]:
    return dict(pins(Transcript.parse(messages), settings or NO_LAST))


def calls(*tools: str, size: int = BIG) -> list[Message]:
    messages = [user("go")]
    for number, tool in enumerate(tools, 1):
        messages += pair(number, text(size, f"o{number}"), tool)
    return messages


def ended(*tools: str, size: int = BIG) -> list[Message]:
    """The calls, and a newest turn without any."""
    return [*calls(*tools, size=size), assistant("done")]


@pytest.mark.parametrize(
    ("count", "pinned"), [(0, []), (1, [5]), (3, [3, 4, 5]), (5, [1, 2, 3, 4, 5]), (9, [1, 2, 3, 4, 5])]
)
def test_the_last_completed_calls(count: int, pinned: list[int]) -> None:
    settings = Settings(pin_last_calls=count)

    assert found(ended(*["terminal"] * 5), settings) == dict.fromkeys(pinned, "last_calls")


def test_each_call_of_a_group_counts_by_itself() -> None:
    group = [
        assistant(None, *(call(f"g{i}") for i in range(5))),
        *(result(f"g{i}", text(BIG, f"g{i}")) for i in range(5)),
    ]

    assert found([*pair(9, text(BIG)), *group, assistant("done")], Settings()) == dict.fromkeys([4, 5, 6], "last_calls")


def test_open_and_ambiguous_calls_are_none_of_the_last() -> None:
    tail = [assistant(None, call("open")), user("wait"), assistant(None, call("two"))]
    tail += [result("two", text(BIG)), result("two", text(BIG)), assistant("done")]

    assert found([*calls("a", "b"), *tail], Settings(pin_last_calls=1)) == {2: "last_calls", 3: "open", 4: "ambiguous"}


@pytest.mark.parametrize(("size", "pinned"), [(1_499, True), (1_500, True), (1_501, False)])
def test_small_results(size: int, pinned: bool) -> None:
    assert (found(ended("terminal", size=size)) == {1: "small"}) is pinned


def test_the_limit_of_small_is_a_setting() -> None:
    assert found(ended("terminal", size=701), Settings(pin_last_calls=0, pin_max_chars=700)) == {}
    assert found(ended("terminal", size=700), Settings(pin_last_calls=0, pin_max_chars=700)) == {1: "small"}


def test_the_newest_assistant_turn() -> None:
    assert found(calls("a", "b", "c")) == {3: "newest_turn"}
    assert found([*calls("a"), user("and?")]) == {1: "newest_turn"}
    assert found(ended("a")) == {}


@pytest.mark.parametrize("tool", ["skill_view", "skills_list", "memory", "clarify"])
def test_tools_whose_results_are_instructions(tool: str) -> None:
    assert found(ended("terminal", tool, tool, "terminal")) == {2: "protected", 3: "protected"}


def test_the_newest_plan_alone() -> None:
    assert found(ended("todo", "terminal", "todo", "terminal")) == {3: "latest"}


def test_a_newest_plan_that_is_small_leaves_older_ones_to_be_judged() -> None:
    assert found([*calls("todo"), *pair(2, "short", "todo"), assistant("done")]) == {2: "small"}


def test_protected_and_latest_tools_are_settings() -> None:
    settings = Settings(pin_last_calls=0, protected_tools=("rules",), latest_tools=("plan", "board"))

    assert found(ended("memory", "rules", "plan", "board", "plan", "todo"), settings) == {
        2: "protected",
        4: "latest",
        5: "latest",
    }


def test_expand_stays_while_it_is_among_the_last_ten() -> None:
    assert found(ended("expand", *["terminal"] * 9)) == {1: "expand"}
    assert found(ended("expand", *["terminal"] * 10)) == {}


def test_a_file_preview_is_the_hosts() -> None:
    preview = f"<persisted-output>\nsaved\n{text(BIG)}\n</persisted-output>"

    assert found([*pair(1, preview), assistant("done")]) == {1: "file_preview"}


def test_the_first_rule_that_holds_is_the_one_named() -> None:
    assert found(calls("memory", size=100), Settings()) == {1: "small"}
    assert found([*calls("memory"), assistant("done")], Settings()) == {1: "protected"}
    assert found([*calls("todo"), assistant("done")], Settings()) == {1: "last_calls"}


def test_a_cut_result_stays_settled_when_the_user_spoke_after_it() -> None:
    notice = '[hermes_jev: this call ran; its 9,000 characters are stored: expand(id="r-aaaaaaaaaa")]'
    words = f"\n\n[OUT-OF-BAND USER MESSAGE — x]\n{'please ' * 400}\n[/OUT-OF-BAND USER MESSAGE]"

    assert found([*pair(1, notice + words), assistant("done")]) == {1: "small"}
    assert found([*pair(1, text(BIG) + words), assistant("done")]) == {}


@pytest.mark.parametrize("messages", [[], [user("hi")], [result("a", text(BIG))]])
def test_without_calls_nothing_is_pinned(messages: list[Any]) -> None:
    assert found(messages, Settings()) == {}
