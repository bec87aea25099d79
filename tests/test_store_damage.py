"""A damaged file is set aside once, what can be read of it is saved, and the store goes on."""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from store_child import answers, item, opens_exactly, refused, start

from hermes_jev.errors import NotStored, StoreError
from hermes_jev.store import FILE_NAME, Keep, Kept, Store, StoredVerdict
from hermes_jev.store.aside import MOST_ASIDE


class Said(list[str]):
    """What a store said."""

    def __call__(self, text: str) -> None:
        self.append(text)


@pytest.fixture
def said() -> Said:
    return Said()


@pytest.fixture
def store(tmp_path: Path, said: Said) -> Store:
    return Store(tmp_path / "store", say=said)


def stored(store: Store, many: int) -> list[tuple[Keep, Kept]]:
    items = [item("original", number, size=1_500) for number in range(many)]
    pairs = [(keep, one) for keep, one in zip(items, store.keep("s", items), strict=True) if isinstance(one, Kept)]
    assert len(pairs) == many
    return pairs


def holds_up(store: Store, pairs: Sequence[tuple[Keep, Kept]]) -> int:
    """Nothing but StoreError comes out, and nothing but the exact originals; how many of those there are."""
    whole = 0
    for keep, one in pairs:
        try:
            back = store.get(one.id, ["s"])
            assert (back.tool, back.arguments, back.result) == (keep.tool, keep.arguments, keep.result)
            whole += 1
        except StoreError:
            call = store.describe(one.id, ["s"])
            assert call is None or call.arguments == keep.arguments
        try:
            there = store.original_of(one.text)
            assert there is None or there.result == keep.result
        except StoreError:
            pass
    store.check()
    more = item("more", 0)
    (answer,) = store.keep("s", [more])
    if isinstance(answer, Kept):
        assert store.get(answer.id, ["s"]).result == more.result
    return whole


def test_garbled_bytes_anywhere(tmp_path: Path) -> None:
    sound = Store(tmp_path / "sound")
    pairs = stored(sound, 12)
    data = sound.path.read_bytes()
    chance = random.Random(7)
    counts = []
    for attempt in range(40):
        garbled = bytearray(data)
        start_at = chance.randrange(len(data))
        length = chance.choice([1, 8, 300, 5_000])
        noise = chance.randbytes(length)
        garbled[start_at : start_at + length] = noise
        store = Store(tmp_path / str(attempt))
        store.folder.mkdir()
        store.path.write_bytes(bytes(garbled[: len(data)]))
        counts.append(holds_up(store, pairs))
    assert min(counts) < len(pairs)
    assert max(counts) == len(pairs)


PAGE = 4_096


def aside_of(store: Store) -> bytes:
    """The bytes of the one file that was set aside."""
    (aside,) = store.aside()
    return aside.read_bytes()


@pytest.mark.parametrize("table", [b"originals", b"contents", b"grants", b"meta"])
def test_a_garbled_schema(store: Store, said: Said, table: bytes) -> None:
    pairs = stored(store, 2)
    data = store.path.read_bytes()
    for part in (b"table" + table + table, b"CREATE TABLE " + table + b" ("):
        assert data.count(part) == 1
        data = data.replace(part, part[:5] + b"\xff" * (len(part) - 5))
    store.path.write_bytes(data)
    assert holds_up(store, pairs) == 0
    assert aside_of(store) == data
    assert len(said) == 1
    assert "is set aside as truth.sqlite3.damaged-1" in said[0]
    assert holds_up(store, stored(store, 2)) == 2


@pytest.mark.parametrize("statement", ["DROP TABLE meta", "UPDATE meta SET key = CAST(key || x'ff' AS TEXT)"])
def test_a_store_whose_record_is_lost(store: Store, said: Said, statement: str) -> None:
    pairs = stored(store, 3)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(statement)
    assert holds_up(store, pairs) == 3, "the originals themselves were sound"
    assert len(said) == 1


@pytest.mark.parametrize("part", [0.001, 0.1, 0.5, 0.9])
def test_a_truncated_file(store: Store, said: Said, part: float) -> None:
    pairs = stored(store, 12)
    data = store.path.read_bytes()
    half = data[: int(len(data) * part)]
    store.path.write_bytes(half)
    assert store.check() != []
    assert store.aside() == [], "who only looks leaves the file where it is"
    assert holds_up(store, pairs) < len(pairs)
    assert store.check() == []
    assert aside_of(store) == half
    assert len(said) == 1
    assert holds_up(store, stored(store, 12)) == 12


def test_a_file_that_lost_less_than_a_page_is_used_as_it_is(store: Store, said: Said) -> None:
    pairs = stored(store, 12)
    store.path.write_bytes(store.path.read_bytes()[:-100])
    assert holds_up(store, pairs) == 11
    assert len(store.check()) == 2
    assert said == []
    assert holds_up(store, stored(store, 12)) == 12, "what is stored again is written anew"
    assert store.check() == []


def test_where_only_the_header_is_lost_everything_is_saved(store: Store, said: Said) -> None:
    pairs = stored(store, 12)
    store.link("s", "before", "compression")
    number = store.add_receipt("s", "{}")
    store.save_verdicts({"key": StoredVerdict(0.5, 0.5, "full", 1, "jev")})
    data = store.path.read_bytes()
    store.path.write_bytes(bytes(100) + data[100:])
    assert holds_up(store, pairs) == 12
    assert store.ancestry("s") == ["s", "before"]
    assert [one.id for one in store.receipts("s")] == [number]
    assert list(store.verdicts(["key"])) == ["key"]
    assert "12 originals were saved" in said[0]
    assert store.check() == []
    with pytest.raises(NotStored):
        store.get(pairs[0][1].id, ["another"])


