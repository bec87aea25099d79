"""Whatever happens to the file: a stored original that opens exactly, or an error in its place."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest
from store_child import answers, item, mixed, opens_exactly, refused, start

from hermes_jev.errors import JevError, StoreError
from hermes_jev.store import FILE_NAME, Kept, Store
from hermes_jev.store.faults import faults


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def run(*arguments: object, bound_by_modes: bool = False) -> list[str]:
    with start(*arguments, bound_by_modes=bound_by_modes) as process:
        lines, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return lines.splitlines()


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


def small_file_system(folder: Path, size: str) -> list[str]:
    """A command that runs another where `folder` is a file system of this size, gone when it ends."""
    shell = f'mount -t tmpfs -o size={size} tmpfs {shlex.quote(str(folder))} && exec "$@"'
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", shell, "sh"]


def can_mount(folder: Path) -> bool:
    try:
        return subprocess.run([*small_file_system(folder, "64k"), "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def test_when_the_disk_is_full_at_the_third_of_ten_two_are_cut_and_eight_whole(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    if not can_mount(folder):
        pytest.skip("this system lets nobody mount a small file system")
    # A result takes about 100 kB; the log holds it once, and the file once more when the log is brought in.
    with start("pass", folder / "store", 11, 100_000, within=small_file_system(folder, "440k")) as process:
        lines, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    done = json.loads(lines)
    assert done["whole"] == [False] * 2 + [True] * 9, "the last is not judged"
    assert done["exact"] == [True] * 2 + [False] * 9
    assert "8 results stay whole: they could not be stored" in done["line"]
    assert "\n" not in done["line"]


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


MODES_HOLD = pytest.mark.skipif(
    os.geteuid() == 0 and sys.platform != "linux", reason="for the superuser modes hold on Linux only"
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that can be removed again whatever its mode was."""
    folder = tmp_path / "store"
    folder.mkdir(0o700)
    yield folder
    folder.chmod(0o700)


@MODES_HOLD
def test_a_read_only_store_is_read_and_not_written(folder: Path) -> None:
    store = Store(folder)
    (one,) = store.keep("s", [item("before", 0)])
    assert isinstance(one, Kept)
    store.path.chmod(0o444)
    folder.chmod(0o555)
    before = store.path.read_bytes()
    lines = run("bound", folder, one.id, bound_by_modes=True)
    assert json.loads(lines[0]) == item("before", 0).result
    for id, error in answers(lines[1:]):
        assert id is None
        assert error is not None
        assert "read-only" in error or "cannot be opened" in error
    assert store.path.read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == [FILE_NAME, f"{FILE_NAME}.lock"]


@MODES_HOLD
def test_a_read_only_store_of_an_earlier_version_is_read(folder: Path) -> None:
    store = Store(folder)
    (one,) = store.keep("s", [item("before", 0)])
    assert isinstance(one, Kept)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("DELETE FROM meta WHERE key = 'migration:m002_retention'")
    store.path.chmod(0o444)
    folder.chmod(0o555)
    assert json.loads(run("bound", folder, one.id, bound_by_modes=True)[0]) == item("before", 0).result


@MODES_HOLD
def test_a_damaged_file_in_a_read_only_folder_stays_and_is_said(folder: Path) -> None:
    store = Store(folder)
    store.path.write_bytes(b"no database" * 100)
    folder.chmod(0o555)
    lines = run("bound", folder, "r-aaaaaaaaaa", bound_by_modes=True)
    assert "damaged" in json.loads(lines[0])["error"]
    assert all(id is None for id, _ in answers(lines[1:]))
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


@MODES_HOLD
def test_an_empty_read_only_folder_is_an_empty_store(folder: Path) -> None:
    folder.chmod(0o555)
    lines = run("bound", folder, "r-aaaaaaaaaa", bound_by_modes=True)
    assert "nothing is stored" in json.loads(lines[0])["error"]
    assert all(id is None for id, _ in answers(lines[1:]))
    assert list(folder.iterdir()) == []


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


# Many at once


@pytest.mark.parametrize(("writers", "many"), [(2, 40), (8, 10)])
def test_processes_that_start_at_once_all_succeed(store: Store, writers: int, many: int) -> None:
    names = [f"p{number}" for number in range(writers)]
    with ExitStack() as stack:
        processes = [stack.enter_context(start("writer", store.folder, name, many)) for name in names]
        for name, process in zip(names, processes, strict=True):
            lines, _ = process.communicate(timeout=60)
            assert process.returncode == 0
            given = answers(lines.splitlines())
            assert [error for _, error in given] == [None] * many
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
