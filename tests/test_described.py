"""What a remote judge is told: counted in words, as much of an input as fits, and of metadata nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import GOAL, Message, assistant, pair, session, text, user

from hermes_jev.described import COUNTS, INPUT_LEVELS, SEEN_INPUT_CHARS, size_words
from hermes_jev.egress import Gate
from hermes_jev.fact_lines import fact_lines
from hermes_jev.goal import goal_of
from hermes_jev.judge.protocol import Limits
from hermes_jev.references import References
from hermes_jev.shapes import kind_of, shape_of_arguments
from hermes_jev.transcript import Transcript
from hermes_jev.window import Fitted, Question, fit

FAR = "src/core/reader.py"


def question(messages: list[Message]) -> Question:
    transcript = Transcript.parse(messages)
    return Question(transcript, transcript.completed, goal_of(transcript), "", ())


def items(found: Fitted) -> list[dict[str, Any]]:
    return [item for request in found.requests for item in dict(request.state)["items"]]


# --- what later calls have to do with it --------------------------------------------------------------------------


def later(*messages: Message) -> str:
    transcript = Transcript.parse([user(GOAL), *messages])
    return References(transcript).later(transcript.exchanges[0]).words()


FIRST = pair(1, f"found {FAR}:12 and ticket AB_1234", "grep", {"pattern": "read", "path": "src/core"})


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([], "no later call refers to it"),
        (pair(2, "x", "terminal", {"command": "ls -l"}), "no later call refers to it"),
        (pair(2, "x", "read_file", {"path": FAR}), "1 later call names a path or id from its output"),
        (
            [*pair(2, "x", "read_file", {"path": FAR}), *pair(3, "y", "note", {"about": "AB_1234"})],
            "2 later calls name a path or id from its output",
        ),
        (pair(2, "x", "find", {"in": "src/core"}), "1 later call names a path of its input"),
        (FIRST, "the same call was made again later; 1 later call names a path of its input"),
    ],
)
def test_later_uses_are_counted_and_said_in_words(after: list[Message], expected: str) -> None:
    assert later(*FIRST, *after) == expected


def test_a_name_that_was_in_use_before_is_not_from_this_output() -> None:
    before = pair(1, "x", "read_file", {"path": FAR})
    transcript = Transcript.parse([*before, *pair(2, f"see {FAR}", "grep"), *pair(3, "y", "edit", {"path": FAR})])

    assert References(transcript).later(transcript.exchanges[1]).output == 0
    assert References(transcript).later(transcript.exchanges[0]).path == 1


def test_words_of_the_conversation_are_never_in_what_is_counted() -> None:
    assert FAR not in later(*FIRST, *pair(2, "x", "read_file", {"path": FAR}))


def test_a_call_says_which_request_it_served() -> None:
    messages = [user("one"), *pair(1, text(2_000)), user("two"), *pair(2, text(2_000)), user("go on"), user("three")]
    messages += pair(3, text(2_000))

    found = items(fit(question(messages), Gate(), 32))

    assert [item["made_for"] for item in found] == ["an earlier request", "the request before", "the present request"]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("x", "short: 1 characters in 1 line"),
        ("x\n" * 2_000, "medium: 4,000 characters in 2,000 lines"),
        ("x" * 20_000, "long: 20,000 characters in 1 line"),
        ("x" * 90_000, "very long: 90,000 characters in 1 line"),
    ],
)
def test_the_size_is_said_in_words(output: str, expected: str) -> None:
    assert size_words(output) == expected


# --- lines of fact ------------------------------------------------------------------------------------------------


def test_the_lines_between_head_and_tail_that_look_like_facts_are_told() -> None:
    output = f"{text(1_500)}\nE   KeyError: 'currency'\n{text(1_500, 'more')}"

    (item,) = items(fit(question([user(GOAL), *pair(1, output)]), Gate(), 32))

    assert "E   KeyError: 'currency'" in item["output_lines"]
    assert all(line in output for line in item["output_lines"])


def test_one_line_of_each_shape_in_order_within_the_budget() -> None:
    found = fact_lines("error 1 in a\nerror 2 in a\nplain words here\nsrc/b.py:7: failed\nTraceback\n", 100)

    assert found == ["error 1 in a", "src/b.py:7: failed", "Traceback"]
    assert fact_lines("error in a\nerror in bb\n", 11) == ["error in bb"]
    assert fact_lines("error " * 100, 900) == fact_lines("", 100) == fact_lines("error", 0) == []


# --- as much of an input as fits ----------------------------------------------------------------------------------


def long_inputs(count: int) -> Question:
    arguments = json.dumps({"text": "漢字仮名" * 300}, ensure_ascii=False)
    return question(
        [user(GOAL), *(m for n in range(count) for m in pair(n, text(3_000, f"n{n}"), arguments=arguments))]
    )


@pytest.mark.parametrize(("state_tokens", "shown"), [(24_000, 1_000), (6_000, 200), (900, 60)])
def test_inputs_are_shown_shorter_as_the_budget_needs(state_tokens: int, shown: int) -> None:
    found = fit(long_inputs(4), Gate(), 32, Limits(state_tokens=state_tokens))

    assert {len(item["input"].removesuffix(" … (cut)")) for item in items(found)} == {shown}
    assert shown in INPUT_LEVELS
    assert {stage in COUNTS for stage in found.stages.values()} == {shown >= SEEN_INPUT_CHARS}


def test_a_short_input_is_seen_whole_at_any_budget() -> None:
    found = fit(question(session(3)), Gate(), 32, Limits(state_tokens=1))

    assert set(found.stages.values()) == {"head_tail"}
    assert len(found.requests) == 3


def test_what_the_service_counts_corrects_the_budget() -> None:
    plain, dear, cheap = (len(fit(long_inputs(64), Gate(), 32, factor=f).requests) for f in (1.0, 1.6, 0.7))

    assert cheap <= plain < dear


def test_the_rest_is_folded_into_a_line() -> None:
    (request,) = fit(question([*session(3), *pair(9, text(2_000), "read_file")]), Gate(), 32).requests

    assert dict(request.state)["folded"] == "tool calls so far: terminal 3, read_file 1"


# --- metadata -----------------------------------------------------------------------------------------------------

SHAPES = {
    "src/core/reader.py": "a path of 3 parts ending in .py",
    "/etc/passwd": "a path of 2 parts",
    "C:\\app\\main.ts": "a path of 3 parts ending in .ts",
    "notes.md": "a path of 1 parts ending in .md",
    "https://user@example.com/x": "a URL",
    "two words": "text of 9 characters",
    "": "text of 0 characters",
}


@pytest.mark.parametrize(("value", "expected"), SHAPES.items())
def test_a_text_has_a_kind_and_no_content(value: str, expected: str) -> None:
    assert kind_of(value) == expected


def test_the_shape_of_an_input() -> None:
    value = {"path": "a/b.py", "n": 5, "on": True, "none": None, "list": [1, 2], "deep": {"x": 1}, "odd key!": "x"}

    assert shape_of_arguments(json.dumps(value), Gate().text) == {
        "path": "a path of 2 parts ending in .py",
        "n": "a number",
        "on": "yes or no",
        "none": "nothing",
        "list": "a list of 2",
        "deep": "an object with 1 fields",
        "field 7": "text of 1 characters",
    }
    assert shape_of_arguments("no json", Gate().text) == "text of 7 characters"
    assert shape_of_arguments("[1]", Gate().text) == "a list of 1"
    many = shape_of_arguments(json.dumps({f"f{n}": n for n in range(20)}), Gate().text)
    assert many["others"] == "8 fields"


def test_metadata_holds_no_word_of_the_conversation() -> None:
    messages = [
        user("zanzibar request"),
        *pair(1, f"zanzibar output\n{text(3_000)}", "grep", {"pattern": "zanzibar", "path": "zanzibar/zanzibar.py"}),
        assistant("zanzibar words"),
    ]

    found = fit(question(messages), Gate(), 32, egress="metadata")

    sent = json.dumps([request.state for request in found.requests])
    assert "zanzibar" not in sent
    assert found.stages == {1: "metadata"}
    (item,) = items(found)
    assert item["tool"] == "grep"
    assert json.loads(item["input"]) == {"pattern": "text of 8 characters", "path": "a path of 2 parts ending in .py"}
    assert "withheld" in str(dict(found.requests[0].state)["goal"])
