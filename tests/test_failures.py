"""What a service says when it does not answer: of every body only a short word, of every wait only seconds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_jev.errors import JudgeAuth, JudgeBadRequest, JudgeError, JudgeTooLarge, JudgeTransient
from hermes_jev.judge.failures import (
    NOT_AGAIN,
    TOO_LARGE,
    Retryable,
    asked_to_wait,
    error_word,
    status_error,
    was_read,
)

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"detail": {"error_type": "max_tokens_exceeded"}}, "max_tokens_exceeded"),
        ({"detail": {"error_type": "api_usage_error", "message": "secret words"}}, "api_usage_error"),
        ({"message": "Authentication failed", "error_type": "authentication_error"}, "authentication_error"),
        ({"error": {"error_type": "rate_limit_error"}}, "rate_limit_error"),
        ({"error": {"message": '{"detail":{"error_type":"max_tokens_exceeded"}}'}}, "max_tokens_exceeded"),
        ({"error": {"code": 400, "metadata": {"raw": '{"detail":{"error_type":"max_tokens_exceeded"}}'}}}, TOO_LARGE),
        (
            {"error": {"message": "words", "type": "invalid_request_error", "code": "context_length_exceeded"}},
            "context_length_exceeded",
        ),
        (
            {"error": {"code": 400, "message": "words", "type": "exceed_context_size_error"}},
            "exceed_context_size_error",
        ),
        ({"error": {"type": "insufficient_quota", "code": "insufficient_quota"}}, "insufficient_quota"),
        ({"error": {"type": "invalid_request_error", "code": None}}, "invalid_request_error"),
        ({"success": False, "errors": [{"code": 3036, "message": "words"}]}, "daily_quota"),
        ({"success": False, "errors": [{"code": 3040, "message": "words"}]}, "capacity"),
        ({"success": False, "errors": [{"code": 10000}, {"code": 3036}]}, "daily_quota"),
        ({"error": {"code": 429}}, ""),
        ({"error": {"code": True}}, ""),
        ({"error": "flat"}, ""),
        ({"detail": "Too many choices. Must have at most 255 choices."}, ""),
        ({"detail": [{"loc": ["body"], "msg": "Field required", "type": "missing", "input": "words"}]}, ""),
        ({"detail": [{"type": "x", "input": {"error_type": "max_tokens_exceeded"}}]}, ""),
        ({"detail": {"error_type": "The key apikey_1234 is wrong"}}, ""),
        ({"detail": {"error_type": "apikey_1234"}}, ""),
        ({"detail": {"error_type": "a" * 41}}, ""),
        ({"detail": {"error_type": ["x"]}}, ""),
        ({"error": {"message": "{not json"}}, ""),
        ({"error": {"message": '{"x": ' + " " * 10_000 + '"y"}'}}, ""),
        ("Internal Server Error", ""),
        (["error"], ""),
        (None, ""),
    ],
    ids=repr,
)
def test_of_an_error_body_only_a_short_word_is_kept(body: Any, word: Any) -> None:
    found = error_word(body)

    assert found in word if isinstance(word, frozenset) else found == word


def test_a_body_nested_without_end_is_left() -> None:
    body = "{}"
    for _ in range(50):
        body = json.dumps({"error": {"message": body}})[:9_000]

    assert error_word(json.loads('{"error":' * 40 + '{"code":"deep"}' + "}" * 40)) == ""
    assert error_word(body) == ""


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=50),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "errors", "detail", "message", "metadata", "raw", "code", "type", "error_type"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_the_word_has_no_room_for_anything_else(body: Any) -> None:
    word = error_word(body)

    assert len(word) <= 40
    assert not set(word) - set("abcdefghijklmnopqrstuvwxyz_")


@pytest.mark.parametrize(
    ("status", "word", "error"),
    [
        *[(status, "max_tokens_exceeded", JudgeTooLarge) for status in (400, 413, 422, 429)],
        (413, "", JudgeTooLarge),
        (400, "context_length_exceeded", JudgeTooLarge),
        (400, "exceed_context_size_error", JudgeTooLarge),
        (500, "max_tokens_exceeded", Retryable),
        *[(status, "", JudgeAuth) for status in (401, 402, 403)],
        (403, "customer_verification_required", JudgeAuth),
        *[(status, "", Retryable) for status in (408, 429, 500, 502, 503, 504, 524, 529, 599)],
        (429, "capacity", Retryable),
        *[(429, word, JudgeTransient) for word in sorted(NOT_AGAIN)],
        *[(status, "", JudgeBadRequest) for status in (300, 301, 302, 303, 307, 308, 400, 404, 405, 409, 422, 426)],
        (400, "api_usage_error", JudgeBadRequest),
    ],
)
def test_each_status_has_one_error(status: int, word: str, error: type[JudgeError]) -> None:
    found = status_error(status, word, 7.0)

    assert type(found) is error
    assert str(found) == f"HTTP {status} {word}".strip()
    if isinstance(found, Retryable):
        assert found.wait_s == 7.0


@pytest.mark.parametrize("status", [402, 429, 503, 529])
def test_some_statuses_ask_to_be_left_alone(status: int) -> None:
    assert asked_to_wait(status, {"retry-after": "60"}, NOW) == 60
    assert asked_to_wait(status, {}, NOW) == 0
    assert asked_to_wait(500, {"retry-after": "60"}, NOW) == 0


def test_what_was_refused_unread_is_not_charged() -> None:
    assert [
        status for status in (200, 204, 307, 400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 529) if was_read(status)
    ] == [
        200,
        204,
        408,
        500,
        529,
    ]
