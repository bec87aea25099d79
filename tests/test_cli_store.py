"""`jev store`: what it prints, what it removes, and its exit codes."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from store_child import item

from hermes_jev.cli import main
from hermes_jev.store import Keep, Kept, Store
from hermes_jev.store.keeps import keep_whole


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith(("HERMES_", "TYPESAFE_", "JEV_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".hermes"


@pytest.fixture
def store(home: Path) -> Store:
    """The store of Hermes' usual home, where a person's shell finds it unasked."""
    return Store(home / "hermes_jev")


Printed = pytest.CaptureFixture[str]


def old(store: Store) -> Store:
    """The same store a year ago."""
    return Store(store.folder, now=lambda: store.now() - 365 * 86_400)


def test_nothing_stored_is_no_failure_but_for_a_purge(capsys: Printed) -> None:
    for action in ("stats", "verify", "gc", "export"):
        assert main(["store", action]) == 0
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "nothing is stored in" in printed.err
    assert main(["store", "purge", "--session", "s"]) == 1


def test_stats(store: Store, capsys: Printed) -> None:
    store.keep("s", [item("a", 0), item("a", 1)])
    assert main(["store", "stats"]) == 0
    text = capsys.readouterr().out
    assert str(store.folder) in text
    assert "2 of 1 sessions" in text
    assert "30 days, 1,000.0 MB; last swept never" in text
    assert main(["store", "stats", "--json", "--store", str(store.folder)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["originals"], found["sessions"], found["set_aside"]) == (2, 1, [])


def test_verify(store: Store, capsys: Printed) -> None:
    store.keep("s", [item("a", 0), item("a", 1)])
    assert main(["store", "verify"]) == 0
    assert "sound, 2 originals" in capsys.readouterr().out
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE contents SET body = x'00' WHERE rowid = 2")
    assert main(["store", "verify"]) == 1
    assert "is damaged" in capsys.readouterr().out
    store.path.write_bytes(b"no database")
    assert main(["store", "verify"]) == 1
    assert store.path.read_bytes() == b"no database", "who looks changes nothing"


def test_gc_spares_what_stands_in_a_conversation(store: Store, home: Path, capsys: Printed) -> None:
    given = old(store).keep("s", [item("a", number) for number in range(3)])
    (stands, goes, later) = [one.id for one in given if isinstance(one, Kept)]
    with closing(sqlite3.connect(home / "state.db")) as connection, connection:
        connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, content, active, tool_calls)")
        rows = [(f'x\n[hermes_jev: … expand(id="{stands}").', 1), (f'[hermes_jev: expand(id="{goes}")', 0)]
        rows.append((f'\0json:["[hermes_jev: expand(id=\\"{later}\\")"]', 1))
        connection.executemany("INSERT INTO messages (content, active) VALUES (?, ?)", rows)
    (wanted,) = [one.id for one in old(store).keep("s", [item("b", 0)]) if isinstance(one, Kept)]
    keep_whole(store, wanted)
    assert main(["store", "gc"]) == 0
    assert "removed 1 originals" in capsys.readouterr().out
    assert {one.id for one in store.each()} == {stands, later, wanted}
    (home / "state.db").write_bytes(b"no database")
    assert main(["store", "gc"]) == 1
    assert "cannot be read" in capsys.readouterr().err
    assert {one.id for one in store.each()} == {stands, later, wanted}


def test_gc_with_other_limits(store: Store, capsys: Printed) -> None:
    store.keep(None, [item("a", n) for n in range(100)])
    assert main(["store", "gc", "--set", "store_max_bytes=150000"]) == 0
    assert 0 < len(list(store.each())) < 100
    assert main(["store", "gc", "--set", "store_max_age_days=0"]) == 2
    store.keep("live", [item("b", n) for n in range(50)])
    assert main(["store", "gc", "--set", "store_max_bytes=150000"]) == 0
    assert "in use or needed" in capsys.readouterr().err


def test_export_is_json_lines_of_every_original(store: Store, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    values = ["two\ud800\udc00surrogates \0 é", {"a": [1, None]}, "damaged"]
    store.keep("s", [Keep("tool", '{"n": 1}', value, "failed", "[{}]".format) for value in values])
    store.keep("t", [item("other", 0)])
    assert main(["store", "export", "--session", "s"]) == 0
    text = capfdbinary.readouterr().out.decode("utf-8", "surrogatepass")
    records = [json.loads(line) for line in text.splitlines()]
    assert [record["result"] for record in records] == values
    assert {(record["tool"], record["arguments"], record["outcome"]) for record in records} == {
        ("tool", '{"n": 1}', "failed")
    }
    assert all(record["sessions"] == ["s"] and store.get(record["id"], ["s"]) for record in records)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE contents SET body = x'00' WHERE chars = 7")
    assert main(["store", "export"]) == 1
    printed = capfdbinary.readouterr()
    assert len(printed.out.splitlines()) == 3
    assert b"is damaged" in printed.err


def test_purge(store: Store, capsys: Printed) -> None:
    store.keep("s", [item("a", 0), item("shared", 0)])
    store.keep("t", [item("shared", 0)])
    store.link("s", "before", "compression")
    assert main(["store", "purge", "--session", "s"]) == 0
    printed = capsys.readouterr()
    assert "removed 1 originals and 0 receipts of s; 1 that other sessions have too stay" in printed.out
    assert "s continued before" in printed.err
    assert main(["store", "purge", "--session", "s"]) == 1
    assert "nothing is stored for session s" in capsys.readouterr().err
    assert main(["store", "purge", "--session", ""]) == 2
    with pytest.raises(SystemExit) as stopped:
        main(["store", "purge"])
    assert stopped.value.code == 2


def test_a_store_that_cannot_be_used_stops_no_other(store: Store, tmp_path: Path, capsys: Printed) -> None:
    store.keep("s", [item("a", 0)])
    own = Store(tmp_path / ".local/share/hermes_jev")
    own.folder.mkdir(parents=True)
    own.path.write_bytes(b"no database")
    assert main(["store", "stats"]) == 1
    printed = capsys.readouterr()
    assert "1 of 1 sessions" in printed.out
    assert "damaged" in printed.err
