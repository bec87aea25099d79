"""Session files of Claude Code, read as chat messages."""

from __future__ import annotations

import json
from typing import Any

from hermes_jev.inputs import read_document
from hermes_jev.prune import prune
from hermes_jev.restore import restore
from hermes_jev.store import Store
from hermes_jev.transcript import Transcript


def event(role: str, content: Any, **more: Any) -> dict[str, Any]:
    """One line; `mid` is the id of the assistant's message."""
    message = {"role": role, "content": content}
    if "mid" in more:
        message["id"] = more.pop("mid")
    return {"type": role, "uuid": "u", "sessionId": "s", "isSidechain": False, "message": message, **more}


def use(name: str, call: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def result(call: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


SESSION = (
    {"type": "summary", "summary": "An earlier session", "leafUuid": "x"},
    event("user", "Fix the parser, please."),
    event("assistant", [{"type": "thinking", "thinking": "hm"}], mid="m1"),
    event("assistant", [text("I look at both.")], mid="m1"),
    event("assistant", [use("Read", "a", path="a.py")], mid="m1"),
    event("user", [result("a", "A" * 4_000)]),
    event("assistant", [use("Read", "b", path="b.py")], mid="m1"),
    event("user", [result("b", [text("B" * 4_000), text("more")])]),
    {"type": "system", "content": "Conversation compacted", "sessionId": "s"},
    event("assistant", [text("Done.")], mid="m2"),
    event("user", [text("Thanks."), text("And the tests?")]),
)


def test_a_session_becomes_chat_messages() -> None:
    """The lines of one turn are one message, also where results of parallel calls stand between them."""
    document = read_document(lines(*SESSION), "log.jsonl")
    (messages,) = document.parts
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert messages[0]["content"] == "Fix the parser, please."
    assert messages[1]["content"] == [{"type": "thinking", "thinking": "hm"}, text("I look at both.")]
    assert [call["function"] for call in messages[1]["tool_calls"]] == [
        {"name": "Read", "arguments": '{"path": "a.py"}'},
        {"name": "Read", "arguments": '{"path": "b.py"}'},
    ]
    assert [(m["tool_call_id"], m["content"]) for m in messages[2:4]] == [
        ("a", "A" * 4_000),
        ("b", [text("B" * 4_000), text("more")]),
    ]
    assert messages[4]["content"] == "Done."
    assert messages[5]["content"] == [text("Thanks."), text("And the tests?")]
    assert len(Transcript.parse(messages).completed) == 2


def test_what_is_written_is_chat_messages_that_can_be_read_again() -> None:
    document = read_document(lines(*SESSION), "log.jsonl")
    again = read_document(document.dump(document.parts).encode(), "again")
    assert (again.shape, again.parts) == ("lines", document.parts)


def test_side_chains_and_sessions_are_conversations_of_their_own() -> None:
    document = read_document(
        lines(
            event("user", "main"),
            event("user", "side", isSidechain=True, agentId="7"),
            event("assistant", "answer of the side", isSidechain=True, agentId="7"),
            event("assistant", "answer"),
            event("user", "another", sessionId="t"),
        ),
        "log.jsonl",
    )
    assert document.shape == "sessions"
    assert [[message["content"] for message in part] for part in document.parts] == [
        ["main", "answer"],
        ["side", "answer of the side"],
        ["another"],
    ]
    rows = [json.loads(line) for line in document.dump(document.parts).splitlines()]
    assert [row["id"] for row in rows] == ["s", "s/7", "t"]


def test_one_line_and_lines_without_an_id() -> None:
    assert read_document(lines(event("user", "alone")), "x").parts == ([{"role": "user", "content": "alone"}],)
    document = read_document(lines(event("assistant", "one"), event("assistant", "two")), "x")
    assert [message["content"] for message in document.parts[0]] == ["one", "two"]


def test_such_a_session_is_pruned_and_restored(tmp_path: Any) -> None:
    (messages,) = read_document(lines(*SESSION), "log.jsonl").parts
    store = Store(tmp_path)
    settings = {"pin_last_calls": 0, "output_threshold": 1.0, "call_threshold": 1.0}
    pruned = prune(messages, "lexical", store, settings)
    assert len(pruned.messages[2]["content"]) < 1_500
    assert restore(pruned.messages, store) == messages
