"""The index follows the truth, stays within a lineage, and is made anew when it is bad."""

from __future__ import annotations

import logging
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from search_texts import keep

from hermes_jev.errors import StoreError
from hermes_jev.search import search
from hermes_jev.store import Store
from hermes_jev.store.aside import remove
from hermes_jev.store.index import INDEX_NAME, SET_ASIDE, Index


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def found(store: Store, *terms: str, session: str | None = "s") -> list[str]:
    sessions = None if session is None else [session]
    return [one.pointer for one in Index(store).find(terms, sessions, 10.0).candidates]


def test_nothing_stored_is_nothing_found(store: Store) -> None:
    assert found(store, "x") == []
    assert found(store, "x", session=None) == []


def test_the_index_takes_in_what_was_stored_since(store: Store) -> None:
    first = keep(store, "alpha one")
    assert found(store, "alpha") == [first]
    second = keep(store, "alpha two")
    assert set(found(store, "alpha")) == {first, second}
    assert found(store, "two") == [second]


def test_input_and_tool_are_found_too(store: Store) -> None:
    pointer = keep(store, "nothing", tool="read_file", arguments='{"path": "src/special.py"}')
    assert found(store, "src/special.py") == found(store, "read_file") == [pointer]


def test_a_session_finds_its_own(store: Store) -> None:
    keep(store, "alpha secret", session="other")
    mine = keep(store, "alpha mine", session="s")
    nobodys = keep(store, "alpha nobody", session=None)

    assert found(store, "alpha") == [mine]
    assert found(store, "secret") == []
    assert found(store, "alpha", session="§0") == []
    assert nobodys in found(store, "alpha", session=None)
    assert Index(store).find(["alpha"], [], 10.0).candidates == []


def test_what_two_sessions_of_a_lineage_have_is_found_once(store: Store) -> None:
    pointer = keep(store, "alpha", session="a")
    assert keep(store, "alpha", session="b") == pointer

    answer = Index(store).find(["alpha"], ["a", "b"], 10.0)
    assert [one.pointer for one in answer.candidates] == [pointer]


@pytest.mark.parametrize("session", ["", "§", 'a"b', "x OR y", "\ud800", "漢", "a" * 5_000, "\x00"], ids=ascii)
def test_sessions_of_any_name(store: Store, session: str) -> None:
    pointer = keep(store, "alpha", session=session)
    keep(store, "alpha too", session="another")
    assert found(store, "alpha", session=session) == [pointer]


def forget(store: Store, pointer: str) -> None:
    with closing(sqlite3.connect(store.path)) as connection, connection:
        for table in ("grants", "originals"):
            connection.execute(f"DELETE FROM {table} WHERE pointer = ?", (pointer,))


def test_what_left_the_truth_leaves_the_index(store: Store) -> None:
    gone, kept = keep(store, "alpha gone"), keep(store, "alpha kept")
    assert set(found(store, "alpha")) == {gone, kept}
    forget(store, gone)
    new = keep(store, "alpha new")  # as many as before

    assert set(found(store, "alpha")) == {kept, new}
    assert found(store, "gone") == []
    with closing(sqlite3.connect(store.folder / INDEX_NAME)) as connection:
        assert b"gone" not in b"".join(row[0] or b"" for row in connection.execute("SELECT block FROM words_data"))


def test_a_short_budget_leaves_the_older_for_later(store: Store) -> None:
    pointers = [keep(store, f"alpha number{n} " + "filler words " * 40_000) for n in range(4)]
    index = Index(store)

    assert index.follow(["s"], 0.0) == 3
    assert found(store, "number3") == [pointers[3]]
    assert index.follow(["s"], 60.0) == 0
    assert set(found(store, "alpha")) == set(pointers)


def test_a_damaged_original_costs_only_itself(store: Store) -> None:
    bad, good = keep(store, "alpha bad"), keep(store, "alpha good")
    with closing(sqlite3.connect(store.path)) as connection, connection:
        sha = connection.execute("SELECT result_sha FROM originals WHERE pointer = ?", (bad,)).fetchone()[0]
        connection.execute("UPDATE contents SET body = x'00' WHERE sha = ?", (sha,))
    assert found(store, "alpha") == [good]


def test_the_engines_own_replies_are_not_searched(store: Store) -> None:
    keep(store, '{"id": "r-abcdefghij", "text": "alpha"}', tool="expand")
    keep(store, '{"results": ["alpha"]}', tool="session_search")
    assert found(store, "alpha") == []


def test_the_file_is_for_this_user_only(store: Store) -> None:
    keep(store, "alpha")
    found(store, "alpha")
    assert stat.S_IMODE((store.folder / INDEX_NAME).stat().st_mode) == 0o600


