"""Which call has which result, and what is recognised and left alone."""

from __future__ import annotations

from typing import Any

import pytest
from builders import Message, assistant, call, pair, result, session, user

from hermes_jev.transcript import Exchange, Transcript


def parse(*messages: Any) -> tuple[Exchange, ...]:
    return Transcript.parse(list(messages)).exchanges


def states(*messages: Any) -> list[str]:
    return [exchange.state for exchange in parse(*messages)]


def results(*messages: Any) -> list[Any]:
    return [exchange.result for exchange in parse(*messages)]


def test_an_exchange_knows_its_places_and_its_ordinal() -> None:
    messages = [user("go"), assistant("looking", call("a", "grep", '{"q": 1}'), call("b", "cat")), result("b", "B")]
    messages += [result("a", "A"), *pair(3, "C")]

    first, second, third = parse(*messages)

    assert first == Exchange(1, 1, 0, "grep", '{"q": 1}', "completed", 3, "A")
    assert second == Exchange(2, 1, 1, "cat", "{}", "completed", 2, "B")
    assert (third.ordinal, third.call_at, third.slot, third.result_at) == (3, 4, 0, 5)


def test_ordinals_count_all_calls_whatever_became_of_them() -> None:
    messages = [assistant(None, call("a"), call("b"), call("c")), result("b", "B"), *pair(4, "D")]

    assert [(e.ordinal, e.state) for e in parse(*messages)] == [
        (1, "open"),
        (2, "completed"),
        (3, "open"),
        (4, "completed"),
    ]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([assistant(None, call("a"))], ["open"], id="no result"),
        pytest.param([assistant(None, call("a")), result("z", "Z")], ["open"], id="a foreign result"),
        pytest.param([result("a", "A"), assistant(None, call("a"))], ["open"], id="a result before its call"),
        pytest.param([assistant(None, call("a")), user("stop"), result("a", "A")], ["open"], id="a user in between"),
        pytest.param([assistant(None, call("a")), assistant("hm"), result("a", "A")], ["open"], id="a word in between"),
        pytest.param([assistant(None, call("a")), result("a", 1), result("a", 2)], ["ambiguous"], id="two results"),
        pytest.param(
            [assistant(None, call("a"), call("a")), result("a", 1), result("a", 2)],
            ["ambiguous"] * 2,
            id="one id twice",
        ),
        pytest.param(
            [assistant(None, call("a"), call("a")), result("a", 1)], ["ambiguous"] * 2, id="one id twice, one result"
        ),
        pytest.param(
            [assistant(None, {"id": "a", "type": "function"}), result("a", 1)], ["ambiguous"], id="no function"
        ),
        pytest.param(
            [assistant(None, {"id": "a", "function": "rm"}), result("a", 1)], ["ambiguous"], id="odd function"
        ),
        pytest.param([{"role": "assistant", "tool_calls": ["a", 3, None]}], ["open"] * 3, id="calls that are none"),
        pytest.param(
            [assistant(None, call("a")), {"role": "function", "name": "a", "content": 1}], ["open"], id="old form"
        ),
    ],
)
def test_what_is_not_one_call_with_one_result(messages: list[Message], expected: list[str]) -> None:
    assert states(*messages) == expected
    assert all(exchange.result_at is None and exchange.result is None for exchange in parse(*messages))


def test_the_same_id_in_two_groups_is_two_exchanges() -> None:
    messages = [*pair(1, "first"), *pair(1, "second")]

    assert results(*messages) == ["first", "second"]
    assert states(*messages) == ["completed"] * 2


def test_results_of_a_group_may_come_in_any_order() -> None:
    assert results(assistant(None, call("a"), call("b")), result("b", "B"), result("a", "A")) == ["A", "B"]


@pytest.mark.parametrize("names", [{"call_id": "x"}, {"id": "fc_9", "call_id": "x"}, {"id": "x", "call_id": "y"}])
def test_a_result_may_name_either_id_of_a_call(names: Message) -> None:
    entry = {**names, "function": {"name": "terminal", "arguments": "{}"}}

    assert results(assistant(None, entry), result("x", "X")) == ["X"]


def test_one_result_for_each_of_a_calls_two_ids_is_ambiguous() -> None:
    entry = {**call("x"), "call_id": "y"}

    assert states(assistant(None, entry), result("x", "X"), result("y", "Y")) == ["ambiguous"]


def nameless(*tools: str) -> Message:
    return assistant(None, *({"function": {"name": tool, "arguments": "{}"}} for tool in tools))


def test_without_any_id_pairs_are_made_by_place() -> None:
    messages = [
        nameless("a", "b"),
        {"role": "tool", "content": "A"},
        {"role": "tool", "tool_call_id": "", "content": "B"},
    ]

    assert [(e.tool, e.result) for e in parse(*messages)] == [("a", "A"), ("b", "B")]


