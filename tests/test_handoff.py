"""What a handoff asks of a writer, and which sessions it can be asked about."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from builders import assistant, call, result, system, user

from hermes_jev.cli import main
from hermes_jev.errors import InputError
from hermes_jev.handoff import HEADINGS, dialogue, request, tail
from hermes_jev.history import read_session

SECRET = "ghp_" + "a1B2c3D4" * 5
TALK = [
    system("SYSTEM TEXT"),
    user("Fix the parser."),
    assistant("I look.", call("c1")),
    result("c1", "TOOL OUTPUT"),
    assistant(None, call("c2")),
    result("c2", ""),
    user([{"type": "text", "text": f"Use {SECRET} please."}]),
    assistant("Done."),
]


def test_the_dialogue_is_what_was_said_and_nothing_else() -> None:
    assert dialogue(TALK) == (
        f"user: Fix the parser.\n\nassistant: I look.\n\nuser: Use {SECRET} please.\n\nassistant: Done."
    )


def test_the_request_names_headings_length_session_and_search() -> None:
    asked = request("MATERIAL", "s-42")
    places = [asked.index(f"## {heading}") for heading in HEADINGS]
    assert places == sorted(places)
    for words in ("at most 1,200 words", "`s-42`", "session_search", "no list of identifiers", "MATERIAL"):
        assert words in asked
    assert "session_search" not in request("MATERIAL", "")


def test_the_tail_starts_at_a_line() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    assert text.endswith(tail(text, 50))
    assert tail(text, 50).startswith("line ")
    assert tail("short", 50) == "short"
    assert len(tail("x" * 100, 50)) == 50


def history(home: Path, rows: list[tuple[Any, ...]]) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(home / "state.db")) as connection, connection:
        connection.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, "
            "tool_calls TEXT, tool_call_id TEXT, tool_name TEXT, active INTEGER DEFAULT 1)"
        )
        connection.executemany(
            "INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, tool_name, active) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
    return home


CALLS = json.dumps([{"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}}])
ROWS: list[tuple[Any, ...]] = [
    ("a", "user", "old words", None, None, None, 0),
    ("a", "user", "hello", None, None, None, 1),
    ("b", "user", "another session", None, None, None, 1),
    ("a", "assistant", None, CALLS, None, None, 1),
    ("a", "tool", '\x00json:[{"type": "text", "text": "out"}]', None, "c1", "t", 1),
    ("a", "assistant", "bye", "not json", None, None, 1),
]


def test_a_session_of_hermes_is_its_rows_in_force(tmp_path: Path) -> None:
    home = history(tmp_path / "home", ROWS)
    assert read_session(home, "a") == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": json.loads(CALLS)},
        {"role": "tool", "content": [{"type": "text", "text": "out"}], "tool_call_id": "c1", "name": "t"},
        {"role": "assistant", "content": "bye"},
    ]


def test_a_history_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="HERMES_HOME"):
        read_session(tmp_path, "a")
    with pytest.raises(InputError, match="no session 'zz'"):
        read_session(history(tmp_path / "home", ROWS), "zz")
    (tmp_path / "state.db").write_text("no database at all, but long enough to be looked at")
    with pytest.raises(InputError, match="cannot be read"):
        read_session(tmp_path, "a")


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HANDOFF_JEV", "TYPESAFE_API_KEY", "JEV_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HERMES_HOME", str(history(tmp_path / "home", ROWS)))
    monkeypatch.chdir(tmp_path)
    Path("talk.json").write_text(json.dumps(TALK))


@pytest.mark.usefixtures("clean")
def test_jev_handoff(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["handoff", "talk.json"]) == 0
    asked = capsys.readouterr().out
    assert "Fix the parser." in asked
    assert SECRET not in asked
    assert main(["handoff", "--session", "a"]) == 0
    asked = capsys.readouterr().out
    assert "assistant: bye" in asked
    assert "`a`" in asked
    monkeypatch.setenv("HANDOFF_JEV", "1")
    assert main(["handoff", "talk.json"]) == 0
    assert "[KEEP VERBATIM] user: Fix the parser." in capsys.readouterr().out
    for wrong in (["handoff"], ["handoff", "talk.json", "--session", "a"], ["handoff", "--session", "none"]):
        assert main(wrong) == 2
        assert capsys.readouterr().err.startswith("jev: ")
