"""The tool `jev_compact_select`: what it takes, and that it always answers with a JSON object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes_jev.egress import Gate
from hermes_jev.errors import InputError
from hermes_jev.select_tool import SCHEMA, run

TALK = [{"role": "user" if at % 2 == 0 else "assistant", "content": f"turn {at}"} for at in range(12)]


def sessions(name: str) -> list[dict[str, Any]]:
    if name != "known":
        raise InputError(f"it holds no session {name!r}")
    return TALK


def called(arguments: Any, current: str = "") -> dict[str, Any]:
    reply = json.loads(run(arguments, current, sessions, Gate(), {"judge": "lexical"}))
    assert isinstance(reply, dict)
    return reply


def test_messages_or_a_session_or_the_current_one() -> None:
    given = called({"messages": TALK})
    assert (given["status"], len(given["fates"]), given["judge"]) == ("ok", 12, "lexical")
    assert "[KEEP VERBATIM] assistant: turn 11" in given["digest"]
    for other in (called({"messages": {"messages": TALK}}), called({"session_id": "known"}), called({}, "known")):
        assert other["fates"] == given["fates"]


def test_keep_last_and_limit_are_taken_also_as_text() -> None:
    assert called({"messages": TALK, "keep_last": "12", "limit": 100.0})["counts"]["keep"] == 12
    assert len(called({"messages": TALK, "limit": "100"})["digest"]) <= 100


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        None,
        "text",
        {"messages": "text"},
        {"messages": [1]},
        {"messages": [{"content": "no role"}]},
        {"session_id": "unknown"},
        {"messages": TALK, "keep_last": -1},
        {"messages": TALK, "limit": "many"},
        {"messages": TALK, "limit": []},
    ],
)
def test_what_cannot_be_used_is_a_plain_error(arguments: Any) -> None:
    reply = called(arguments)
    assert set(reply) == {"error"}
    assert reply["error"].startswith("jev_compact_select: ")


def test_the_schema_names_every_argument_with_one_type() -> None:
    properties = SCHEMA["parameters"]["properties"]
    assert set(properties) == {"messages", "session_id", "keep_last", "limit", "task"}
    assert all(isinstance(value["type"], str) for value in properties.values())
