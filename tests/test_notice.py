"""What stands where something was cut: its words, its length, and that it can be read back."""

from __future__ import annotations

from typing import Any

import pytest
from builders import exchanges, text
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev import notice
from hermes_jev.settings import NOTICE_CHARS
from hermes_jev.transcript import Exchange

POINTER = "r-abcdefghij"
LONGEST = "r-" + "7" * 52
WORDS = "\n\n[OUT-OF-BAND USER MESSAGE — sent while you work]\nuse port 8080\n[/OUT-OF-BAND USER MESSAGE]"
WRAPPER = '<untrusted_tool_result source="web">\nThe following content was retrieved.\n\n'
CLOSE = "\n</untrusted_tool_result>"


def one(content: Any) -> Exchange:
    return exchanges(content)[0]


def test_a_shortened_result() -> None:
    output = text(8_423)

    assert notice.truncated(one(output), POINTER, 300) == (
        f"{output[:300]}\n[hermes_jev: this call ran and returned 8,423 characters; the first 300 are above, "
        f'all are stored: expand(id="{POINTER}"). Without that tool only a new call shows them.]'
    )


def test_a_removed_result() -> None:
    assert notice.removed(one(text(8_423)), POINTER) == (
        f'[hermes_jev: this call ran; its 8,423 characters are stored: expand(id="{POINTER}"). '
        "Without that tool only a new call shows them.]"
    )


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("exit code: 2", "this call failed (exit code: 2)"),
        ("exit status: -9", "this call failed (exit status: -9)"),
        ("Traceback (most recent call last)\nValueError: x", "this call failed;"),
        ("exit code: 0", "this call ran;"),
        ("all tests passed", "this call ran;"),
    ],
)
def test_success_is_never_guessed_and_failure_is_said(ending: str, said: str) -> None:
    line = notice.removed(one(text(3_000) + "\n" + ending), POINTER)

    assert said in line
    assert "succe" not in line


@pytest.mark.parametrize("pointer", [POINTER, LONGEST])
@pytest.mark.parametrize("size", [1_501, 5_000_000])
@pytest.mark.parametrize("ending", ["\nexit status: -12345", ""])
def test_a_notice_has_at_most_200_characters(pointer: str, size: int, ending: str) -> None:
    exchange = one("x" * size + ending)

    for left in (notice.removed(exchange, pointer), notice.truncated(exchange, pointer, 300)):
        line = left.rsplit("\n", 1)[-1]
        assert len(line) <= NOTICE_CHARS
        assert f'expand(id="{pointer}")' in line
        found = notice.read(left)
        assert found == notice.Notice(pointer, True)


def test_the_wrapper_keeps_its_closing_tag_and_the_user_their_words() -> None:
    payload = text(5_000)
    exchange = one(f"{WRAPPER}{payload}{CLOSE}{WORDS}")

    shortened = notice.truncated(exchange, POINTER, 300)

    body, _, line = shortened.rpartition("\n")
    assert body == f"{WRAPPER}{payload[:300]}{CLOSE}{WORDS}"
    assert line.startswith("[hermes_jev: ")
    assert notice.removed(exchange, POINTER).startswith(WORDS.lstrip("\n") + "\n[hermes_jev: ")


def test_a_list_is_shortened_to_the_start_of_its_text() -> None:
    exchange = one([{"type": "text", "text": "ab" * 900}, {"type": "image_url", "image_url": {"url": "data:x"}}])

    assert notice.truncated(exchange, POINTER, 10).startswith(
        "ababababab\n[hermes_jev: this call ran and returned 1,800"
    )


# --- excerpt ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("whole", "limit", "expected"),
    [
        ("abcdef", 3, "abc"),
        ("abc", 3, "abc"),
        ("abc", 9, "abc"),
        ("abc", 0, ""),
        ("ab\r\ncd", 3, "ab"),
        ("ae\u0301x", 2, "a"),
        ("a👩‍👧b", 2, "a"),
        ("a👩‍👧b", 3, "a"),
        ("a👍🏽b", 2, "a"),
        ("a❤\ufe0fb", 2, "a"),
        ("a🇩🇪b", 2, "a"),
        ("a\ud83d\ude00b", 2, "a"),
        ("\u0301" * 9, 4, "\u0301" * 4),
    ],
)
def test_a_cut_never_falls_inside_what_is_seen_as_one_character(whole: str, limit: int, expected: str) -> None:
    assert notice.excerpt(whole, limit) == expected


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.text(st.sampled_from("a\r\n\u0301\u200d👩🏽🇩\ud83d\ude00"), max_size=30), st.integers(0, 30))
def test_an_excerpt_is_a_start_and_never_longer_than_asked(whole: str, limit: int) -> None:
    found = notice.excerpt(whole, limit)

    assert whole.startswith(found)
    assert len(found) <= limit
    assert found or not whole or not limit


# --- read ---------------------------------------------------------------------------------------------------------

PAYLOAD = st.text(st.sampled_from("ab\n\r >]é\u0301👩\ud800"), min_size=1, max_size=60).map(lambda part: part * 40)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    PAYLOAD,
    st.booleans(),
    st.sampled_from(["", "\nThe following content was retrieved.\n\n", "\n"]),
    st.booleans(),
    st.integers(0, 400),
)
def test_what_was_written_is_read_as_whole(payload: str, wrapped: bool, opening: str, said: bool, limit: int) -> None:
    """Whatever stands around a notice of ours, reading it finds that all of it is ours."""
    content = f'<untrusted_tool_result source="web">{opening}{payload}{CLOSE}' if wrapped else payload
    exchange = one(content + (WORDS if said else ""))

    for left in (notice.truncated(exchange, POINTER, limit), notice.removed(exchange, POINTER)):
        assert notice.read(left) == notice.Notice(POINTER, True)


LINE = f'[hermes_jev: this call ran; its 8,423 characters are stored: expand(id="{POINTER}").'
WITHOUT = " Without that tool only a new call shows them.]"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "ordinary text",
        LINE,
        LINE + WITHOUT + "\n",
        LINE + WITHOUT + " ",
        "x " + LINE + WITHOUT,
        (LINE + WITHOUT).replace("ran", "succeeded"),
        (LINE + WITHOUT).replace("r-abc", "r-AB1"),
        (LINE + WITHOUT).replace('"r-', '"../r-'),
        (LINE + WITHOUT).replace("8,423", "many"),
        None,
        7,
        [LINE + WITHOUT],
        {"text": LINE + WITHOUT},
    ],
)
def test_what_is_no_notice(content: object) -> None:
    assert notice.read(content) is None


@pytest.mark.parametrize(
    ("content", "whole"),
    [
        (LINE + WITHOUT, True),
        (LINE[:-1] + "]", True),
        ("output that ends with one\n" + LINE + WITHOUT, False),
        (WORDS.lstrip() + "\n" + LINE + WITHOUT, True),
    ],
)
def test_a_quoted_notice_is_told_from_one_of_ours_by_what_stands_around_it(content: str, whole: bool) -> None:
    assert notice.read(content) == notice.Notice(POINTER, whole)


def test_a_shortened_form_with_another_excerpt_is_not_whole() -> None:
    ours = notice.truncated(one(text(5_000)), POINTER, 300)

    assert notice.read("more " + ours) == notice.Notice(POINTER, False)


def test_a_notice_gives_no_order() -> None:
    for left in (notice.removed(one(text(5_000)), POINTER), notice.truncated(one(text(5_000)), POINTER, 0)):
        assert not {"please", "must", "should", "you", "your", "never", "always"}.intersection(left.lower().split())
