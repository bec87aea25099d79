"""From what a service says when it does not answer to one of our errors: statuses, words, waits.

Of an error body only a short word from a closed form is ever kept: bodies echo what was sent, keys included.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC

from ..errors import JudgeAuth, JudgeBadRequest, JudgeError, JudgeTooLarge, JudgeTransient

TOO_LARGE = frozenset({"max_tokens_exceeded", "context_length_exceeded", "exceed_context_size_error"})
"""Words for a request that is too long, which services send with several statuses."""

NOT_AGAIN = frozenset({"daily_quota", "insufficient_quota"})
"""Words for a limit that a retry within seconds does not lift."""

_NUMBERED = {3036: "daily_quota", 3040: "capacity"}
"""What Cloudflare's error numbers stand for."""

# No digits: a service that echoed a key or a path here would not get it into a receipt.
_WORD = re.compile(r"[a-z]+(?:_[a-z]+)*")
_WORD_CHARS = 40
_DEPTH = 5
_ENTRIES = 5
_NESTED_CHARS = 10_000

_WAITING = (402, 429, 503, 529)
"""Statuses with which services say how long to stay away."""


class Retryable(JudgeTransient):
    """A failure that may pass, with the seconds the service asked to wait, if it did."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


def status_error(status: int, word: str, wait_s: float | None = None) -> JudgeError:
    """The error for a status that is no success. Its text is the status and the short word, nothing of the body."""
    message = f"HTTP {status} {word}".rstrip()
    if status == 413 or (400 <= status < 500 and word in TOO_LARGE):
        return JudgeTooLarge(message)
    if status in (401, 402, 403):
        return JudgeAuth(message)
    if status in (408, 429) or status >= 500:
        return JudgeTransient(message) if word in NOT_AGAIN else Retryable(message, wait_s)
    return JudgeBadRequest(message)


def asked_to_wait(status: int, headers: Mapping[str, str], now: float) -> float:
    """Seconds for which the service wants no request at all, 0 if it did not say so. `now` is Unix time."""
    return (retry_after(headers, now) or 0.0) if status in _WAITING else 0.0


def was_read(status: int) -> bool:
    """Whether a service may have worked, and charges, for a request that it answered with this status."""
    return status < 300 or status == 408 or status >= 500


def error_word(body: object) -> str:
    """The service's short word for what went wrong, or "": a known one if there is any, else the first.

    It stands as `error_type`, `code` or `type` at the top, or under `error`, `errors`, `detail`, `metadata` or
    `message`, where a router may have put the other's body as text. A list under `detail` echoes the request and is
    not read.
    """
    words = list(_words(body, _DEPTH))
    return next((word for word in words if word in TOO_LARGE | NOT_AGAIN), words[0] if words else "")


def _words(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        value = _nested(value)
    if not isinstance(value, Mapping) or depth == 0:
        return
    for field in ("error_type", "code", "type"):
        word = _word(value.get(field))
        if word:
            yield word
    for place in ("error", "detail", "message", "metadata", "raw"):
        yield from _words(value.get(place), depth - 1)
    errors = value.get("errors")
    for entry in errors[:_ENTRIES] if isinstance(errors, list) else ():
        yield from _words(entry, depth - 1)


def _word(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return _NUMBERED.get(value, "")
    if isinstance(value, str) and len(value) <= _WORD_CHARS and _WORD.fullmatch(value):
        return value
    return ""


def _nested(text: str) -> object:
    if not text.lstrip().startswith("{") or len(text) > _NESTED_CHARS:
        return None
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait as the service asks: `retry-after-ms`, else `retry-after` in seconds or as an HTTP date.

    `now` is Unix time. None where nothing usable is said: absent, negative, not finite, a date gone by.
    """
    candidates = (_number(headers.get("retry-after-ms"), 0.001), _seconds(headers.get("retry-after"), now))
    return next((wait for wait in candidates if wait is not None and math.isfinite(wait) and wait >= 0), None)


def _number(text: str | None, scale: float) -> float | None:
    try:
        return None if text is None else float(text) * scale
    except ValueError:
        return None


def _seconds(text: str | None, now: float) -> float | None:
    seconds = _number(text, 1.0)
    if text is None or seconds is not None:
        return seconds
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
