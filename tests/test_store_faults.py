"""Whatever happens to the file: a stored original that opens exactly, or an error in its place."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest
from store_child import item, mixed, start

from hermes_jev.errors import JevError, NotStored, StoreError
from hermes_jev.store import FILE_NAME, Keep, Kept, Store
from hermes_jev.store.database import faults

Answer = tuple[str | None, str | None]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def answers(lines: Sequence[str]) -> list[Answer]:
    return [(id, error) for line in lines for id, error in json.loads(line)]


def run(*arguments: object) -> list[str]:
    with start(*arguments) as process:
        lines, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return lines.splitlines()


def refused(given: Sequence[Kept | StoreError], words: str) -> None:
    """Every item was refused, in words that name the file and the reason and nothing else of the path."""
    assert given
    for one in given:
        assert isinstance(one, StoreError)
        assert words in str(one)
        assert "/" not in str(one)


def opens_exactly(store: Store, keep: Keep, id: str) -> None:
    back = store.get(id, None)
    assert (back.tool, back.arguments, back.result) == (keep.tool, keep.arguments, keep.result)
    assert store.original_of(keep.render(id)) == back


# Disk full


def test_on_a_full_disk_what_fits_is_kept(store: Store) -> None:
    many = 40
    given = answers(run("limited", store.folder, 300_000, many))
    assert len(given) == many
    for number, (id, error) in enumerate(given):
        if id is not None:
            opens_exactly(store, mixed(number), id)
        else:
            assert error is not None
            assert "disk is full" in error
    stored = [id is not None for id, _ in given]
    assert not any(stored[::10]), "the large ones never fit"
    assert stored[1:10] == [True] * 9
    assert not any(stored[-9:]), "in the end the small ones do not fit either"
    assert store.check() == []
    # With room again, everything fits.
    assert all(isinstance(one, Kept) for one in store.keep("s", [mixed(number) for number in range(many)]))


@pytest.mark.parametrize("limit", [0, 20_000])
def test_on_a_disk_without_room_for_the_tables_nothing_is_kept_and_nothing_breaks(store: Store, limit: int) -> None:
    for id, error in answers(run("limited", store.folder, limit, 3)):
        assert id is None
        assert error is not None
        assert "disk is full" in error
    assert store.receipts() == []
    (one,) = store.keep("s", [item("later", 0)])
    assert isinstance(one, Kept)


def test_a_value_beyond_the_limits_of_the_file_is_too_big() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000)
        with pytest.raises(StoreError, match="too big"), faults("file"):
            connection.execute("SELECT ?", (b"x" * 2_000,))
        with pytest.raises(StoreError, match="too big"), faults("file"):
            connection.execute("SELECT zeroblob(2000)").fetchone()
        with pytest.raises(StoreError, match="too big"), faults("file"):
            connection.execute("SELECT ?", (2**64,))


# Read-only, locked, no folder


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder every user can walk to, unlike those below the test runner's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_store_is_read_and_not_written(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(open_folder)
    (one,) = store.keep("s", [item("before", 0)])
    assert isinstance(one, Kept)
    store.path.chmod(0o444)
    open_folder.chmod(0o555)
    before = store.path.read_bytes()
    monkeypatch.chdir(open_folder)
    lines = run("unprivileged", ".", one.id)
    assert json.loads(lines[0]) == item("before", 0).result
    for id, error in answers(lines[1:]):
        assert id is None
        assert error is not None
        assert "read-only" in error or "cannot be opened" in error
    assert store.path.read_bytes() == before
    assert [path.name for path in open_folder.iterdir()] == [FILE_NAME]


def test_an_empty_read_only_folder_is_an_empty_store(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_folder.chmod(0o555)
    monkeypatch.chdir(open_folder)
    lines = run("unprivileged", ".", "r-aaaaaaaaaa")
    assert "nothing is stored" in json.loads(lines[0])["error"]
    assert all(id is None for id, _ in answers(lines[1:]))
    assert list(open_folder.iterdir()) == []


@pytest.mark.parametrize("below", [".", "store", "store/deeper"])
def test_a_file_stands_where_the_folder_should_be(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("mine")
    store = Store(tmp_path / "file" / below)
    refused(store.keep("s", [item("a", 0), item("a", 1)]), "where its folder should be")
    assert store.receipts() == []
    with pytest.raises(StoreError):
        store.add_receipt("s", "{}")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_stands_where_the_file_should_be(store: Store) -> None:
    store.path.mkdir(parents=True)
    refused(store.keep("s", [item("a", 0)]), "cannot be opened")
    with pytest.raises(StoreError, match="it is no file"):
        store.receipts()


def test_while_another_process_holds_the_lock_the_result_stays_and_reading_goes_on(store: Store) -> None:
    (one,) = store.keep("s", [item("a", 0)])
    assert isinstance(one, Kept)
    tries = count()
    waiting = Store(store.folder, now=lambda: float(next(tries)), patience_s=0.05)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused(waiting.keep("s", [item("a", number) for number in range(1, 50)]), "locked")
        assert next(tries) == 2, "one try for all and one for the first, or each item would wait"
        with pytest.raises(StoreError, match="locked"):
            waiting.add_receipt("s", "{}")
        opens_exactly(store, item("a", 0), one.id)
        other.execute("ROLLBACK")
    assert isinstance(store.keep("s", [item("a", 1)])[0], Kept)


def test_a_writer_waits_for_one_that_ends_in_time(tmp_path: Path) -> None:
    store = Store(tmp_path, patience_s=30)
    store.add_receipt("s", "{}")
    with closing(sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.2, other.execute, ["COMMIT"])
        release.start()
        (one,) = store.keep("s", [item("a", 0)])
        release.join()
    assert isinstance(one, Kept)


# Damaged, foreign, gone


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


@pytest.mark.parametrize("table", [b"originals", b"contents", b"grants", b"meta"])
def test_a_garbled_schema(store: Store, table: bytes) -> None:
    pairs = stored(store, 2)
    data = store.path.read_bytes()
    for part in (b"table" + table + table, b"CREATE TABLE " + table + b" ("):
        assert data.count(part) == 1
        data = data.replace(part, part[:5] + b"\xff" * (len(part) - 5))
    store.path.write_bytes(data)
    assert holds_up(store, pairs) == 0
    with pytest.raises(StoreError, match="damaged"):
        store.get(pairs[0][1].id, None)


@pytest.mark.parametrize("part", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file(store: Store, part: float) -> None:
    pairs = stored(store, 12)
    data = store.path.read_bytes()
    store.path.write_bytes(data[: int(len(data) * part)])
    assert holds_up(store, pairs) < len(pairs)
    assert store.check() != []


def test_a_file_of_something_else(store: Store) -> None:
    store.folder.mkdir()
    store.path.write_text("notes of the user\n" * 500)
    refused(store.keep("s", [item("a", 0)]), "damaged or no store")
    with pytest.raises(StoreError, match="damaged or no store") as caught:
        store.get("r-aaaaaaaaaa", None)
    assert not isinstance(caught.value, NotStored)
    assert len(store.check()) == 1
    assert store.path.read_text() == "notes of the user\n" * 500


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


# Many at once


def test_processes_that_start_at_once_all_succeed(store: Store) -> None:
    names = ["p0", "p1", "p2", "p3"]
    with ExitStack() as stack:
        processes = [stack.enter_context(start("writer", store.folder, name, 50)) for name in names]
        for name, process in zip(names, processes, strict=True):
            lines, _ = process.communicate(timeout=60)
            assert process.returncode == 0
            given = answers(lines.splitlines())
            assert [error for _, error in given] == [None] * 50
            for number, (id, _) in enumerate(given):
                assert id is not None
                opens_exactly(store, item(name, number), id)
                assert store.get(id, [name]).result == item(name, number).result
    assert store.check() == []


def test_threads_share_one_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    done: dict[tuple[str, int], Kept | StoreError] = {}

    def work(name: str) -> None:
        for number in range(10):
            (done[name, number],) = store.keep(name, [item(name, number)])
            try:
                store.add_receipt(name, "{}")
                store.link(f"{name} {number}", name, "test")
            except JevError as error:
                done[name, -1] = StoreError(str(error))

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 5 * 10
    for (name, number), one in done.items():
        assert isinstance(one, Kept), one
        opens_exactly(store, item(name, number), one.id)
    assert len(store.receipts()) == 5 * 10


def test_every_id_a_killed_writer_had_named_opens(store: Store) -> None:
    chance = random.Random(3)
    rounds: list[list[str]] = []
    with start("killed", store.folder) as nursery:
        assert nursery.stdout is not None
        assert nursery.stdin is not None
        for _ in range(20):
            nursery.stdin.write(f"killed {len(rounds)}\n")
            nursery.stdin.flush()
            process_id = int(nursery.stdout.readline())
            lines = [nursery.stdout.readline() for _ in range(chance.randrange(1, 6))]
            os.kill(process_id, signal.SIGKILL)
            lines += iter(nursery.stdout.readline, "ended\n")
            rounds.append(lines)
        nursery.stdin.close()
    assert nursery.returncode == 0
    for attempt, lines in enumerate(rounds):
        assert lines
        for number, (id, error) in enumerate(answers(lines)):
            assert error is None
            assert id is not None
            opens_exactly(store, item(f"killed {attempt}", number), id)
    assert store.check() == []
