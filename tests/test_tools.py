"""`expand` as the agent calls it: exact pages that fit, and plain words for everything that goes wrong."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from builders import text
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev.errors import StoreError
from hermes_jev.paging import LEAST_REPLY_CHARS, REPLY_CHARS, Room
from hermes_jev.store import Keep, Kept, Store
from hermes_jev.tools import EXPAND_SCHEMA, expand

WIDE = Room()
SMALL = Room(window=1_500)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def kept(store: Store, result: Any, arguments: str = "{}", tool: str = "terminal", session: str = "s") -> str:
    (reply,) = store.keep(session, [Keep(tool, arguments, result, "ok", lambda pointer: f"cut {pointer}")])
    assert isinstance(reply, Kept)
    return reply.id


def mine() -> list[str]:
    return ["s"]


def ask(
    store: Store, room: Room = WIDE, sessions: Callable[[], Collection[str] | None] = mine, **arguments: Any
) -> Any:
    """The parsed reply."""
    reply = expand(arguments, store, sessions, room)
    assert isinstance(reply, str)
    return json.loads(reply)


def pages(store: Store, pointer: str, room: Room, **more: Any) -> list[Any]:
    """All pages, read as an agent would: each next_offset passed on."""
    found: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        raw = expand({"id": pointer, "offset": offset, **more}, store, mine, room)
        assert len(raw) <= room.chars
        raw.encode("utf-8")
        found.append(json.loads(raw))
        assert found[-1]["offset"] == offset
        assert found[-1]["next_offset"] is None or found[-1]["next_offset"] > offset
        offset = found[-1]["next_offset"]
    return found


def joined(found: list[Any]) -> str:
    return "".join(page["text"] for page in found)


# --- pages --------------------------------------------------------------------------------------------------------

TEXTS = [
    "",
    "short",
    text(50_000),
    "\ufeffBOM\r\nCRLF\x00NUL\u2028" * 500,
    '"quoted" \\ and \t tabbed\n' * 900,
    "漢字仮名" * 3_000,
    "👩‍👩‍👧" * 900,
    "\ud800 alone " * 900,
    "\udc00\ud800" * 40,
    "\ud83d\ude00" * 40 + text(3_000),
    "é" * 4_000 + "\ud83d",
    "\x01" * 3_000,
]


@pytest.mark.parametrize("original", TEXTS, ids=lambda value: ascii(value[:12]))
@pytest.mark.parametrize("room", [WIDE, SMALL], ids=["wide", "small"])
def test_pages_joined_are_the_original(store: Store, original: str, room: Room) -> None:
    pointer = kept(store, original)

    found = pages(store, pointer, room)

    assert joined(found) == original
    for page in found:
        assert {**page, "offset": 0, "next_offset": 0, "text": ""} == {
            "id": pointer,
            "part": "result",
            "tool": "terminal",
            "offset": 0,
            "next_offset": 0,
            "total": len(original),
            "format": "text",
            "text": "",
        }


@pytest.mark.parametrize(
    "original",
    [
        [{"type": "text", "text": text(9_000)}, {"type": "image_url", "image_url": {"url": "data:" + "A" * 9_000}}],
        {"b": "\ud800", "a": [1, 1.5, True, None, 2**80], "": {}, "漢": "字" * 3_000},
        None,
        7,
        [],
    ],
    ids=["parts", "object", "null", "number", "empty"],
)
@pytest.mark.parametrize("room", [WIDE, SMALL], ids=["wide", "small"])
def test_pages_of_what_is_no_text_are_its_json(store: Store, original: Any, room: Room) -> None:
    found = pages(store, kept(store, original), room)

    assert {page["format"] for page in found} == {"json"}
    assert json.loads(joined(found)) == original


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    st.text(st.sampled_from('ab \n"\\\x00é漢\ud800\udbff\udc00\udfff😀'), min_size=0, max_size=400).map(
        lambda part: part * 5
    ),
    st.integers(LEAST_REPLY_CHARS, 1_500),
)
def test_no_mixture_of_characters_is_lost_between_pages(tmp_path_factory: Any, original: str, limit: int) -> None:
    store = Store(tmp_path_factory.mktemp("pages"))
    room = Room(window=limit * 10 // 4 + 3)

    assert joined(pages(store, kept(store, original), room)) == original


def test_a_page_is_as_long_as_it_may_be(store: Store) -> None:
    first, *_ = pages(store, kept(store, text(90_000)), WIDE)

    assert REPLY_CHARS - 20 <= len(json.dumps(first, ensure_ascii=False)) <= REPLY_CHARS


def test_a_page_may_start_anywhere(store: Store) -> None:
    original = text(9_000)
    pointer = kept(store, original)

    assert ask(store, id=pointer, offset=8_999)["text"] == original[8_999:]
    assert ask(store, id=pointer, offset="100")["text"] == original[100:]
    assert ask(store, id=pointer, offset=None)["offset"] == 0
    at_the_end = ask(store, id=pointer, offset=9_000)
    assert (at_the_end["text"], at_the_end["next_offset"]) == ("", None)


def test_the_input_of_a_call(store: Store) -> None:
    arguments = json.dumps({"path": "x.py", "content": text(30_000)})
    pointer = kept(store, "done", arguments)

    found = pages(store, pointer, SMALL, part="arguments")

    assert joined(found) == arguments
    assert {(page["part"], page["format"]) for page in found} == {("arguments", "text")}


def test_the_name_of_a_tool_of_any_length_leaves_the_reply_within_its_limit(store: Store) -> None:
    pointer = kept(store, text(9_000), tool="mcp__" + "long_" * 9_000)

    assert len(expand({"id": pointer}, store, mine, WIDE)) <= WIDE.chars


# --- how long a reply may be --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("room", "chars"),
    [
        (Room(), 20_000),
        (Room(None, 90_000), 20_000),
        (Room(0, 5), 20_000),
        (Room(200_000), 20_000),
        (Room(20_000), 8_000),
        (Room(200_000, 195_000), 10_000),
        (Room(200_000, 199_900), 200),
        (Room(200_000, 200_000), 0),
        (Room(200_000, 900_000), 0),
        (Room(20_000, 5), 8_000),
    ],
)
def test_the_room_for_a_reply(room: Room, chars: int) -> None:
    assert room.chars == chars


def test_near_a_full_window_the_reply_says_so_and_is_short(store: Store) -> None:
    pointer = kept(store, text(90_000))

    for used in (199_800, 200_000, 300_000):
        reply = ask(store, Room(200_000, used), id=pointer)
        assert set(reply) == {"error", "id", "total"}
        assert reply["total"] == 90_000
        assert "full" in reply["error"]


# --- what goes wrong ----------------------------------------------------------------------------------------------

BAD_IDS: list[Any] = [
    *(None, "", 7, True, [], {}, "r-", "r-short", "R-ABCDEFGHIJ", "abcdefghij", "r-abcdefghi1", "r-abcdefghij\n r"),
    *(
        "../../etc/passwd",
        "r-../../../../",
        "r-abcdefghij; DROP TABLE",
        "r-" + "a" * 53,
        "\ud800",
        "r-ａｂｃｄｅｆｇｈｉｊ",
        "x" * 100_000,
    ),
]


@pytest.mark.parametrize("pointer", BAD_IDS, ids=lambda value: ascii(value)[:24])
def test_an_id_that_is_none(store: Store, pointer: Any) -> None:
    kept(store, text(5_000))

    reply = expand({"id": pointer}, store, mine, WIDE)

    assert set(json.loads(reply)) == {"error"}
    assert len(reply) < 300


@pytest.mark.parametrize(
    "arguments", [None, "r-abcdefghij", 7, [], {}, {"pointer": "r-abcdefghij"}, {"id": None}], ids=str
)
def test_arguments_that_are_none(store: Store, arguments: Any) -> None:
    assert set(json.loads(expand(arguments, store, mine, WIDE))) == {"error"}


@pytest.mark.parametrize(
    "offset",
    [-1, 1.5, "x", "-1", "1e3", "²", "", True, [], {}, 10**30, "9" * 5_000, "١٢٣" * 3_000, float("nan"), float("inf")],
    ids=lambda value: ascii(value)[:12],
)
def test_an_offset_that_is_none(store: Store, offset: Any) -> None:
    pointer = kept(store, text(5_000))

    reply = expand({"id": pointer, "offset": offset}, store, mine, WIDE)

    assert set(json.loads(reply)) == {"error"}
    assert len(reply) < 300


def test_an_offset_after_the_end_says_how_long_the_original_is(store: Store) -> None:
    assert "5000 characters" in ask(store, id=kept(store, text(5_000)), offset=5_001)["error"]


@pytest.mark.parametrize("part", ["output", "RESULT", 7, ["result"], {"a": 1}], ids=str)
def test_a_part_that_is_none(store: Store, part: Any) -> None:
    assert set(ask(store, id=kept(store, text(5_000)), part=part)) == {"error"}


@pytest.mark.parametrize("part", [None, "", "result"])
def test_the_result_is_what_is_meant_when_no_part_is_named(store: Store, part: Any) -> None:
    assert ask(store, id=kept(store, "words"), part=part)["text"] == "words"


def test_blanks_around_an_id_do_not_matter(store: Store) -> None:
    assert ask(store, id=f" {kept(store, 'words')}\n")["text"] == "words"


def test_unknown_and_foreign_are_told_alike(store: Store) -> None:
    foreign = kept(store, "theirs", session="other")
    unknown = "r-" + "a" * len(foreign.removeprefix("r-"))

    replies = [ask(store, id=pointer)["error"].replace(pointer, "ID") for pointer in (foreign, unknown)]

    assert replies[0] == replies[1]
    assert "theirs" not in replies[0]


def test_a_person_may_open_every_pointer(store: Store) -> None:
    assert ask(store, sessions=lambda: None, id=kept(store, "theirs", session="other"))["text"] == "theirs"


def test_nothing_stored_yet_is_told_and_creates_nothing(store: Store) -> None:
    assert set(ask(store, id="r-abcdefghij")) == {"error"}
    assert not store.folder.exists()


def damaged(store: Store, arguments: str = '{"command": "ls"}') -> str:
    original = text(5_000)
    pointer = kept(store, original, arguments)
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE contents SET body = x'00' WHERE chars = ?", (len(original),))
    connection.close()
    return pointer


def test_a_damaged_original_names_the_call_to_run_again(store: Store) -> None:
    reply = ask(store, id=damaged(store))

    assert set(reply) == {"error", "run_again"}
    assert reply["run_again"] == {"tool": "terminal", "arguments": '{"command": "ls"}'}


def test_the_call_to_run_again_fits_into_the_reply(store: Store) -> None:
    pointer = damaged(store, json.dumps({"text": '"\\\n' * 3_000}))

    assert len(expand({"id": pointer}, store, mine, SMALL)) <= SMALL.chars


def test_a_foreign_damaged_original_names_nothing(store: Store) -> None:
    pointer = damaged(store, '{"command": "theirs"}')

    assert "theirs" not in json.dumps(ask(store, sessions=lambda: ["other"], id=pointer))


def test_a_file_that_is_no_store_is_told(store: Store) -> None:
    pointer = kept(store, text(5_000))
    store.path.write_bytes(b"garbage " * 5_000)

    assert set(ask(store, id=pointer)) == {"error"}


def test_a_lineage_that_cannot_be_read_is_told(store: Store) -> None:
    def fail() -> list[str]:
        raise StoreError("truth.sqlite3: it is damaged")

    assert "cannot be read" in ask(store, sessions=fail, id=kept(store, "words"))["error"]


# --- the schema ---------------------------------------------------------------------------------------------------


def test_the_schema_says_what_the_tool_takes() -> None:
    parameters = EXPAND_SCHEMA["parameters"]

    assert EXPAND_SCHEMA["name"] == "expand"
    assert set(parameters["properties"]) == {"id", "offset", "part", "lines", "contains"}
    assert parameters["required"] == ["id"]
    assert all(field["description"] for field in parameters["properties"].values())
    json.dumps(EXPAND_SCHEMA)
