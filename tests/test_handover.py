"""Messages as the host takes them back."""

from __future__ import annotations

from typing import Any

from builders import assistant, call, result, user

from hermes_jev.handover import for_host

EXTRAS: dict[str, Any] = {"api_content": "old", "reasoning_details": [{"signed": "x"}], "reasoning": "because"}


def test_private_keys_go_and_every_message_is_new() -> None:
    before = [{**user("go"), "_db_persisted": True}, {**assistant("ok"), **EXTRAS, "_row_id": 5}]

    after = for_host(before, before)

    assert after == [user("go"), {**assistant("ok"), **EXTRAS}]
    assert all(new is not old for new, old in zip(after, before, strict=True))
    assert after[1]["reasoning_details"] is not before[1]["reasoning_details"]


def test_other_copies_of_what_was_shortened_go_too() -> None:
    """The host would send those instead."""
    old = {**assistant("a long text", call("c1")), **EXTRAS}
    tool = result("c1", "out", api_content="kept")

    (new, same) = for_host([old, tool], [{**old, "content": "short"}, {**tool, "content": "cut"}])

    assert new == {**assistant("short", call("c1")), "reasoning": "because"}
    assert same["api_content"] == "kept"
