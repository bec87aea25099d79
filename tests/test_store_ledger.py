"""Lineage, verdicts, receipts and the steps that make the tables."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from hermes_jev.errors import StoreError
from hermes_jev.store import Keep, Store, StoredVerdict
from hermes_jev.store.database import Database
from hermes_jev.store.migrations import MIGRATIONS, applied, migrate


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", now=count(1_000.0).__next__)


def rows(store: Store, table: str) -> int:
    with closing(sqlite3.connect(store.path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def change(store: Store, statement: str) -> int:
    """Edit the file behind the store's back; the number of rows that changed."""
    with closing(sqlite3.connect(store.path)) as connection, connection:
        return connection.execute(statement).rowcount


# Lineage


def test_ancestry_goes_up_to_the_first_session(store: Store) -> None:
    for child, parent in (("c", "b"), ("b", "a"), ("c", "side"), ("c", "b"), ("z", "c")):
        store.link(child, parent, "compression")
    assert store.ancestry("c") == ["c", "b", "side", "a"]
    assert store.ancestry("a") == ["a"]
    assert rows(store, "lineage") == 4


def test_a_session_cannot_continue_itself(store: Store) -> None:
    store.link("b", "a", "compression")
    store.link("c", "b", "compression")
    for child, parent in (("a", "a"), ("a", "b"), ("a", "c")):
        with pytest.raises(StoreError, match="itself"):
            store.link(child, parent, "compression")
    assert store.ancestry("c") == ["c", "b", "a"]


def test_ancestry_survives_a_loop_and_is_bounded(store: Store) -> None:
    store.link("s1", "s0", "compression")
    change(store, "INSERT INTO lineage VALUES ('s0', 's1', 'made by hand', 0)")
    assert store.ancestry("s0") == ["s0", "s1"]
    with closing(sqlite3.connect(store.path)) as connection, connection:
        edges = [(f"t{number + 1}", f"t{number}") for number in range(1_500)]
        connection.executemany("INSERT INTO lineage VALUES (?, ?, '', 0)", edges)
    assert store.ancestry("t1500") == [f"t{number}" for number in range(1_500, 500, -1)]


# Verdicts and receipts


def test_verdicts_come_back_and_are_replaced(store: Store) -> None:
    first = StoredVerdict(0.25, None, "full", 12, "lexical\ud800")
    store.save_verdicts({"a": first, "b": first})
    second = StoredVerdict(None, 1.0, "inputs<=200", 0, "jev")
    store.save_verdicts({"b": second})
    assert store.verdicts(["b", "missing", "a", "a"]) == {"a": first, "b": second}


@pytest.mark.parametrize(
    "damage", ["call = x'00'", "calls_seen = 'many'", "judge = x'ff'", "stage = CAST(x'ff' AS TEXT)"]
)
def test_a_damaged_verdict_is_an_error_and_no_verdict(store: Store, damage: str) -> None:
    store.save_verdicts({"a": StoredVerdict(0.25, 0.5, "full", 12, "lexical")})
    assert change(store, f"UPDATE verdicts SET {damage}") == 1
    with pytest.raises(StoreError, match="damaged"):
        store.verdicts(["a"])


def test_the_oldest_verdicts_leave(store: Store) -> None:
    verdict = StoredVerdict(0.5, 0.5, "full", 1, "jev")
    store.save_verdicts({f"k{number}": verdict for number in range(50_000)})
    store.save_verdicts({"k0": verdict})
    assert rows(store, "verdicts") == 50_000
    store.save_verdicts({f"n{number}": verdict for number in range(3)})
    assert rows(store, "verdicts") == 50_000
    found = store.verdicts(["k0", "k1", "k2", "k3", "k4", "n0", "n2"])
    assert sorted(found) == ["k0", "k4", "n0", "n2"]


def test_receipts_newest_first(store: Store) -> None:
    numbers = [store.add_receipt(session, f'{{"n": "{session}\0\ud800"}}') for session in ("s1", "s2", None, "s1")]
    assert numbers == sorted(set(numbers))
    assert [(one.session, one.created) for one in store.receipts()] == [
        ("s1", 1_003.0),
        (None, 1_002.0),
        ("s2", 1_001.0),
        ("s1", 1_000.0),
    ]
    assert [one.id for one in store.receipts("s1")] == [numbers[3], numbers[0]]
    assert [one.id for one in store.receipts(limit=1)] == [numbers[3]]
    assert store.receipts(limit=0) == []
    assert store.receipts()[0].body == '{"n": "s1\0\ud800"}'


# Migrations


