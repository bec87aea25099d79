"""When the store is tended, and what a session is taken to continue."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from store_child import item

from hermes_jev.drops import RECORD_TOOL
from hermes_jev.kinship import goes_on, seen
from hermes_jev.settings import Settings
from hermes_jev.store import Keep, Kept, Store
from hermes_jev.store.keeps import keep_whole
from hermes_jev.upkeep import DAY_S, standing, tend, tend_daily


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, clock: Clock, said: list[str]) -> Store:
    return Store(tmp_path / "store", now=clock, say=said.append)


SETTINGS = Settings(store_max_age_days=0.5)


def test_once_a_day_is_enough(store: Store, clock: Clock) -> None:
    store.keep("old", [item("a", 0)])
    first = tend_daily(store, SETTINGS, [], [])
    assert first is not None
    assert first.pointers == ()
    clock.now += DAY_S - 1
    assert tend_daily(store, SETTINGS, [], []) is None
    clock.now += 2
    second = tend_daily(store, SETTINGS, [""], [])
    assert second is not None
    assert len(second.pointers) == 1
    clock.now -= 3 * DAY_S
    assert tend_daily(store, SETTINGS, [], []) is not None, "the clock was set back"


def test_a_store_that_cannot_be_used_is_said_and_nothing_is_raised(store: Store, said: list[str]) -> None:
    store.folder.mkdir()
    store.path.mkdir()
    assert tend(store, SETTINGS, ["s"], []) is None
    assert len(said) == 1
    assert "the store was not tended" in said[0]
    assert tend_daily(store, SETTINGS, ["s"], []) is None
    seen(store, "s", ["parent"])
    assert len(said) == 1


def test_what_stands_in_conversations_of_several_homes(tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("one", "two", "none")]
    for home in homes[:2]:
        home.mkdir()
        with closing(sqlite3.connect(home / "state.db")) as connection, connection:
            connection.execute("CREATE TABLE messages (content TEXT, active INTEGER, tool_calls TEXT)")
            rows = [(f'[hermes_jev: expand(id="r-{home.name}aaaaaaaaa")', 1), ("r-bbbbbbbbbb", 1), (None, 1), ("x", 0)]
            connection.executemany("INSERT INTO messages (content, active) VALUES (?, ?)", rows)
    assert standing(homes) == {"r-oneaaaaaaaaa", "r-twoaaaaaaaaa"}
    (homes[2]).mkdir()
    (homes[2] / "state.db").write_bytes(b"no database")
    assert standing(homes) is None


def test_what_an_input_a_line_about_turns_and_a_person_name_stays(tmp_path: Path, store: Store, clock: Clock) -> None:
    """An input's notice stands in the call; a line names a few calls of turns that left, their record all of them."""
    kept = [found.id for found in store.keep("old", [item("a", n) for n in range(5)]) if isinstance(found, Kept)]
    names = [{"role": "tool", "content": {"pointer": pointer}} for pointer in kept[1:3]]
    (record,) = store.keep("old", [Keep(RECORD_TOOL, "", names, "unknown", lambda pointer: "a record")])
    assert isinstance(record, Kept)
    keep_whole(store, kept[3])
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection, connection:
        connection.execute("CREATE TABLE messages (content TEXT, active INTEGER, tool_calls TEXT)")
        call = json.dumps([{"function": {"arguments": f'[hermes_jev: expand(id="{kept[0]}")]'}}])
        connection.execute("INSERT INTO messages VALUES (NULL, 1, ?)", (call,))
        connection.execute("INSERT INTO messages VALUES (?, 1, NULL)", (f'[hermes_jev: expand(id="{kept[1]}")]',))
    clock.now += DAY_S
    swept = tend(store, SETTINGS, [], [tmp_path])
    assert swept is not None
    assert swept.pointers == (kept[4],)
    assert {one.id for one in store.each()} == {*kept[:4], record.id}


def test_a_look_into_conversations_ends_in_time(tmp_path: Path, store: Store, clock: Clock, said: list[str]) -> None:
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection, connection:
        connection.execute("CREATE TABLE messages (content TEXT, active INTEGER, tool_calls TEXT)")
        connection.executemany(
            "INSERT INTO messages (content, active) VALUES (?, 1)", (("words",) for _ in range(20_000))
        )
    assert standing([tmp_path]) == frozenset()
    assert standing([tmp_path], limit_s=0) is None
    store.keep("old", [item("a", 0)])
    clock.now += DAY_S
    (tmp_path / "state.db").write_bytes(b"no database")
    swept = tend_daily(store, SETTINGS, [], [tmp_path])
    assert swept is not None
    assert swept.pointers == ()
    assert "jev store gc" in said[0]


def test_only_what_is_known_is_continued(store: Store) -> None:
    store.link("bound", "before", "compression")
    for old, expected in (
        ("bound", "bound"),
        ("held", "held"),
        ("before", "before"),
        ("of the host", "of the host"),
        ("another", ""),
        ("", ""),
        (None, ""),
        (5, ""),
    ):
        assert goes_on(old, ["bound", "held"], ["of the host"], store) == expected


def test_what_cannot_be_read_is_not_continued(store: Store) -> None:
    store.folder.mkdir()
    store.path.mkdir()
    assert goes_on("another", ["bound"], [], store) == ""
    assert goes_on("bound", ["bound"], [], store) == "bound"
