"""The token estimate: what counts, what it costs, and what it must never do."""

from __future__ import annotations

from typing import Any

import pytest
from builders import assistant, call, result, text, user
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev.tokens import (
    IMAGE_TOKENS,
    MESSAGE_OVERHEAD,
    content_text,
    estimate_tokens,
    message_tokens,
    value_tokens,
)


@pytest.mark.parametrize(
    ("sample", "least", "most"),
    [
        ("", 0, 0),
        ("hello", 1, 2),
        ("The quick brown fox jumps over the lazy dog.", 9, 13),
        ("def parse(line: str) -> list[int]:\n    return [int(part) for part in line.split(',')]\n", 25, 40),
        ("getUserAccountByEmailAddress", 4, 12),
        ("1234567890" * 10, 33, 50),
        ("漢字仮名交じり文" * 10, 70, 110),
        ("Привет мир", 5, 14),
        ("{" * 100, 20, 60),
        (" " * 100, 1, 10),
    ],
)
def test_estimates_stand_where_tokenizers_do(sample: str, least: int, most: int) -> None:
    assert least <= estimate_tokens(sample) <= most


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.text(max_size=300), st.text(max_size=300))
def test_more_text_is_never_fewer_tokens_by_more_than_a_seam(left: str, right: str) -> None:
    """Joining may merge what touches at the seam, and loses nothing else."""
    both = estimate_tokens(left + right)

    assert both >= max(estimate_tokens(left), estimate_tokens(right)) - 3
    assert both <= estimate_tokens(left) + estimate_tokens(right) + 3


@pytest.mark.parametrize("sample", ["\ud800", "\x00", "\ufeff", "\udfff" * 50, "\r\n" * 50])
def test_odd_characters_are_counted_and_not_refused(sample: str) -> None:
    assert estimate_tokens(sample) >= 0


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 100_000, 1_000_000])
def test_long_texts_are_sampled_to_the_same_estimate(size: int) -> None:
    line = "2024-01-01 12:00:00 INFO worker.py:231 finished job 4411 in 12 ms\n"
    whole = (line * (size // len(line) + 1))[:size]

    assert estimate_tokens(whole) == pytest.approx(estimate_tokens(line * 100) * size / (len(line) * 100), rel=0.02)


def test_text_of_one_kind_at_the_end_of_a_long_one_is_seen() -> None:
    dense = "漢" * 600_000

    assert estimate_tokens("a " * 300_000 + dense) > estimate_tokens("a " * 300_000) * 1.3


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("plain", "plain"),
        (None, ""),
        (5, ""),
        ({"text": "x"}, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "image_url", "image_url": {"url": "data:AAA"}}, {"type": "text", "text": "a"}], "a"),
        ([None, 5, "loose", {"text": 5}, {"text": "kept"}], "kept"),
    ],
)
def test_the_text_of_a_content(content: Any, expected: str) -> None:
    assert content_text(content) == expected


def test_images_count_by_the_piece_and_not_by_their_data() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 900_000}}

    assert value_tokens([image]) == IMAGE_TOKENS
    assert value_tokens([image, {"type": "text", "text": "hello"}, image]) == 2 * IMAGE_TOKENS + estimate_tokens(
        "hello"
    )


@pytest.mark.parametrize("content", [None, "", []])
def test_nothing_counts_nothing(content: Any) -> None:
    assert value_tokens(content) == 0


def test_a_message_counts_its_text_and_its_calls() -> None:
    plain = assistant("I look.")
    calling = assistant("I look.", call("a", "grep", {"pattern": "def parse"}), call("b", "cat", {"path": "x.py"}))

    assert message_tokens(plain) == MESSAGE_OVERHEAD + estimate_tokens("I look.")
    arguments = estimate_tokens('{"pattern": "def parse"}') + estimate_tokens('{"path": "x.py"}')
    names = estimate_tokens("grep") + estimate_tokens("cat")
    assert message_tokens(calling) == message_tokens(plain) + 2 * MESSAGE_OVERHEAD + names + arguments


def test_reasoning_and_private_fields_are_not_counted() -> None:
    more = {"reasoning": text(9_000), "reasoning_content": text(9_000), "_db_id": 7, "timestamp": 5.0}

    assert message_tokens({**assistant("x"), **more}) == message_tokens(assistant("x"))


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": "assistant", "tool_calls": "odd"},
        {"role": "assistant", "tool_calls": [None, 5, {"function": None}, {"function": {"name": None}}]},
        result("a", {"nested": [1, 2, {"deep": None}]}),
        user(True),
    ],
)
def test_odd_messages_are_counted_and_not_refused(message: dict[str, Any]) -> None:
    assert message_tokens(message) >= MESSAGE_OVERHEAD
