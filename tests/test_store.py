"""What the store gives back is what it was given, to those who may have it, and to nobody else."""

from __future__ import annotations

import copy
import pickle
import sqlite3
import stat
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev.errors import NotStored, StoreError
from hermes_jev.store import (
    FILE_NAME,
    Call,
    Keep,
    Kept,
    Original,
    Store,
    encode,
    is_pointer_id,
    pointer_hash,
    pointer_id,
)
from hermes_jev.store.values import same

TEXT = st.text(st.characters())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)

UNKNOWN = "r-aaaaaaaaaa"

# Two results, found by search, whose exchanges agree in the first 50 bits of their hash: the whole short pointer.
COLLIDING = ("028d0c2869405", "0f6613cca2057")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", now=count(1_000.0).__next__)


def keep_of(result: Any, arguments: str = "{}", tool: str = "read_file", notice: str = "[stored: {}]") -> Keep:
    return Keep(tool, arguments, result, "ok", notice.format)


def kept(store: Store, session: str | None, *items: Keep) -> list[Kept]:
    answers = store.keep(session, items)
    assert all(isinstance(one, Kept) for one in answers), answers
    return [one for one in answers if isinstance(one, Kept)]


def rows(store: Store, table: str) -> int:
    with closing(sqlite3.connect(store.path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def change(store: Store, statement: str, *values: object) -> int:
    """Edit the file behind the store's back; the number of rows that changed."""
    with closing(sqlite3.connect(store.path)) as connection, connection:
        return connection.execute(statement, values).rowcount


# Originals


def test_an_original_comes_back(store: Store) -> None:
    (one,) = kept(store, "s1", keep_of("a\r\n\0\ufeff\ud83d\ude00\U0001f600"))
    assert is_pointer_id(one.id)
    assert one.text == f"[stored: {one.id}]"
    assert store.get(one.id, {"s1"}) == Original("read_file", "{}", "a\r\n\0\ufeff\ud83d\ude00\U0001f600", "ok")
    assert store.original_of(one.text) == store.get(one.id, None)
    assert store.check() == []


def test_the_pointer_is_the_hash_of_the_exchange_in_every_store(store: Store, tmp_path: Path) -> None:
    item = keep_of({"output": "text", "exit_code": 0}, '{"path": "a"}')
    (here,), (there,) = kept(store, "s1", item), kept(Store(tmp_path / "other"), None, item)
    assert here == there
    assert here.id == pointer_id(pointer_hash("read_file", '{"path": "a"}', encode(item.result)))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("shared"))


@settings(deadline=None, derandomize=True, database=None, max_examples=40)
@given(st.lists(st.tuples(TEXT, TEXT, JSON, TEXT), min_size=1, max_size=4), TEXT)
def test_anything_json_like_comes_back_exactly(
    shared: Store, exchanges: list[tuple[str, str, Any, str]], session: str
) -> None:
    items = [Keep(tool, arguments, result, "ok", notice.__add__) for tool, arguments, result, notice in exchanges]
    for item, one in zip(items, kept(shared, session, *items), strict=True):
        for back in (shared.get(one.id, [session]), shared.get(one.id, None), shared.original_of(one.text)):
            assert back is not None
            assert (back.tool, back.arguments) == (item.tool, item.arguments)
            assert same(back.result, item.result)
        assert shared.describe(one.id, [session]) == Call(item.tool, item.arguments)


def test_equal_results_of_different_type_are_different_originals(store: Store) -> None:
    values = ["1", 1, 1.0, True, [1], [True], None, "", [], {}]
    ones = kept(store, None, *map(keep_of, values))
    assert len({one.id for one in ones}) == len(values)
    for value, one in zip(values, ones, strict=True):
        assert same(store.get(one.id, None).result, value)


def test_the_same_exchange_again_adds_nothing_but_the_grant(store: Store) -> None:
    item = keep_of("result " * 100)
    first = kept(store, "s1", item, item)
    before = {table: rows(store, table) for table in ("contents", "originals", "cuts")}
    again = kept(store, "s2", item)
    assert {one for one in (*first, *again)} == {first[0]}
    assert before == {table: rows(store, table) for table in before} == {"contents": 2, "originals": 1, "cuts": 1}
    assert rows(store, "grants") == 2
    assert store.get(first[0].id, ["s2"]) == store.get(first[0].id, ["s1"])


def test_equal_contents_are_stored_once(store: Store) -> None:
    kept(store, None, keep_of("same", '{"a": 1}'), keep_of("same", '{"a": 2}'), keep_of("same", "same"))
    assert rows(store, "contents") == 3


def test_one_original_may_stand_behind_several_texts(store: Store) -> None:
    short, long = kept(store, None, keep_of("result"), keep_of("result", notice="first lines … {}"))
    assert short.id == long.id
    assert store.originals_of(["x", long.text, short.text]) == dict.fromkeys((1, 2), store.get(short.id, None))


def test_a_text_that_does_not_name_its_original_stands_for_one_only(store: Store) -> None:
    answers = store.keep(None, [keep_of("one", notice="gone"), keep_of("two", notice="gone"), keep_of("three")])
    assert [type(one) for one in answers] == [Kept, StoreError, Kept]
    assert "already stands for another" in str(answers[1])
    back = store.original_of("gone")
    assert back is not None
    assert back.result == "one"
    assert rows(store, "originals") == 2


def test_what_cannot_be_stored_exactly_stays_and_the_rest_is_kept(store: Store) -> None:
    answers = store.keep("s1", [keep_of(("a",)), keep_of("fine"), keep_of({1: 2})])
    assert [type(one) for one in answers] == [StoreError, Kept, StoreError]
    assert "cannot be stored exactly" in str(answers[0])


def test_nothing_storable_touches_no_disk(store: Store) -> None:
    assert store.keep("s1", []) == []
    (answer,) = store.keep("s1", [keep_of(object())])
    assert isinstance(answer, StoreError)
    assert not store.folder.exists()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_pointers_that_really_collide_are_lengthened(store: Store, order: tuple[int, int]) -> None:
    items = [keep_of(COLLIDING[place]) for place in order]
    hashes = [pointer_hash("read_file", "{}", encode(one.result)) for one in items]
    assert pointer_id(hashes[0]) == pointer_id(hashes[1])
    assert hashes[0] != hashes[1]
    (first,), (second,) = kept(store, "s1", items[0]), kept(store, "s2", items[1])
    assert len(first.id) == len("r-") + 10
    assert second.id != first.id
    assert second.id == pointer_id(hashes[1], len(second.id) - 2)
    assert kept(store, "s1", *items) == [first, second]
    assert [store.get(one.id, None).result for one in (first, second)] == [item.result for item in items]
    assert store.check() == []


# Who may open what


def test_a_pointer_opens_for_granted_sessions_and_for_the_shell(store: Store) -> None:
    (mine,), (ours,), (shell,) = (
        kept(store, "s1", keep_of("mine")),
        kept(store, "s2", keep_of("ours")),
        kept(store, None, keep_of("shell")),
    )
    assert store.get(mine.id, ["other", "s1"]).result == "mine"
    assert [store.get(one.id, None).result for one in (mine, ours, shell)] == ["mine", "ours", "shell"]
    for pointer, sessions in ((mine.id, ["s2"]), (mine.id, []), (shell.id, ["s1", "s2"]), (ours.id, {"s1", ""})):
        with pytest.raises(NotStored):
            store.get(pointer, sessions)
        assert store.describe(pointer, sessions) is None


def test_unknown_foreign_and_malformed_say_the_same(store: Store, tmp_path: Path) -> None:
    (foreign,) = kept(store, "s1", keep_of("secret"))
    messages = set()
    for pointer, where in ((foreign.id, store), (UNKNOWN, store), ("../../etc", store), (UNKNOWN, Store(tmp_path))):
        with pytest.raises(NotStored) as caught:
            where.get(pointer, ["s2"])
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_foreign_and_damaged_is_still_foreign(store: Store) -> None:
    (one,) = kept(store, "s1", keep_of("secret"))
    assert change(store, "UPDATE contents SET body = x'00'") == 2
    with pytest.raises(NotStored):
        store.get(one.id, ["s2"])


@pytest.mark.parametrize("pointer", ["", "r-", "../r-aaaaaaaaaa", "r-aaaaaaaaaa\n", "r-aaaaaaaaa%", "truth.sqlite3"])
def test_malformed_ids_do_not_touch_the_disk(store: Store, pointer: str) -> None:
    store.folder.mkdir()
    store.path.write_bytes(b"no store, so that opening it would fail")
    with pytest.raises(NotStored):
        store.get(pointer, None)
    assert store.describe(pointer, None) is None


# Damage of single rows


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE contents SET body = x'00' WHERE sha = (SELECT result_sha FROM originals)",
        "UPDATE contents SET body = 'text' WHERE sha = (SELECT result_sha FROM originals)",
        "DELETE FROM contents WHERE sha = (SELECT result_sha FROM originals)",
        "UPDATE contents SET body = (SELECT body FROM contents WHERE sha = (SELECT arguments_sha FROM originals))",
        "UPDATE originals SET result_sha = arguments_sha",
        "UPDATE originals SET arguments_sha = result_sha",
        "UPDATE originals SET tool = 'write_file'",
        "UPDATE originals SET tool = x'ff'",
        "UPDATE originals SET tool = CAST(x'ff' AS TEXT)",
    ],
)
def test_damage_is_found_when_reading_and_by_check(store: Store, statement: str) -> None:
    (one,) = kept(store, "s1", keep_of([1, 2, 3], '{"path": "a"}'))
    assert change(store, statement) > 0
    with pytest.raises(StoreError, match="damaged") as caught:
        store.get(one.id, ["s1"])
    assert not isinstance(caught.value, NotStored)
    with pytest.raises(StoreError, match="damaged"):
        store.original_of(one.text)
    assert any(one.id in line for line in store.check())