def test_committed_work_in_the_log_of_a_damaged_file_is_saved(store: Store) -> None:
    first = stored(store, 2)
    with closing(sqlite3.connect(store.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM originals").fetchone()
        (later,) = store.keep("s", [item("later", 0)])
        log = store.path.with_name(f"{FILE_NAME}-wal").read_bytes()
        data = store.path.read_bytes()
    assert log
    assert isinstance(later, Kept)
    store.path.write_bytes(bytes(100) + data[100:])
    store.path.with_name(f"{FILE_NAME}-wal").write_bytes(log)
    assert holds_up(store, first) == 2
    opens_exactly(store, item("later", 0), later.id)


def test_a_page_that_is_damaged_amid_others_costs_what_is_on_it(store: Store, said: Said) -> None:
    pairs = stored(store, 200)
    data = bytearray(store.path.read_bytes())
    with closing(sqlite3.connect(store.path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'originals'").fetchone()
    start_at = (root - 1) * PAGE
    assert data[start_at] == 5, "the table has pages below its root"
    first_leaf = int.from_bytes(data[start_at + 12 : start_at + 14], "big")
    leaf = int.from_bytes(data[start_at + first_leaf : start_at + first_leaf + 4], "big")
    data[(leaf - 1) * PAGE : leaf * PAGE] = random.Random(3).randbytes(PAGE)
    store.path.write_bytes(data)
    whole = holds_up(store, pairs)
    assert 100 < whole < 200
    assert len(said) == 1
    assert f"{whole} originals were saved" in said[0]
    assert store.check() == []


def test_a_store_that_is_damaged_again_and_again_stops_setting_aside(store: Store, said: Said) -> None:
    for _ in range(MOST_ASIDE):
        stored(store, 1)
        store.path.write_bytes(b"no database" * 100)
    stored(store, 1)
    assert len(store.aside()) == len(said) == MOST_ASIDE
    store.path.write_bytes(b"no database" * 100)
    for _ in range(2):
        refused(store.keep("s", [item("a", 0)]), "damaged")
        with pytest.raises(StoreError, match="damaged"):
            store.get("r-aaaaaaaaaa", None)
    assert len(store.aside()) == len(said) == MOST_ASIDE


def test_when_many_find_the_damage_one_sets_aside(store: Store) -> None:
    pairs = stored(store, 12)
    store.path.write_bytes(bytes(100) + store.path.read_bytes()[100:])
    names = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"]
    with ExitStack() as stack:
        processes = [stack.enter_context(start("writer", store.folder, name, 5)) for name in names]
        for name, process in zip(names, processes, strict=True):
            lines, _ = process.communicate(timeout=60)
            assert process.returncode == 0
            for number, (id, _) in enumerate(answers(lines.splitlines())):
                if id is not None:
                    opens_exactly(store, item(name, number), id)
    assert len(store.aside()) == 1
    assert holds_up(store, pairs) == 12
    assert store.check() == []


def test_when_threads_find_the_damage_one_sets_aside(store: Store, said: Said) -> None:
    pairs = stored(store, 12)
    store.path.write_bytes(bytes(100) + store.path.read_bytes()[100:])
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(holds_up(store, pairs))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(store.aside()) == len(said) == 1
    assert holds_up(store, pairs) == 12


def test_what_was_set_aside_is_saved_later_and_twice_is_no_harm(store: Store) -> None:
    pairs = stored(store, 3)
    aside = store.path.with_name(f"{FILE_NAME}.damaged-1")
    store.path.rename(aside)
    other = stored(store, 1)
    assert store.salvage() == 3
    assert store.salvage() == 0
    assert holds_up(store, pairs + other) == 4
    assert store.check() == []


def test_a_file_of_something_else(store: Store, said: Said) -> None:
    store.folder.mkdir()
    text = "notes of the user\n" * 500
    store.path.write_text(text)
    assert len(store.check()) == 1
    with pytest.raises(StoreError, match="damaged or no store") as caught:
        store.get("r-aaaaaaaaaa", None)
    assert not isinstance(caught.value, NotStored), "what is asked for may have been in it"
    (one,) = store.keep("s", [item("a", 0)])
    assert isinstance(one, Kept)
    assert aside_of(store) == text.encode()
    assert len(said) == 1


@pytest.mark.parametrize("application", [0, 7])
def test_a_database_of_another_program_is_left_alone(store: Store, application: int) -> None:
    store.folder.mkdir()
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("CREATE TABLE meta (key TEXT, value TEXT)")
        connection.execute(f"PRAGMA application_id = {application}")
    before = store.path.read_bytes()
    refused(store.keep("s", [item("a", 0)]), "not a store of hermes_jev")
    with pytest.raises(StoreError, match="not a store of hermes_jev"):
        store.original_of("text")
    assert store.path.read_bytes() == before


def test_an_empty_file_is_an_empty_store(store: Store) -> None:
    store.folder.mkdir()
    store.path.touch(0o644)
    assert store.receipts() == []
    assert store.check() == []
    stored(store, 1)
    assert store.path.stat().st_mode & 0o777 == 0o600


def test_a_store_that_is_gone_is_empty_and_starts_again(store: Store) -> None:
    pairs = stored(store, 2)
    shutil.rmtree(store.folder)
    for _, one in pairs:
        with pytest.raises(NotStored):
            store.get(one.id, ["s"])
        assert store.original_of(one.text) is None
    assert holds_up(store, stored(store, 2)) == 2


def test_another_store_under_the_name_has_none_of_our_originals(store: Store, tmp_path: Path) -> None:
    pairs = stored(store, 3)
    other = Store(tmp_path / "other")
    other.keep("s", [item("another", 0)])
    shutil.copy(other.path, store.path)
    assert holds_up(store, pairs) == 0
