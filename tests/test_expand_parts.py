"""`expand` by lines and by what lines hold, near a full window, and where the store cannot help."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from builders import assistant, call, result, text, user
from search_texts import Host, keep

from hermes_jev.judge import Lexical
from hermes_jev.notice import read
from hermes_jev.paging import REPLY_CHARS, Room
from hermes_jev.prune import Job, run
from hermes_jev.recall import Recall
from hermes_jev.repeats import first_original
from hermes_jev.restore import restore
from hermes_jev.settings import Settings
from hermes_jev.state_db import StateDb
from hermes_jev.store import Store
from hermes_jev.tools import expand
from hermes_jev.transcript import Transcript

PLAIN = "\n".join(f"line {n} of the log" + (" flange" if n % 10 == 0 else "") for n in range(1, 101))
JSON = json.dumps({"output": PLAIN, "exit_code": 1})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def ask(store: Store, room: Room = Room(), **arguments: Any) -> Any:  # noqa: B008 - a constant
    return json.loads(expand(arguments, store, lambda: ["s"], room))


# --- lines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "first", "last"),
    [("3-5", 3, 5), ("7", 7, 7), (7, 7, 7), (" 98 - 400 ", 98, 100), ("99-", 99, 100), ("1-100", 1, 100)],
)
def test_lines_are_exact(store: Store, lines: Any, first: int, last: int) -> None:
    reply = ask(store, id=keep(store, PLAIN), lines=lines)
    wanted = "\n".join(PLAIN.split("\n")[first - 1 : last])
    assert reply["text"] == wanted
    assert PLAIN[reply["offset"] :].startswith(wanted)
    assert (reply["lines"], reply["total_lines"], reply["next_offset"]) == (f"{first}-{last}", 100, None)


def test_lines_of_json_are_those_inside_it(store: Store) -> None:
    pointer = keep(store, JSON)
    assert ask(store, id=pointer, lines="2-3")["text"] == "line 1 of the log\nline 2 of the log"
    assert ask(store, id=pointer, lines="102")["text"] == "exit_code: 1"
    assert json.loads(ask(store, id=pointer)["text"]) == json.loads(JSON)


def test_lines_of_parts_and_of_the_input(store: Store) -> None:
    pointer = keep(store, [{"type": "text", "text": "one\ntwo"}], arguments=json.dumps({"content": "a\nb"}))
    assert ask(store, id=pointer, lines="2")["text"] == "two"
    assert ask(store, id=pointer, part="arguments", lines="3")["text"] == "b"


def test_many_lines_come_in_pages(store: Store) -> None:
    pointer = keep(store, text(90_000))
    total = text(90_000).split("\n")
    offset, found = 0, ""
    while True:
        raw = expand({"id": pointer, "lines": "11-1200", "offset": offset}, store, lambda: ["s"], Room())
        assert len(raw) <= REPLY_CHARS
        page = json.loads(raw)
        found += page["text"]
        if page["next_offset"] is None:
            break
        assert page["next_offset"] > offset
        offset = page["next_offset"]
    assert found == "\n".join(total[10:1200])


BAD_LINES = ["0", "-5", "5-3", "a-b", "1-2-3", "1,3", "", "²", "9" * 20, 0, -1, 1.5, True, [1, 2], {}, "101"]


@pytest.mark.parametrize("lines", [bad for bad in BAD_LINES if bad != ""], ids=repr)
def test_lines_that_are_none(store: Store, lines: Any) -> None:
    assert set(ask(store, id=keep(store, PLAIN), lines=lines)) == {"error"}


def test_no_lines_are_all(store: Store) -> None:
    for lines in (None, ""):
        assert ask(store, id=keep(store, PLAIN), lines=lines)["text"] == PLAIN


# --- contains -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("original", [PLAIN, JSON], ids=["plain", "json"])
def test_lines_that_hold_a_text(store: Store, original: str) -> None:
    reply = ask(store, id=keep(store, original), contains="flange")
    shift = 0 if original is PLAIN else 1
    assert reply["text"].split("\n") == [f"{n + shift}:line {n} of the log flange" for n in range(10, 101, 10)]
    assert (reply["matches"], reply["next_offset"]) == (10, None)


@pytest.mark.parametrize("literal", ["4.", ".*", "[", "(", "\\d", "^line", "Flange", "zzz"])
def test_it_is_a_text_and_no_pattern(store: Store, literal: str) -> None:
    reply = ask(store, id=keep(store, PLAIN), contains=literal)
    assert (reply["matches"], reply["text"]) == (0, "")


def test_both_together(store: Store) -> None:
    reply = ask(store, id=keep(store, PLAIN), contains="flange", lines="15-35")
    assert reply["text"] == "20:line 20 of the log flange\n30:line 30 of the log flange"


def test_many_matches_come_in_pages(store: Store) -> None:
    pointer = keep(store, text(90_000))
    offset, found = 0, []
    for _ in range(50):
        page = ask(store, id=pointer, contains="value is", offset=offset)
        found += page["text"].split("\n")
        if page["next_offset"] is None:
            break
        offset = page["next_offset"]
    assert found == [f"{n}:{line}" for n, line in enumerate(text(90_000).split("\n"), 1) if "value is" in line]


def test_a_long_line_is_shown_around_the_match(store: Store) -> None:
    reply = ask(store, id=keep(store, "x" * 9_000 + "flange" + "y" * 9_000), contains="flange")
    assert "flange" in reply["text"]
    assert len(reply["text"]) < 600


@pytest.mark.parametrize("contains", [5, ["x"], {}, True, "a\nb", "x" * 501], ids=lambda value: repr(value)[:10])
def test_a_text_that_is_none(store: Store, contains: Any) -> None:
    assert set(ask(store, id=keep(store, PLAIN), contains=contains)) == {"error"}


# --- room ---------------------------------------------------------------------------------------------------------


def test_several_pages_in_one_turn_fit_together(store: Store) -> None:
    pointer = keep(store, text(90_000))
    window, used, handed = 20_000, 16_000, 0
    replies = 0
    while True:
        raw = expand({"id": pointer}, store, lambda: ["s"], Room(window, used, handed))
        if "error" in json.loads(raw):
            break
        replies += 1
        handed += len(raw)
    assert replies >= 3
    assert handed <= 4 * (window - used)
    assert "handed out" in json.loads(raw)["error"]
    assert "next compaction" in json.loads(raw)["error"]


# --- where the store cannot help ----------------------------------------------------------------------------------


def recall(store: Store, state: Path, messages: Any = ()) -> Recall:
    return Recall("s", lambda: ["s"], store, StateDb(state), Room(), 0.0, messages)


@pytest.mark.parametrize("spoil", ["gone", "garbage"])
def test_the_hosts_archive_has_what_the_store_lost(store: Store, tmp_path: Path, spoil: str) -> None:
    host = Host(tmp_path)
    host.session("s")
    pointer = keep(store, PLAIN)
    host.row("s", "assistant", None, calls=[("c1", "terminal", '{"command": "run"}')], live=False, archived=True)
    host.row("s", "tool", PLAIN, call="c1", live=False, archived=True)
    store.path.unlink()
    if spoil == "garbage":
        store.path.write_bytes(b"garbage " * 900)

    page = json.loads(recall(store, host.path).call("expand", {"id": pointer}))
    assert page["text"] == PLAIN
    foreign = Recall("other", lambda: ["other"], store, StateDb(host.path), Room(), 0.0)
    assert "text" not in json.loads(foreign.call("expand", {"id": pointer}))


def test_else_the_call_to_run_again_is_named(store: Store, tmp_path: Path) -> None:
    settings = Settings(judge="lexical", pin_last_calls=0, call_threshold=1.0, output_threshold=1.0)
    job = Job(settings, Lexical(), store, session="s", forced=True)
    given = [user("go"), assistant(None, call("c1", "terminal", {"command": "make"})), result("c1", text(9_000))]
    given += [assistant("and"), user("more"), assistant("and"), user("on")]
    pruned = run(given, job).messages
    assert pruned is not given
    pointer = first_pointer(pruned[2]["content"])
    store.path.unlink()

    reply = json.loads(recall(store, tmp_path / "none", pruned).call("expand", {"id": pointer}))
    assert reply["run_again"] == {"tool": "terminal", "arguments": '{"command": "make"}'}
    assert "run_again" not in json.loads(recall(store, tmp_path / "none").call("expand", {"id": pointer}))
    assert "run_again" not in json.loads(recall(store, tmp_path / "none", [None]).call("expand", {"id": pointer}))


def first_pointer(content: str) -> str:
    return content.split('expand(id="')[1].split('"')[0]


# --- replies of expand among the results --------------------------------------------------------------------------


def exchange_of(tool: str, content: Any) -> Any:
    messages = [user("go"), assistant(None, call("c1", tool, {"id": "x"})), result("c1", content)]
    return Transcript.parse(messages).exchanges[0]


def test_a_reply_is_known_by_what_it_shows(store: Store) -> None:
    pointer = keep(store, PLAIN)
    for arguments in ({}, {"offset": 40}, {"lines": "5-9"}, {"contains": "flange"}, {"part": "arguments"}):
        reply = expand({"id": pointer, **arguments}, store, lambda: ["s"], Room())
        found = first_original(exchange_of("expand", reply), store)
        assert found is not None
        wanted = {"offset": "offset=40", "lines": 'lines="5-9"'}.get(next(iter(arguments), ""), "")
        assert found == (pointer, wanted)
        assert first_original(exchange_of("terminal", reply), store) is None


FORGED: list[Any] = [
    {"id": "PTR", "offset": 0, "text": "something else"},
    {"id": "PTR", "offset": 3, "text": PLAIN[:90]},
    {"id": "r-aaaaaaaaaa", "offset": 0, "text": PLAIN[:90]},
    {"id": "PTR", "contains": "x", "offset": 0, "text": "5:no such line"},
    {"id": "PTR", "offset": "0", "text": PLAIN},
    {"id": 5},
    {"error": "the window is too full"},
    [1],
    None,
]


@pytest.mark.parametrize("forged", FORGED, ids=lambda value: repr(value)[:30])
def test_what_only_looks_like_a_reply_is_an_output_of_its_own(store: Store, forged: Any) -> None:
    said = json.dumps(forged).replace("PTR", keep(store, PLAIN))
    assert first_original(exchange_of("expand", said), store) is None


def test_a_cut_reply_points_to_the_first_original(store: Store) -> None:
    """Each page of it, and every list can be put back."""
    pointer = keep(store, text(60_000))
    messages: list[Any] = [user("look into it")]
    offset: Any = 0
    offsets: list[int] = []
    for number in range(3):
        offsets.append(offset)
        arguments = {"id": pointer, "offset": offset}
        reply = expand(arguments, store, lambda: ["s"], Room())
        offset = json.loads(reply)["next_offset"]
        messages += [assistant(None, call(f"c{number}", "expand", arguments)), result(f"c{number}", reply)]
    for number in range(3, 16):
        messages += [assistant(None, call(f"c{number}", "terminal", {"n": number})), result(f"c{number}", "short")]
    messages += [assistant("and"), user("go on")]
    job = Job(Settings(judge="lexical"), Lexical(), store, session="s", forced=True)
    pruned = run(messages, job).messages

    cut = [
        message["content"] for message in pruned if message["role"] == "tool" and "[hermes_jev:" in message["content"]
    ]
    assert len(cut) == 3
    assert {first_pointer(one) for one in cut} == {pointer}
    calls = [re.search(r"expand\(([^)]*)\)", one.rpartition("\n")[2]) for one in cut]
    again = [re.search(r"offset=(\d+)", found[1]) for found in calls if found]
    assert [int(found[1]) if found else 0 for found in again] == offsets
    for one in cut:
        assert len(one.rpartition("\n")[2]) <= 200
        assert read(one) is not None
    assert restore(pruned, store) == messages
    assert run(pruned, job).messages is pruned


def test_two_pages_cut_to_the_same_text_stay_apart(store: Store) -> None:
    """Removed, pages of one size would read alike; the second then names itself."""
    pointer = keep(store, "a" * 4_000 + "b" * 4_000)
    frame = {"id": pointer, "part": "result", "tool": "terminal", "total": 8_000, "format": "text"}
    page = {**frame, "offset": 1_000, "next_offset": 3_000, "text": "a" * 2_000}
    pages = [page, dict(reversed(page.items()))]
    messages: list[Any] = [user("look")]
    for number, page in enumerate(pages):
        messages += [
            assistant(None, call(f"c{number}", "expand", {"n": number})),
            result(f"c{number}", json.dumps(page)),
        ]
    for number in range(2, 15):
        messages += [assistant(None, call(f"c{number}", "terminal", {"n": number})), result(f"c{number}", "short")]
    settings = Settings(judge="lexical", call_threshold=1.0, output_threshold=1.0)
    pruned = run([*messages, user("on")], Job(settings, Lexical(), store, session="s", forced=True)).messages

    cut = [
        message["content"] for message in pruned if message["role"] == "tool" and "[hermes_jev:" in message["content"]
    ]
    assert len(set(cut)) == len(cut) == 2
    assert [first_pointer(one) == pointer for one in cut] == [True, False]
    assert restore(pruned, store) == [*messages, user("on")]


@pytest.mark.parametrize("literal", ["\ud800", "\ud800" * 500, "é", "x" * 500, "flange"])
@pytest.mark.parametrize("room", [Room(6_000, 0), Room(20_000, 0), Room(100_000, 99_000)])
def test_what_holds_a_literal_keeps_to_the_room(store: Store, literal: str, room: Room) -> None:
    """Encoded, a character may take six; and the literal itself is told back."""
    for content in ("\ud800" * 3_000, "é" * 4_000, PLAIN):
        reply = expand({"id": keep(store, content), "contains": literal}, store, lambda: ["s"], room)
        assert len(reply) <= room.chars
        assert "error" in json.loads(reply) or "matches" in json.loads(reply)
