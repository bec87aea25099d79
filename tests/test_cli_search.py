"""`jev search` and `jev store rebuild`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from search_texts import keep

from hermes_jev.cli import main
from hermes_jev.store import Store
from hermes_jev.store.index import INDEX_NAME


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def jev(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capfd.readouterr()
    return code, out, err


def test_a_person_finds_what_every_session_had_cut(store: Store, capfd: Any) -> None:
    pointers = [keep(store, f"the flange {name}", session=name) for name in ("one", "two")]
    nobodys = keep(store, "the flange of nobody", session=None)
    code, out, err = jev(capfd, "search", "flange", "--store", str(store.folder))
    assert (code, err) == (0, "")
    assert all(pointer in out for pointer in [*pointers, nobodys])
    assert "    the flange one" in out


def test_one_session_and_those_it_continues(store: Store, capfd: Any) -> None:
    keep(store, "the flange", session="other")
    mine = keep(store, "the flange of mine", session="parent")
    store.link("child", "parent", "compression")
    code, out, _ = jev(capfd, "search", "flange", "--session", "child", "--json", "--store", str(store.folder))
    assert code == 0
    assert [hit["id"] for hit in json.loads(out)["results"]] == [mine]


def test_nothing_found(store: Store, capfd: Any) -> None:
    keep(store, "the flange")
    assert jev(capfd, "search", "zzz", "--store", str(store.folder)) == (1, "", "nothing that was cut holds this\n")
    code, out, _ = jev(capfd, "search", "zzz", "--json", "--store", str(store.folder))
    assert (code, json.loads(out)) == (1, {"results": [], "count": 0})
    assert jev(capfd, "search", "x", "--store", str(store.folder / "none"))[0] == 1


def test_as_many_as_asked_for(store: Store, capfd: Any) -> None:
    for n in range(9):
        keep(store, f"the flange {n}")
    assert jev(capfd, "search", "flange", "--limit", "8", "--store", str(store.folder))[1].count("r-") == 8


@pytest.mark.parametrize("limit", ["0", "-1", "x", "101"])
def test_a_limit_that_is_none(limit: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["search", "x", "--limit", limit])
    assert stopped.value.code == 2


def test_an_empty_query_is_told(capfd: Any) -> None:
    code, _, err = jev(capfd, "search", " ")
    assert code == 2
    assert "empty" in err


def test_a_store_that_cannot_be_read(store: Store, capfd: Any) -> None:
    keep(store, "the flange")
    store.path.unlink()
    store.path.mkdir()
    code, _, err = jev(capfd, "search", "flange", "--store", str(store.folder))
    assert code == 1
    assert "truth.sqlite3" in err


def test_rebuild(store: Store, capfd: Any) -> None:
    keep(store, "the flange")
    (store.folder / INDEX_NAME).write_bytes(b"garbage")
    code, _, err = jev(capfd, "store", "rebuild", "--store", str(store.folder))
    assert code == 0
    assert "1 outputs" in err
    assert jev(capfd, "search", "flange", "--store", str(store.folder))[0] == 0
    assert jev(capfd, "store", "rebuild", "--store", str(store.folder / "none"))[0] == 0
