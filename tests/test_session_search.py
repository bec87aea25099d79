"""`session_search`: the host's three shapes, with what this session had cut away."""

from __future__ import annotations

import gc
import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from builders import text
from search_texts import Host, keep

from hermes_jev import running
from hermes_jev.paging import Room, fitted
from hermes_jev.recall import Recall
from hermes_jev.session_search import REPLY_CHARS, SESSION_SEARCH_SCHEMA, Scope, answer, extended
from hermes_jev.state_db import StateDb
from hermes_jev.store import Store

NOW = 10_000.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", now=count(1_000.0, 60.0).__next__)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    for name in ("s", "parent", "before"):
        made.session(name, title=f"about {name}")
    return made


def scope(store: Store, room: Room = Room(), state: Path | None = None) -> Scope:  # noqa: B008 - a constant
    return Scope("s", lambda: ["s", "parent"], store, StateDb(state or store.folder / "none.db"), room, NOW)


def ask(store: Store, room: Room = Room(), state: Path | None = None, **arguments: Any) -> Any:  # noqa: B008
    reply = answer(arguments, scope(store, room, state))
    assert len(reply) <= room.chars
    return json.loads(reply)


# --- alone --------------------------------------------------------------------------------------------------------


def test_a_hit_names_its_pointer_tool_age_and_place(store: Store) -> None:
    pointer = keep(store, f"{text(40_000)}\nthe flange is bent\n{text(9_000)}", arguments='{"command": "make  test"}')
    reply = ask(store, query="flange bent")

    (hit,) = reply["results"]
    assert (hit["id"], hit["tool"], hit["call"], hit["age"]) == (pointer, "terminal", "make test", "2 h ago")
    assert "the flange is bent" in hit["snippet"]
    first, last = map(int, hit["lines"].split("-"))
    lines = f"{text(40_000)}\nthe flange is bent\n{text(9_000)}".split("\n")
    assert "the flange is bent" in lines[first - 1 : last]
    assert reply["count"] == 1


def test_parents_are_searched_and_nobody_else(store: Store) -> None:
    mine = keep(store, "flange of the parent", session="parent")
    keep(store, "flange of another", session="other")
    assert [hit["id"] for hit in ask(store, query="flange")["results"]] == [mine]


def test_a_reply_is_bounded(store: Store) -> None:
    for n in range(12):
        keep(store, text(20_000, f"flange{n}") + ' "quoted" \\ flange\n' * 50)
    for limit in (1, 6, 10):
        reply = answer({"query": "flange part value", "limit": limit}, scope(store))
        assert len(reply) <= REPLY_CHARS
        assert 1 <= len(json.loads(reply)["results"]) <= limit


def test_no_argument_lists_what_is_stored(store: Store, host: Host) -> None:
    first, second = keep(store, "one"), keep(store, "two", session="parent")
    for arguments in ({}, {"query": ""}, {"query": None}):
        reply = json.loads(answer(arguments, scope(store, state=host.path)))
        assert [one["id"] for one in reply["results"]] == [second, first]
        assert {one["session_id"] for one in reply["sessions"]} == {"parent", "before"}
    for n in range(80):
        keep(store, f"more {n}")
    assert ask(store)["results"][-1] == {"more": 82 - 40}


def test_sorted_by_time(store: Store) -> None:
    pointers = [keep(store, f"flange {n} " + "flange " * (5 - n)) for n in range(4)]
    assert [hit["id"] for hit in ask(store, query="flange", sort="oldest")["results"]] == pointers
    assert [hit["id"] for hit in ask(store, query="flange", sort="newest")["results"]] == pointers[::-1]


def test_past_sessions_are_found_and_opened(store: Store, host: Host) -> None:
    for n in range(30):
        host.row("before", "user", f"talk {n}")
    row = host.row("before", "tool", f"{text(9_000)} the flange is bent", live=False, archived=True)
    host.row("parent", "tool", "the flange of the lineage")
    found = ask(store, state=host.path, query="flange")

    (hit,) = found["results"]
    assert (hit["session_id"], hit["message_id"], hit["role"]) == ("before", row, "tool")
    assert "the flange is bent" in hit["snippet"]
    place = ask(store, state=host.path, session_id="before", around_message_id=row, window=2)
    assert [one["id"] for one in place["messages"]] == [row - 2, row - 1, row]
    assert place["messages"][-1]["anchor"] is True
    whole = ask(store, state=host.path, session_id="before")
    assert whole["mode"] == "read"
    assert whole["message_count"] == len(whole["messages"]) == 30


