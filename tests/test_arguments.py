"""The input of a call, shortened where its long values stand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev.arguments import LONG_CHARS, LONG_VALUE_CHARS, pointers_in, shortened

POINTER = "r-abcdefghij"
LONG = "line of the file\n" * 200
KEY = "k" * 450


def short(arguments: Any) -> str:
    text = shortened(arguments if isinstance(arguments, str) else json.dumps(arguments), POINTER)
    assert text is not None
    json.loads(text)
    return text


def test_long_values_leave_and_short_ones_stay() -> None:
    found = json.loads(short({"path": "src/a.py", "content": LONG, "mode": "w"}))

    assert found == {
        "path": "src/a.py",
        "content": '[hermes_jev: 3,400 characters, stored: expand(id="r-abcdefghij", part="arguments")]',
        "mode": "w",
    }


def test_every_other_byte_stays() -> None:
    before = '{ "n" : 1.10 ,\n "a":2, "content":' + json.dumps(LONG) + ', "a": 3e2, "漢": "\\u6f22" }'
    notice = json.dumps('[hermes_jev: 3,400 characters, stored: expand(id="r-abcdefghij", part="arguments")]')

    assert short(before) == before.replace(json.dumps(LONG), notice)


def test_long_texts_inside_lists_and_objects_leave_too_and_keys_never() -> None:
    found = json.loads(short({"edits": [{"old": LONG, "new": "x"}, {"old": "y", KEY: 1}]}))

    assert found["edits"][0]["new"] == "x"
    assert found["edits"][0]["old"].startswith("[hermes_jev: ")
    assert KEY in found["edits"][1]


def test_a_list_that_is_long_without_long_texts_leaves_whole() -> None:
    rows = list(range(1_000))
    found = json.loads(short({"rows": rows, "name": "n"}))

    assert found["name"] == "n"
    assert found["rows"] == (
        f'[hermes_jev: {len(json.dumps(rows)):,} characters, stored: expand(id="r-abcdefghij", part="arguments")]'
    )
    assert len(json.dumps(rows)) > LONG_VALUE_CHARS


@pytest.mark.parametrize(
    "odd",
    [
        "",
        "{}",
        "not json " * 200,
        json.dumps(LONG),
        json.dumps([LONG]),
        '{"a": NaN, "b": "' + "x" * 900 + '"}',
        '{"a": "' + "x" * 900,
        '{"a": "' + "x" * 900 + '"} tail',
        "[" * 100_000,
        '{"a": ' * 5_000 + "1" + "}" * 5_000,
        json.dumps({"a": "x" * LONG_CHARS}),
        json.dumps({str(n): n for n in range(900)}),
    ],
)
def test_what_cannot_be_shortened_well_is_left_alone(odd: str) -> None:
    assert shortened(odd, POINTER) is None


def test_the_pointers_of_a_short_input_are_read() -> None:
    assert pointers_in(short({"a": LONG, "b": [LONG]})) == [POINTER, POINTER]
    assert pointers_in(json.dumps({"a": "[hermes_jev: something else]"})) == []


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    plain | st.just(LONG) | st.just("漢" * 500),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.dictionaries(st.text(), values, max_size=5), st.booleans())
def test_it_is_shorter_json_with_the_same_keys_and_a_second_time_changes_nothing(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    found = shortened(text, POINTER)
    if found is not None:
        assert len(found) <= len(text) - 200
        assert list(json.loads(found)) == list(value)
        assert shortened(found, POINTER) is None
