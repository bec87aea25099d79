"""Transcripts from files: every form that is read, and one line about everything that is not."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from builders import assistant, pair, result, session, user
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev.errors import InputError
from hermes_jev.inputs import ROLES, Document, read_document, require_messages, to_json

HI = {"role": "user", "content": "hi"}
BYE = {"role": "assistant", "content": "bye"}


def read(data: str | bytes) -> Document:
    return read_document(data.encode() if isinstance(data, str) else data, "file.json")


def lines(*rows: Any) -> str:
    return "\n".join(json.dumps(row) for row in rows)


# --- what is read -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "shape", "parts"),
    [
        ("[]", "array", ([],)),
        (json.dumps([HI, BYE]), "array", ([HI, BYE],)),
        (json.dumps([HI, BYE], indent=2), "array", ([HI, BYE],)),
        (" \n\t" + json.dumps([HI]) + "\n\n", "array", ([HI],)),
        ("\ufeff" + json.dumps([HI]), "array", ([HI],)),
        (json.dumps({"messages": [HI]}), "object", ([HI],)),
        (json.dumps({"id": 7, "messages": [HI]}, indent=1), "object", ([HI],)),
        (lines(HI, BYE), "lines", ([HI, BYE],)),
        (lines(HI, BYE) + "\n\n", "lines", ([HI, BYE],)),
        (lines(HI, BYE).replace("\n", "\r\n"), "lines", ([HI, BYE],)),
        (lines(HI), "lines", ([HI],)),
        (json.dumps(HI, indent=2), "lines", ([HI],)),
        (lines({"id": "a", "messages": [HI]}, {"id": "b", "messages": [BYE]}), "sessions", ([HI], [BYE])),
        (lines({"messages": []}, {"messages": [BYE]}), "sessions", ([], [BYE])),
    ],
)
def test_every_form_is_read(data: str, shape: str, parts: tuple[Any, ...]) -> None:
    document = read(data)

    assert (document.shape, document.parts) == (shape, parts)


@pytest.mark.parametrize(
    "data",
    [
        json.dumps([HI, BYE], indent=2),
        json.dumps({"id": 7, "messages": [HI], "title": "ü"}),
        lines(HI, BYE),
        json.dumps(HI, indent=2),
        lines({"id": "a", "messages": [HI]}, {"id": "b", "messages": [BYE], "more": [None]}),
    ],
)
def test_what_is_written_has_the_form_that_was_read(data: str) -> None:
    document = read(data)

    written = document.dump(document.parts)

    assert written.endswith("\n")
    assert read(written) == document


def test_new_messages_take_the_place_of_the_old() -> None:
    assert read('{"id": 7, "messages": [], "z": 1}').dump([[HI]]) == (
        '{"id": 7, "messages": [{"role": "user", "content": "hi"}], "z": 1}\n'
    )
    two = read(lines({"id": "a", "messages": [HI]}, {"id": "b", "messages": [BYE]}))
    assert [json.loads(line)["messages"] for line in two.dump([[], [HI]]).splitlines()] == [[], [HI]]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(ROLES), "content": VALUES}, optional={"extra": VALUES}), max_size=4
)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(MESSAGES, st.sampled_from(["array", "object", "lines"]))
def test_whatever_is_read_is_written_as_it_was(messages: list[Any], shape: str) -> None:
    forms = {"array": json.dumps(messages), "object": json.dumps({"messages": messages}), "lines": lines(*messages, HI)}
    expected = [*messages, HI] if shape == "lines" else messages

    document = read(forms[shape])

    assert read(document.dump(document.parts)).parts == document.parts == (expected,)


@pytest.mark.parametrize("odd", ["\ud800", "\udc00\ud800", "\x00", "\ufeff", "\r\n", "\u2028\x85", "漢"])
def test_odd_characters_are_read_and_written(odd: str) -> None:
    message = {"role": "user", "content": odd, odd: odd}

    document = read(json.dumps([message]))

    assert document.parts == ([message],)
    written = document.dump(document.parts).encode("utf-8")
    assert read(written) == document


def test_characters_are_written_as_they_are_where_utf8_has_them() -> None:
    assert to_json({"a": "漢é"}) == '{"a": "漢é"}'
    assert to_json({"a": "漢\ud800"}) == '{"a": "\\u6f22\\ud800"}'


def test_a_number_of_any_length_is_a_number() -> None:
    assert (
        read('[{"role": "user", "n": 123456789012345678901234567890}]').parts[0][0]["n"]
        == 123456789012345678901234567890
    )


# --- what is not read ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"", None, "empty"),
        (b" \n \t ", None, "empty"),
        ("\ufeff".encode(), None, "empty"),
        ("not json", 1, "not JSON"),
        ("\n\n[1,\n2,,]", 4, "not JSON"),
        ("[]\n[]", 2, "not JSON"),
        ('[{"role": "user", "content": NaN}]', 1, "NaN is not a JSON number"),
        ('[{"role": "user", "content": -Infinity}]', 1, "-Infinity is not a JSON number"),
        ('[{"role": "user", "content": 1e999}]', 1, "not"),
        ('[{"role": "user", "content": "a\nb"}]', 1, "not JSON"),
        ('[{"role": "user", "content": "torn', 1, "not JSON"),
        ("[" * 100_000, 1, "nested too deeply"),
        ('[{"role": "user", "n": ' + "9" * 5_000 + "}]", 1, "not JSON"),
        (b'[{"role":\n"user", "content": "\xff"}]', 2, "not UTF-8"),
        (json.dumps([HI]).encode("utf-16"), 1, "not UTF-8"),
        ('"text"', 1, "a JSON array of messages"),
        ("7", 1, "a JSON array of messages"),
        ("null", 1, "a JSON array of messages"),
        ("{}", 1, "a JSON array of messages"),
        ('\n{"messages": {}}', 2, "a JSON array of messages"),
        ("[1]", 1, "message 1: an object with a role is needed, not a number"),
        ('[\n{"role": "user"},\n"text"]', 3, "message 2: an object with a role is needed, not text"),
        ("[null]", 1, "not null"),
        ("[[]]", 1, "not a list"),
        ("[true]", 1, "not true or false"),
        ("[{}]", 1, "it has no role"),
        ('[{"role": null}]', 1, "it has no role"),
        ('[\n\n{"role": "robot"}]', 3, "unknown role 'robot'"),
        ('[{"role": 7}]', 1, "unknown role"),
        ('[{"role": ["user"]}]', 1, "unknown role"),
        (json.dumps([{"role": "x" * 9_000}]), 1, "unknown role"),
        ('[{"role": "assistant", "tool_calls": {"id": "a"}}]', 1, "tool_calls is a list, not an object"),
        ('{"messages": [\n{"role": "user"},\n{"role": "x"}]}', 3, "message 2: unknown role"),
        ('{"meta": {"messages": [{"a": 1}]},\n"messages": [\n{"role": "user"},\n{"role": "x"}]}', 4, "message 2"),
        (lines(HI, {"role": "x"}), 2, "message 2: unknown role"),
        (lines(HI) + "\n\n\nnot json", 4, "not JSON"),
        (lines(HI) + "\n\n{}", 3, "it has no role"),
        (lines(HI, 7), 2, "not a number"),
        (lines({"messages": [HI]}, {"messages": [HI, {}]}), 2, "message 2: it has no role"),
        (lines({"messages": [HI]}, HI), 1, "message 1: it has no role"),
        (json.dumps({"role": "robot"}), 1, "unknown role"),
    ],
)
def test_a_refusal_is_one_line_with_file_line_and_what_is_wrong(
    data: str | bytes, line: int | None, words: str
) -> None:
    with pytest.raises(InputError) as refused:
        read(data)

    message = str(refused.value)
    assert message.startswith("file.json: ")
    assert words in message
    assert "\n" not in message
    assert len(message) < 300
    if line is not None:
        assert re.search(rf"line {line}\b", message), message


def test_a_refusal_quotes_no_text_of_the_transcript() -> None:
    for data in ('[{"role": "user", "content": "hunter2" bad', '[{"role": "hunter2 is the password of the database"}]'):
        with pytest.raises(InputError) as refused:
            read(data)
        assert "hunter2" not in str(refused.value)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.binary(max_size=60)
    | st.text(st.sampled_from('[]{}",:\n\\ truenl0-.eE\ufeff"role""user"'), max_size=60).map(str.encode)
)
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    try:
        document = read(data)
    except InputError as error:
        document, refusal = None, str(error)

    if document is None:
        assert "\n" not in refusal
    else:
        assert read(document.dump(document.parts)).parts == document.parts


# --- lists --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "messages",
    [
        [],
        session(3),
        [{"role": role} for role in ROLES],
        [assistant(None), {"role": "assistant", "tool_calls": None}, {"role": "assistant", "tool_calls": []}],
        [user([]), user({}), user(7), result("", None), *pair(1, ["x"])],
    ],
)
def test_lists_of_messages_are_accepted(messages: list[Any]) -> None:
    require_messages(messages)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (None, "messages: a list is needed, not NoneType"),
        ((HI,), "messages: a list is needed, not tuple"),
        ({"messages": [HI]}, "messages: a list is needed, not dict"),
        ([HI, 7], "messages: message 2: an object with a role is needed, not a number"),
        ([object()], "messages: message 1: an object with a role is needed, not object"),
        ([{"role": "robot"}], "messages: message 1: unknown role 'robot'"),
    ],
)
def test_other_things_are_refused(messages: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(words)}"):
        require_messages(messages)


def test_rows_that_a_host_archived_are_no_part_of_the_conversation_and_are_written_back() -> None:
    old = {"role": "user", "content": "long ago", "active": 0, "compacted": 1}
    live = {"role": "user", "content": "now", "active": 1, "compacted": 0}
    data = json.dumps({"id": "s", "messages": [old, live]}) + "\n"

    for text in (data, data * 2):
        document = read_document(text.encode(), "export.jsonl")
        assert all(part == [live] for part in document.parts)
        assert document.dump(document.parts) == text