def test_the_call_is_known_when_its_result_is_damaged(store: Store) -> None:
    (one,) = kept(store, "s1", keep_of("result", '{"path": "a"}'))
    change(store, "UPDATE contents SET body = x'00' WHERE sha = (SELECT result_sha FROM originals)")
    assert store.describe(one.id, ["s1"]) == Call("read_file", '{"path": "a"}')
    assert store.describe(one.id, ["s2"]) is None
    swap = "UPDATE contents SET body = (SELECT body FROM contents WHERE sha = (SELECT result_sha FROM originals))"
    for damage in (swap, "UPDATE contents SET body = x'00'"):
        (one,) = kept(store, "s1", keep_of("result", '{"path": "a"}'))
        change(store, damage)
        assert store.describe(one.id, ["s1"]) is None
    assert store.describe(UNKNOWN, None) is None


def test_keeping_again_mends_a_damaged_content(store: Store) -> None:
    item = keep_of("result")
    (one,) = kept(store, "s1", item)
    change(store, "UPDATE contents SET body = x'00'")
    assert len(store.check()) == 3
    assert kept(store, "s1", item) == [one]
    assert store.get(one.id, ["s1"]).result == "result"
    assert store.check() == []


@pytest.mark.parametrize("table", ["cuts", "grants", "originals"])
def test_an_item_that_cannot_be_read_back_is_not_kept_and_the_others_are(store: Store, table: str) -> None:
    kept(store, "s1", keep_of("bad"), keep_of("good"))
    bad = pointer_id(pointer_hash("read_file", "{}", encode("bad")))
    spoil = f"DELETE FROM {table} WHERE pointer = '{bad}'"
    change(store, f"CREATE TRIGGER spoil AFTER INSERT ON grants BEGIN {spoil}; END")
    answers = store.keep("s2", [keep_of("bad"), keep_of("good")])
    assert [type(one) for one in answers] == [StoreError if table != "originals" else NotStored, Kept]