def test_a_query_with_a_session_is_ignored(store: Store, host: Host) -> None:
    host.row("before", "user", "hello")
    assert ask(store, state=host.path, session_id="before", query="flange")["mode"] == "read"


def test_each_text_of_a_past_session_is_a_hit_once(store: Store, host: Host) -> None:
    for _ in range(3):
        host.row("before", "tool", "the flange is bent", live=False, archived=True)
    assert len(ask(store, state=host.path, query="flange")["results"]) == 1


def test_archived_rows_of_this_session_may_be_read_and_live_ones_not(store: Store, host: Host) -> None:
    old = host.row("s", "assistant", "said long ago", live=False, archived=True)
    live = host.row("s", "assistant", "said just now")
    assert "messages" in ask(store, state=host.path, session_id="s", around_message_id=old)
    assert "window" in ask(store, state=host.path, session_id="s", around_message_id=live)["error"]


def test_roles(store: Store, host: Host) -> None:
    keep(store, "the flange")
    host.row("before", "user", "about the flange")
    roles = {
        role: [
            hit.get("role", "stored")
            for hit in ask(store, state=host.path, query="flange", role_filter=role)["results"]
        ]
        for role in ("user", "tool", "user,tool")
    }
    assert roles == {"user": ["user"], "tool": ["stored"], "user,tool": ["stored", "user"]}


BAD: list[Any] = [
    None,
    "flange",
    [],
    {"query": ["x"]},
    {"query": {}},
    {"query": True},
    {"session_id": 1.5, "around_message_id": "x"},
    {"around_message_id": 5},
    {"session_id": "before", "around_message_id": 10**30},
    {"query": "x", "limit": "many"},
    {"session_id": "no-such-session"},
    {"session_id": "before", "around_message_id": 999},
    {"session_id": "\ud800"},
]


@pytest.mark.parametrize("arguments", BAD, ids=repr)
def test_what_cannot_be_asked(store: Store, host: Host, arguments: Any) -> None:
    reply = answer(arguments, scope(store, state=host.path))
    assert set(json.loads(reply)) == {"error"}
    assert len(reply) < 300


def test_numbers_out_of_range_are_brought_into_it(store: Store) -> None:
    for n in range(12):
        keep(store, f"flange {n}")
    assert [len(ask(store, query="flange", limit=limit)["results"]) for limit in (-1, 0, "2", 99)] == [1, 1, 2, 10]


def test_near_a_full_window_it_says_so(store: Store) -> None:
    keep(store, "flange")
    reply = json.loads(answer({"query": "flange"}, scope(store, Room(100_000, 99_990))))
    assert "full" in reply["error"]
    assert "later" in reply["error"]


def test_a_store_that_cannot_be_read_is_told(store: Store) -> None:
    keep(store, "flange")
    store.path.unlink()
    store.path.mkdir()
    assert "truth.sqlite3" in ask(store, query="flange")["error"]


# --- beside the host's own ----------------------------------------------------------------------------------------


def more(store: Store, base: Any, state: Path | None = None, **arguments: Any) -> Any:
    reply = extended(base if isinstance(base, str) else json.dumps(base), arguments, scope(store, state=state))
    assert isinstance(reply, str)
    return json.loads(reply)


NONE = {"success": True, "mode": "discover", "query": "flange", "results": [], "count": 0}


def test_hits_of_this_session_stand_first(store: Store) -> None:
    pointer = keep(store, "the flange is bent")
    reply = more(store, NONE, query="flange")
    assert list(reply)[:2] == ["success", "this_session"]
    assert reply["this_session"][0]["id"] == pointer
    assert {name: reply[name] for name in NONE} == NONE


def test_tool_output_of_past_sessions_is_added(store: Store, host: Host) -> None:
    row = host.row("before", "tool", "the flange is bent")
    host.row("before", "user", "about the flange")
    assert [one["message_id"] for one in more(store, NONE, host.path, query="flange")["past_tool_output"]] == [row]
    assert more(store, NONE, host.path, query="flange", role_filter="tool") == NONE


