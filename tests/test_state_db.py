"""The host's database, read only."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from search_texts import Host, keep

from hermes_jev.errors import StoreError
from hermes_jev.state_db import StateDb
from hermes_jev.store import Original, Store

ARGUMENTS = '{"command": "ls"}'


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    for name in ("now", "before"):
        made.session(name)
    return made


def pointer_of(tmp_path: Path, result: object) -> str:
    return keep(Store(tmp_path / "store"), result, arguments=ARGUMENTS)


@pytest.mark.parametrize(
    "result", ["plain\n\x00é漢", [{"type": "text", "text": "x" * 2_000}], {"a": [1, 1.5]}], ids=repr
)
def test_an_archived_row_is_proved_by_its_hash(host: Host, tmp_path: Path, result: object) -> None:
    pointer = pointer_of(tmp_path, result)
    host.row("now", "assistant", None, calls=[("c1", "terminal", ARGUMENTS)], live=False, archived=True)
    host.row("now", "tool", result, call="c1", live=False, archived=True)
    state = StateDb(host.path)

    assert state.original(pointer, ["now"]) == Original("terminal", ARGUMENTS, result, "unknown")
    assert state.original(pointer, ["before"]) is None
    assert state.original("r-aaaaaaaaaa", ["now"]) is None
    assert state.original("../x", ["now"]) is None


def test_a_changed_row_proves_nothing(host: Host, tmp_path: Path) -> None:
    pointer = pointer_of(tmp_path, "the text")
    host.row("now", "assistant", None, calls=[("c1", "terminal", ARGUMENTS)])
    host.row("now", "tool", "the text, changed", call="c1")
    assert StateDb(host.path).original(pointer, ["now"]) is None


def test_what_the_user_took_back_is_not_shown(host: Host, tmp_path: Path) -> None:
    pointer = pointer_of(tmp_path, "taken back")
    host.row("now", "assistant", None, calls=[("c1", "terminal", ARGUMENTS)], live=False)
    number = host.row("now", "tool", "taken back", call="c1", live=False)
    state = StateDb(host.path)

    assert state.original(pointer, ["now"]) is None
    assert state.holding(["taken"], "taken back", [], ["tool"]) == []
    assert state.around("now", number, 3) == []


def test_other_sessions_are_searched_archived_rows_too(host: Host) -> None:
    host.session("robot", source="tool")
    found = host.row("before", "tool", "the flange is bent", call="c", live=False, archived=True)
    host.row("now", "tool", "the flange of this one")
    host.row("robot", "tool", "the flange of nobody")
    state = StateDb(host.path)

    assert [row.id for row in state.holding(["flange"], "", ["now"], ["tool"])] == [found]
    assert state.holding(["flange"], "", ["now"], ["user"]) == []
    assert [row.id for row in state.holding([], "nge is b", ["now"], ["tool"])] == [found]


@pytest.mark.parametrize("literal", ["%", "_", "\\", "\x00", "\ud800", "'", "漢字"], ids=ascii)
def test_literal_text_is_no_pattern(host: Host, literal: str) -> None:
    host.row("before", "tool", "plain words")
    assert StateDb(host.path).holding([], literal, ["now"], ["tool"]) == []


def test_a_place_and_the_ends_of_a_session(host: Host) -> None:
    numbers = [host.row("before", "user", f"message {n}") for n in range(10)]
    state = StateDb(host.path)

    assert [row.id for row in state.around("before", numbers[4], 2)] == numbers[2:7]
    assert [row.id for row in state.around("before", numbers[0], 2)] == numbers[:3]
    assert state.around("now", numbers[4], 2) == []
    rows, count = state.ends_of("before", 3, 2)
    assert ([row.id for row in rows], count) == ([*numbers[:3], *numbers[-2:]], 10)
    assert [row.id for row in state.ends_of("before", 20, 10)[0]] == numbers


def test_the_newest_sessions(host: Host) -> None:
    host.session("newer", title="pumps", started=9.0)
    assert [one.id for one in StateDb(host.path).recent(["now"], 5)] == ["newer", "before"]


def test_no_database_is_empty(tmp_path: Path) -> None:
    state = StateDb(tmp_path / "none.db")
    assert state.original("r-aaaaaaaaaa", ["now"]) is None
    assert state.holding(["x"], "x", [], ["tool"]) == []
    assert state.around("now", 1, 1) == []
    assert state.ends_of("now", 1, 1) == ([], 0)
    assert state.recent([], 1) == []
    assert list(tmp_path.iterdir()) == []


def test_without_full_text_the_literal_is_looked_for(host: Host) -> None:
    found = host.row("before", "tool", "the flange is bent")
    with closing(sqlite3.connect(host.path)) as connection, connection:
        connection.execute("DROP TABLE messages_fts")
    assert [row.id for row in StateDb(host.path).holding(["flange"], "flange", [], ["tool"])] == [found]


@pytest.mark.parametrize("content", [b"garbage " * 900, b"SQLite format 3\x00" + b"\x00" * 900])
def test_a_bad_database_is_told(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "state.db"
    file.write_bytes(content)
    with pytest.raises(StoreError, match=r"state\.db"):
        StateDb(file).recent([], 1)
    assert file.read_bytes() == content