def test_check_names_rows_that_lead_nowhere(store: Store) -> None:
    (one,) = kept(store, "s1", keep_of("result"))
    change(store, "DELETE FROM originals")
    lines = store.check()
    assert len(lines) == 2
    assert all(one.id in line for line in lines)
    with pytest.raises(NotStored):
        store.original_of(one.text)


# Files


def test_making_and_reading_a_store_creates_nothing(store: Store) -> None:
    with pytest.raises(NotStored):
        store.get(UNKNOWN, None)
    assert store.original_of("text") is None
    assert store.originals_of(["text"]) == {}
    assert store.describe(UNKNOWN, None) is None
    assert store.ancestry("s1") == ["s1"]
    assert store.verdicts(["key"]) == {}
    assert store.receipts() == []
    assert store.check() == []
    store.save_verdicts({})
    assert not store.folder.exists()


def test_files_are_for_their_user_only_and_none_is_left_open(tmp_path: Path) -> None:
    store = Store(tmp_path / "a b?#%41" / "ü")
    kept(store, "s1", keep_of("result"))
    assert sorted(path.name for path in store.folder.iterdir()) == [FILE_NAME, f"{FILE_NAME}.lock"]
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_store_can_be_copied_and_pickled(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (one,) = kept(store, "s1", keep_of("result"))
    for twin in (copy.deepcopy(store), pickle.loads(pickle.dumps(store))):
        assert vars(twin) == vars(store)
        assert twin.get(one.id, ["s1"]).result == "result"


def test_a_long_text_is_compressed(store: Store) -> None:
    kept(store, None, keep_of("line of a log\n" * 100_000))
    assert store.path.stat().st_size < 200_000


def test_texts_by_index_over_a_long_list(store: Store) -> None:
    ones = kept(store, "s1", *(keep_of(f"result {number}") for number in range(50)))
    texts: list[Any] = [value for one in ones for value in (one.text, one.text + " ", None, [one.text], ("tuple",))]
    found = store.originals_of(texts)
    assert {index: original.result for index, original in found.items()} == {
        5 * number: f"result {number}" for number in range(50)
    }