@pytest.mark.parametrize(
    "tools",
    [
        pytest.param([{"role": "tool", "content": "A"}], id="too few"),
        pytest.param([{"role": "tool", "content": "A"}] * 3, id="too many"),
        pytest.param([{"role": "tool", "content": "A"}, result("b", "B")], id="one of them names an id"),
    ],
)
def test_without_ids_and_with_doubt_nothing_is_paired(tools: list[Message]) -> None:
    assert states(nameless("a", "b"), *tools) == ["open", "open"]


def test_ids_that_are_numbers_are_not_taken_for_missing() -> None:
    """Results in another order than their calls, by ids that are numbers: by place they would be swapped."""
    numbered = [{"id": number, "function": {"name": f"t{number}", "arguments": "{}"}} for number in (1, 2)]
    answers = [{"role": "tool", "tool_call_id": number, "content": f"of {number}"} for number in (2, 1)]

    found = {exchange.tool: exchange.result for exchange in parse(assistant(None, *numbered), *answers)}

    assert found in ({"t1": "of 1", "t2": "of 2"}, {"t1": None, "t2": None})


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("grep", {"tool_name": "x"}, "grep"),
        ("", {"tool_name": "x", "name": "y"}, "x"),
        (None, {"name": "y"}, "y"),
        (7, {}, "unknown"),
    ],
)
def test_the_tools_name(name: Any, more: Message, expected: str) -> None:
    entry = {"id": "a", "function": {"name": name, "arguments": "{}"}}

    assert parse(assistant(None, entry), result("a", "A", **more))[0].tool == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [('{"b":1, "a":2}', '{"b":1, "a":2}'), ("not json", "not json"), (None, ""), ({"ü": [1]}, '{"ü": [1]}'), (5, "5")],
)
def test_arguments_are_text_and_text_stays_as_it_is(arguments: Any, expected: str) -> None:
    entry = {"id": "a", "function": {"name": "t", "arguments": arguments}}

    assert parse(assistant(None, entry), result("a", "A"))[0].arguments == expected


@pytest.mark.parametrize(
    ("content", "size"),
    [
        ("", 0),
        ("four", 4),
        (None, 0),
        ([{"type": "text", "text": "ab"}, {"type": "text", "text": "cd"}], 5),
        ([{"type": "image_url", "image_url": {"url": "data:" + "A" * 5_000}}, {"type": "text", "text": "ab"}], 2),
        ([1, None, "ab"], 0),
        ({"k": "ü"}, 10),
        ("👩‍👩‍👧", 5),
        ("\ud800\udc00", 2),
    ],
)
def test_size_counts_characters_of_text(content: Any, size: int) -> None:
    assert parse(*pair(1, content))[0].size == size


def test_messages_are_the_objects_that_were_given() -> None:
    messages = session(3)

    transcript = Transcript.parse(messages)

    assert transcript.messages is messages
    assert all(exchange.result is messages[exchange.result_at or 0]["content"] for exchange in transcript.completed)


def test_completed_leaves_out_what_is_open_or_ambiguous() -> None:
    messages = [*pair(1, "A"), assistant(None, call("b")), user("?"), *pair(3, "C")]

    assert [exchange.ordinal for exchange in Transcript.parse(messages).completed] == [1, 3]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [([], -1), ([user("hi")], -1), ([assistant("a"), user("hi")], 0), (session(2), 5), (pair(1, "A"), 0)],
)
def test_the_newest_assistant_turn(messages: list[Message], expected: int) -> None:
    assert Transcript.parse(messages).newest_assistant == expected


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "tool_calls": "calls"},
        {"role": "assistant", "tool_calls": {"id": "a"}},
        {"role": "user", "tool_calls": [call("a")]},
        {"role": "tool"},
        {"role": "tool", "tool_call_id": 7, "content": 7},
        {"role": "assistant", "content": {"odd": True}},
    ],
)
def test_odd_messages_take_part_in_nothing(message: Message) -> None:
    assert states(message, *pair(1, "A"), message) == ["completed"]


def nested(depth: int) -> Message:
    value: Message = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def test_arguments_nested_deeper_than_python_recurses_do_not_raise() -> None:
    entry = {"id": "a", "function": {"name": "t", "arguments": nested(5_000)}}

    assert len(parse(assistant(None, entry), result("a", "A"))) == 1


@pytest.mark.parametrize("content", [nested(5_000), {("a", "b"): "key"}], ids=["deep", "a key that is no text"])
def test_results_that_json_cannot_hold_have_a_size_all_the_same(content: Any) -> None:
    assert parse(*pair(1, content))[0].size >= 0
