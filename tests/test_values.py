"""Values go to bytes and back unchanged, type included, or are refused; pointers are what they say."""

from __future__ import annotations

import hashlib
import math
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev.errors import StoreError
from hermes_jev.store.values import (
    MAX_DEPTH,
    content_hash,
    decode,
    encode,
    is_pointer_id,
    pointer_hash,
    pointer_id,
    same,
)

EXACT = settings(deadline=None, derandomize=True, database=None)

TEXT = st.text(st.characters())
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=20
)


def nested(levels: int) -> Any:
    value: Any = "leaf"
    for _ in range(levels):
        value = [value]
    return value


@EXACT
@given(TEXT)
def test_any_text_comes_back(text: str) -> None:
    back = decode(encode(text))
    assert type(back) is str
    assert back == text


@EXACT
@given(JSON)
def test_any_json_value_comes_back(value: Any) -> None:
    back = decode(encode(value))
    assert same(back, value)
    assert repr(back) == repr(value)


@pytest.mark.parametrize(
    "text",
    ["", "\0", "\ufeffBOM", "a\r\nb\rc\n", "\ud83d", "\ude00-\ud83d", "\ud83d\ude00", "\U0001f600", "\u2028\x7f\x85"],
)
def test_texts_that_other_encodings_change(text: str) -> None:
    assert decode(encode(text)) == text
    assert decode(encode([text, {text: text}])) == [text, {text: text}]


def test_two_lone_surrogates_are_not_the_character_they_spell() -> None:
    assert encode("\ud83d\ude00") != encode("\U0001f600")
    assert encode(["\ud83d\ude00"]) != encode(["\U0001f600"])


@pytest.mark.parametrize(
    "value",
    [True, False, None, 0, -0.0, 0.1, 1e308, 5e-324, math.inf, -math.inf, math.nan, 10**400, -(2**63), [], {}, [[]]],
)
def test_scalars_and_empty_values_keep_their_type(value: Any) -> None:
    assert same(decode(encode(value)), value)


@pytest.mark.parametrize("wide", [10**5000, -(10**5000), 2**2048], ids=["huge", "minus", "first"])
def test_integers_beyond_the_decimal_limit(wide: int) -> None:
    value = {"n": wide, "text": "i0", "list": [wide, 1, -1, "", True, None, 0.5]}
    limit = sys.get_int_max_str_digits()
    data = encode(value)
    try:
        sys.set_int_max_str_digits(640)
        assert same(decode(data), value)
    finally:
        sys.set_int_max_str_digits(limit)


def test_an_integer_of_640_digits_is_read_where_the_limit_is_lowest() -> None:
    value = 2**2048 - 1
    limit = sys.get_int_max_str_digits()
    data = encode(value)
    try:
        sys.set_int_max_str_digits(640)
        assert decode(data) == value
    finally:
        sys.set_int_max_str_digits(limit)


def test_order_of_keys_is_kept() -> None:
    assert list(decode(encode({"b": 1, "a": 2, "": 3}))) == ["b", "a", ""]


class Text(str):
    pass


class Explosive(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no method of a foreign class may run")


class Equal:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize(
    "value",
    [
        (1, 2),
        [("a",)],
        {1: "a"},
        {"a": {None: 1}},
        b"bytes",
        bytearray(b"a"),
        {1, 2},
        Text("a"),
        [Text("a")],
        {Text("a"): 1},
        Explosive(a=1),
        [Explosive(a=1)],
        Equal(),
        {"a": [Equal()]},
        1j,
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_exact_bytes_is_refused(value: Any) -> None:
    with pytest.raises(StoreError, match="cannot be stored exactly"):
        encode(value)


def test_a_float_whose_bits_json_does_not_keep_is_refused() -> None:
    assert same(decode(encode([math.nan])), [math.nan])
    with pytest.raises(StoreError, match="cannot be stored exactly"):
        encode([math.copysign(math.nan, -1.0)])


def test_depth_is_bounded_and_cycles_are_refused() -> None:
    assert decode(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    for levels in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(StoreError, match="nested deeper"):
            encode(nested(levels))
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(StoreError, match="nested deeper"):
        encode(cycle)


def test_a_value_near_the_recursion_limit_is_an_error_of_the_store() -> None:
    def at_the_bottom(frames: int) -> bytes:
        return encode(nested(MAX_DEPTH)) if frames == 0 else at_the_bottom(frames - 1)

    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    with pytest.raises(StoreError, match="nested too deeply"):
        at_the_bottom(sys.getrecursionlimit() - depth - MAX_DEPTH // 2)


@pytest.mark.parametrize(
    "data", [b"", b"x", b"?abc", b"s\xff", b"j", b"j{", b"jnul", b"w" + b'"izz"', b"j" + b"[" * 100_000, b"j\xff"]
)
def test_bytes_that_were_never_encoded_are_damage(data: bytes) -> None:
    with pytest.raises(StoreError, match="damaged"):
        decode(data)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, True), (1, 1.0), (0.0, -0.0), ("a", ["a"]), ([1], [1.0]), ({"a": 1, "b": 1}, {"b": 1, "a": 1}), ([1], [1, 2])],
)
def test_same_is_stricter_than_equal(left: Any, right: Any) -> None:
    assert not same(left, right)
    assert same(left, left)
    assert same(right, right)


def test_content_hash_is_sha256() -> None:
    assert content_hash(b"abc") == hashlib.sha256(b"abc").hexdigest()


@EXACT
@given(TEXT, TEXT, TEXT)
def test_parts_of_an_exchange_do_not_run_into_each_other(tool: str, arguments: str, extra: str) -> None:
    moved = pointer_hash(tool + extra, arguments, b"r") == pointer_hash(tool, extra + arguments, b"r")
    assert moved == (extra == "")


@EXACT
@given(st.binary(min_size=32, max_size=32), st.integers(10, 52))
def test_every_pointer_has_the_syntax_of_one(exchange: bytes, length: int) -> None:
    pointer = pointer_id(exchange, length)
    assert is_pointer_id(pointer)
    assert len(pointer) == 2 + length
    assert pointer.startswith(pointer_id(exchange))


def test_a_pointer_is_the_same_in_every_process() -> None:
    assert pointer_id(pointer_hash("terminal", '{"command": "ls"}', encode("a\nb"))) == "r-ai2lzbcouu"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "r-",
        "r-abcdefghi",
        "r-abcdefghij\n",
        " r-abcdefghij",
        "R-abcdefghij",
        "r-ABCDEFGHIJ",
        "r-abcdefgh10",
        "r-../../../../etc",
        "../r-abcdefghij",
        "r-abcdefghij/..",
        "r-abcdefghıj",
        "r-" + "a" * 53,
        None,
        7,
        ["r-abcdefghij"],
    ],
)
def test_anything_else_is_no_pointer(text: object) -> None:
    assert not is_pointer_id(text)


def test_a_pointer_with_all_its_letters() -> None:
    assert is_pointer_id("r-abcdefghij")
    assert is_pointer_id("r-klmnopqrstuvwxyz234567")