BAD = [
    lambda file: file.write_bytes(b"garbage " * 4_000),
    lambda file: file.write_bytes(b"\x00" * 100 + file.read_bytes()[100:]),
    lambda file: file.write_bytes(file.read_bytes()[:5_000]),
    lambda file: file.write_bytes(b""),
    lambda file: file.unlink(),
]


@pytest.mark.parametrize("spoil", BAD, ids=["garbage", "header", "truncated", "empty", "gone"])
def test_a_bad_file_is_made_anew(store: Store, spoil: object, caplog: pytest.LogCaptureFixture) -> None:
    pointers = {keep(store, f"alpha number{n}") for n in range(30)}
    assert set(found(store, "alpha")) == pointers
    file = store.folder / INDEX_NAME
    assert callable(spoil)
    spoil(file)

    with caplog.at_level(logging.WARNING):
        assert set(found(store, "alpha")) == pointers
        assert set(found(store, "alpha")) == pointers
    assert sum(SET_ASIDE in record.getMessage() for record in caplog.records) <= 1
    assert len(list(store.folder.glob(f"{SET_ASIDE}*"))) <= 1
    assert store.check() == []


def test_a_file_of_another_program_is_set_aside(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    pointer = keep(store, "alpha")
    with closing(sqlite3.connect(store.folder / INDEX_NAME)) as connection, connection:
        connection.execute("CREATE TABLE notes (text TEXT)")

    with caplog.at_level(logging.WARNING):
        assert found(store, "alpha") == [pointer]
    assert sum(SET_ASIDE in record.getMessage() for record in caplog.records) == 1
    assert (store.folder / SET_ASIDE).is_file()


def test_lost_postings_are_made_anew(store: Store) -> None:
    pointers = {keep(store, f"alpha number{n}") for n in range(30)}
    found(store, "alpha")
    with closing(sqlite3.connect(store.folder / INDEX_NAME)) as connection, connection:
        connection.execute("DROP TABLE words")
    assert set(found(store, "alpha")) == pointers


def test_a_bad_truth_leaves_the_index_alone(store: Store) -> None:
    keep(store, "alpha")
    found(store, "alpha")
    before = (store.folder / INDEX_NAME).read_bytes()
    store.path.write_bytes(b"garbage " * 4_000)

    with pytest.raises(StoreError):
        Index(store).find(["alpha"], ["s"], 10.0)
    assert (store.folder / INDEX_NAME).read_bytes() == before
    assert not (store.folder / SET_ASIDE).exists()


def test_rebuilt_from_the_truth(store: Store) -> None:
    pointers = {keep(store, f"alpha number{n}", session=f"s{n % 3}") for n in range(7)}
    (store.folder / INDEX_NAME).write_bytes(b"garbage")
    seen: list[tuple[int, int]] = []

    assert Index(store).rebuild(lambda done, total: seen.append((done, total))) == 7
    assert seen[-1] == (7, 7)
    assert set(found(store, "alpha", session=None)) == pointers


def test_threads_search_while_one_stores(store: Store) -> None:
    keep(store, "alpha first")
    with ThreadPoolExecutor(4) as pool:
        searches = [pool.submit(found, store, "alpha") for _ in range(24)]
        for number in range(20):
            keep(store, f"alpha number{number}")
        assert all(search.result() for search in searches)

    assert len(found(store, "alpha")) == 21
    with closing(sqlite3.connect(store.folder / INDEX_NAME)) as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT pointer) FROM outputs").fetchone() == (21, 21)


def test_a_discarded_index_comes_again(store: Store) -> None:
    pointer = keep(store, "alpha")
    assert found(store, "alpha") == [pointer]
    remove(store.folder / INDEX_NAME)
    assert not [file for file in store.folder.glob(f"{INDEX_NAME}*") if file.suffix != ".lock"]
    remove(store.folder / INDEX_NAME)
    assert found(store, "alpha") == [pointer]


def test_the_index_of_a_later_version_stays(store: Store) -> None:
    pointer = keep(store, "alpha")
    found(store, "alpha")
    with closing(sqlite3.connect(store.folder / INDEX_NAME)) as connection, connection:
        connection.execute("INSERT INTO meta VALUES ('migration:s999_later', '')")
    newer = keep(store, "alpha beta")

    with pytest.raises(StoreError, match="later version"):
        found(store, "alpha")
    assert {hit.pointer for hit in search(store, "alpha", ["s"], 3).hits} == {pointer, newer}
    assert not (store.folder / SET_ASIDE).exists()
