"""What came of cuts, counted: figures by hand from a store with known outcomes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import Fixed, session

from hermes_jev.cli import main
from hermes_jev.prune import prune
from hermes_jev.settings import Settings
from hermes_jev.stats import band_name, regrets
from hermes_jev.store import Store
from hermes_jev.store.notes import save_note
from hermes_jev.store.outcomes import outcomes_by_pointer, regretted

ALL = Settings(pin_last_calls=0)


def used(folder: Path) -> Store:
    """Six results cut; one fetched again, one of which the call was made again."""
    store = Store(folder)
    prune(session(6), Fixed(1.0, 0.07), store, ALL)
    pointers = [pointer for pointer, _ in outcomes_by_pointer(store)]
    regretted(store, [""], pointers[:1], "expand")
    regretted(store, [""], pointers[1:2], "again")
    return store


def test_by_tool_and_band_and_what_remains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = used(tmp_path)
    assert main(["stats", "--store", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["total"] == {"name": "all", "cuts": 6, "expanded": 1, "repeated": 1, "rate": 0.333333}
    assert [(cell["name"], cell["cuts"]) for cell in found["tools"]] == [("terminal", 6)]
    assert [(cell["name"], cell["cuts"]) for cell in found["bands"]] == [("0.05 to 0.1", 6)]
    receipt = json.loads(store.receipts()[0].body)
    freed = sum(one["chars_before"] - one["chars_after"] for one in receipt["decisions"])
    assert found["characters"] == {"freed": freed, "returned": 8_000, "unknown": 0, "net": freed - 8_000}
    assert "lower bound" in found["note"]


def test_for_a_person_in_80_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    used(tmp_path)
    assert main(["stats", "--store", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "lower bounds" in err
    assert "33.3%" in out
    rows = out.splitlines()[1:]
    assert max(map(len, rows)) <= 80


def test_without_receipts_no_characters_are_made_up(tmp_path: Path) -> None:
    store = used(tmp_path)
    saving = regrets(outcomes_by_pointer(store), []).saving
    assert (saving.freed, saving.returned, saving.unknown) == (0, 0, 6)


def test_nothing_cut_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_note(Store(tmp_path), "a", "b")
    assert main(["stats", "--store", str(tmp_path)]) == 1
    assert "no cuts on record" in capsys.readouterr().err


def test_bands_have_names() -> None:
    assert [band_name(band) for band in (-1, 0, 5)] == ["by rule", "0 to 0.05", "0.5 to 1"]
