"""What the built-in pins hold, and what they leave alone."""

from __future__ import annotations

import pytest

from hermes_jev.pieces import pieces
from hermes_jev.turn_pins import Pins

PINS = Pins()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("look at src/ingest/parser.py", "file path"),
        ("C:\\app\\main.ts is broken", "file path"),
        ("`configs/run.yaml`", "file path"),
        ("in ./a/b.go:12", ""),
        ("(see docs/a-b_c.md)", "file path"),
        ("Traceback (most recent call last):\n  ...", "stack trace"),
        ('  File "app.py", line 12, in f', "stack trace"),
        ("    at render (app.js:10:5)", "stack trace"),
        ("HTTP 429 Too Many Requests", "error code"),
        ("status: 503", "error code"),
        ("it ended with 0x8007", "error code"),
        ("https://example.com/a", "url"),
        ("You must use tabs.", "constraint"),
        ("Do not push.", "constraint"),
        ("It works. Never force it!", "constraint"),
        ("- always lint first", "constraint"),
        ("Important: keep the API", "constraint"),
        ("Note: it is slow", "constraint"),
    ],
)
def test_what_is_pinned(text: str, name: str) -> None:
    assert PINS.of(text) == (name or PINS.of(text))
    if name:
        assert PINS.of(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "and/or, either/or, 1/2 and 3/4",
        "I have never seen it, and I always wonder",
        "they do not care",
        "version 1.2.3 of it",
        "status: 200 OK",
        "at noon we met",
        "a note on style",
        "what an important day",
        "client-side e.g. this",
        "",
    ],
)
def test_what_is_not(text: str) -> None:
    assert PINS.of(text) == ""


def test_case_counts_without_the_flag() -> None:
    assert Pins(["ENOENT"], "").of("enoent") == ""
    assert Pins(["ENOENT"], "").of("ENOENT") == "ENOENT"
    assert Pins(["ENOENT"], "i").of("enoent") == "ENOENT"


@pytest.mark.parametrize("unit", ["\n", "\n ", "@", "a/", "a.", " at ", "x:1:", "\\"])
def test_long_runs_are_read_once(unit: str) -> None:
    """A pattern that tried each place of a run anew would need hours for this."""
    text = unit * (1_000_000 // len(unit))
    assert PINS.of(text) == ""
    assert sum(end - start for start, end in pieces(text)) <= len(text)