def test_nothing_to_add_leaves_the_reply_as_it_is(store: Store) -> None:
    base = json.dumps(NONE, indent=3)
    for arguments in ({"query": "flange"}, {}, {"session_id": "before"}, {"query": ["x"]}, None):
        assert extended(base, arguments, scope(store)) is base
    keep(store, "flange")
    for odd in ("no json", "[1]", None, 7, "\ud800"):
        assert extended(odd, {"query": "flange"}, scope(store)) is odd


def test_what_the_host_could_not_do_is_no_error_of_the_whole(store: Store) -> None:
    keep(store, "flange")
    reply = more(store, {"success": False, "error": "no database"}, query="flange")
    assert (reply["success"], reply["past_sessions_error"]) == (True, "no database")
    assert more(store, {"success": False, "error": "no database"}, query="zzz")["error"] == "no database"


def test_what_the_host_refuses_to_open_is_opened(store: Store, host: Host) -> None:
    old = host.row("s", "tool", "cut long ago", live=False, archived=True)
    refused = {"success": False, "error": "anchor lives in the current session lineage"}
    reply = more(store, refused, host.path, session_id="s", around_message_id=old)
    assert [one["content"] for one in reply["messages"]] == ["cut long ago"]
    assert more(store, refused, host.path, session_id="s", around_message_id=999) == refused


def test_lists_say_what_is_stored(store: Store) -> None:
    pointer = keep(store, "flange")
    for arguments in ({}, {"session_id": "s"}, {"session_id": "parent"}):
        assert more(store, NONE, **arguments)["this_session_stored"][0]["id"] == pointer
    assert more(store, NONE, session_id="before") == NONE


def test_a_long_reply_of_the_host_is_shortened(store: Store) -> None:
    messages = [{"id": n, "content": "x" * 30_000} for n in range(5)]
    messages[2]["anchor"] = True
    base = {"success": True, "mode": "scroll", "messages": messages}
    raw = extended(json.dumps(base), {"session_id": "before", "around_message_id": 2}, scope(store))
    assert len(raw) <= 20_000
    lengths = [len(one["content"]) for one in json.loads(raw)["messages"]]
    assert lengths[2] == max(lengths) == 10_000
    assert fitted({"a": "x" * 50}, 1_000) == {"a": "x" * 50}


def test_a_store_that_cannot_be_read_leaves_the_hosts_reply(store: Store) -> None:
    keep(store, "flange")
    store.path.unlink()
    store.path.mkdir()
    reply = more(store, NONE, query="flange")
    assert "truth.sqlite3" in reply["this_session_error"]
    assert {name: reply[name] for name in NONE} == NONE


# --- the middleware -----------------------------------------------------------------------------------------------


class Engine:
    """What the middleware needs of an engine."""

    def __init__(self, session: str) -> None:
        self.session = session

    def runs(self, session: str) -> bool:
        return session == self.session

    def search_more(self, arguments: Any, reply: Any) -> Any:
        return f"{reply}+{arguments}"


def test_the_middleware_adds_for_the_session_that_asks() -> None:
    engine, other = Engine("only-this"), Engine("that")
    for one in (engine, other):
        running.note(one)

    def call(name: str, session: str) -> Any:
        return running.search_middleware(name, "q", lambda args: f"base {args}", session_id=session, turn_id="t")

    assert call("session_search", "only-this") == "base q+q"
    assert call("session_search", "unknown") == call("session_search", "") == "base q"
    assert call("terminal", "only-this") == "base q"
    del engine
    gc.collect()
    assert call("session_search", "only-this") == "base q"


def test_a_tool_that_is_none(store: Store) -> None:
    recall = Recall("s", lambda: ["s"], store, StateDb(store.folder / "none"), Room(), NOW)
    assert "expand" in json.loads(recall.call("nonsense", {}))["error"]


def test_the_schema() -> None:
    assert SESSION_SEARCH_SCHEMA["name"] == "session_search"
    assert all(field["description"] for field in SESSION_SEARCH_SCHEMA["parameters"]["properties"].values())