def test_each_step_runs_once_and_is_recorded_with_what_it_did(tmp_path: Path) -> None:
    def m998_extra(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE extra (x)")

    def m999_fails(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (x)")
        connection.execute("CREATE TABLE extra (x)")

    with closing(sqlite3.connect(tmp_path / "file", isolation_level=None)) as connection:
        assert applied(connection) == frozenset()
        migrate(connection)
        migrate(connection, (*MIGRATIONS, m998_extra))
        with pytest.raises(sqlite3.OperationalError, match="already exists"):
            migrate(connection, (*MIGRATIONS, m998_extra, m999_fails))
        assert not connection.in_transaction
        assert applied(connection) == {*(step.__name__ for step in MIGRATIONS), "m998_extra"}
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
        with pytest.raises(StoreError, match="later version"):
            migrate(connection)


def test_a_step_that_another_process_ran_meanwhile_is_not_run_again(tmp_path: Path) -> None:
    runs: list[sqlite3.Connection] = []

    def m001_counted(connection: sqlite3.Connection) -> None:
        runs.append(connection)

    with (
        closing(sqlite3.connect(tmp_path / "file", isolation_level=None)) as late,
        closing(sqlite3.connect(tmp_path / "file", isolation_level=None)) as early,
    ):
        late.set_trace_callback(lambda sql: migrate(early, (m001_counted,)) if sql.startswith("BEGIN") else None)
        migrate(late, (m001_counted,))
        assert runs == [early]
        assert applied(late) == {"m001_counted"}


def test_reading_brings_an_older_file_up_to_date(store: Store) -> None:
    def m998_extra(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE extra (x)")

    later = Database(store.path, (*MIGRATIONS, m998_extra))
    with later.reading() as connection:
        assert connection is None
    assert not store.folder.exists()
    store.add_receipt("s1", "{}")
    for _ in range(2):
        with later.reading() as connection:
            assert connection is not None
            assert connection.execute("SELECT count(*) FROM extra").fetchone() == (0,)
            assert connection.execute("SELECT count(*) FROM receipts").fetchone() == (1,)


def test_a_file_of_a_later_version_is_read_and_not_written(store: Store) -> None:
    number = store.add_receipt("s1", "{}")
    change(store, "INSERT INTO meta VALUES ('migration:m999_future', '')")
    assert [one.id for one in store.receipts()] == [number]
    with pytest.raises(StoreError, match="later version"):
        store.add_receipt("s1", "{}")


RELEASED = {
    "m001_truth": "602ff0e93c73343ece9bfe31e9f667092f2b9560ea8d5e3477ba5d33c41c1165",
    "m002_retention": "c0fabb686472416033b30c4cafd0ab89530616b08326ef83228de0f8db23113c",
    "m003_services": "0875d3efe2cc82010251e4ece145eaa603c649c8fe56ddaefc86258dbb440ba1",
    "m004_outcomes": "41ee051f8d47368494dc6c61f093d4610a0879ebb0ce8a375bbd32759a4ca7bc",
    "m005_keeps": "a646b3cde8a78b9d00abb6e854f54be20d290fb56a370d5f2d852567e304fce3",
}
"""Hash of the schema after each step."""


def test_released_steps_do_not_change() -> None:
    for number, (name, expected) in enumerate(RELEASED.items(), 1):
        assert MIGRATIONS[number - 1].__name__ == name
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            migrate(connection, MIGRATIONS[:number])
            rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
        schema = "\n".join(" ".join(sql.split()) for (sql,) in rows)
        assert hashlib.sha256(schema.encode()).hexdigest() == expected, name
    assert len(MIGRATIONS) == len(RELEASED)


def test_a_file_of_the_first_version_is_brought_up_to_date(store: Store) -> None:
    store.keep("mine", [Keep("terminal", "{}", "of a session", "ok", str)])
    store.keep(None, [Keep("terminal", "{}", "of the shell", "ok", str)])
    store.add_receipt("mine", "{}")
    older = Store(store.folder.with_name("older"), now=store.now)
    with Database(older.path, MIGRATIONS[:1]).writing() as connection:
        connection.execute("ATTACH ? AS newer", (str(store.path),))
        for table, columns in (
            ("contents", "*"),
            ("originals", "pointer, tool, arguments_sha, result_sha, outcome, created"),
            ("grants", "*"),
            ("receipts", "id, session, created, body"),
        ):
            connection.execute(f"INSERT INTO {table} SELECT {columns} FROM newer.{table}")
    assert older.check() == []
    with closing(sqlite3.connect(older.path)) as connection:
        for query in ("SELECT used, shell FROM originals ORDER BY pointer", "SELECT bytes FROM receipts"):
            with closing(sqlite3.connect(store.path)) as newer:
                assert connection.execute(query).fetchall() == newer.execute(query).fetchall()
        assert connection.execute("SELECT session FROM sessions").fetchall() == [("mine",)]
