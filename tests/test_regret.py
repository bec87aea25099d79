"""What came of cuts: on record, counted once, and never at the cost of a pass."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from builders import GOAL, Fixed, assistant, pair, text, user

from hermes_jev.job import Job
from hermes_jev.prune import run
from hermes_jev.regret import record_expand, repeated
from hermes_jev.settings import Settings
from hermes_jev.store import Store
from hermes_jev.store import outcomes as table
from hermes_jev.store.outcomes import CutRow, OutcomeRow, add_cuts, outcomes, regretted
from hermes_jev.transcript import Transcript

POINTER = "r-" + "a" * 10


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def row(pointer: str = POINTER, **more: Any) -> CutRow:
    return CutRow(**{"pointer": pointer, "tool": "read_file", "judge": "jev", "score": 0.1, "reason": "x", **more})


# --- the table ------------------------------------------------------------------------------------------------------


def test_an_empty_store_holds_no_outcomes(store: Store) -> None:
    assert outcomes(store) == []
    assert regretted(store, ["s"], [POINTER], "expand") == 0
    add_cuts(store, "s", [])
    assert not store.folder.exists()


def test_a_cut_is_on_record_once_and_its_first_regret_stays(store: Store) -> None:
    add_cuts(store, "s", [row(), row("r-" + "b" * 10, score=None, judge="")])
    add_cuts(store, "s", [row(score=0.4)])

    assert regretted(store, ["s"], [POINTER], "expand") == 1
    assert regretted(store, ["s"], [POINTER], "again") == 0
    assert outcomes(store) == [
        OutcomeRow("read_file", "jev", 0.1, "x", "expand"),
        OutcomeRow("read_file", "", None, "x", ""),
    ]
    assert len(outcomes(store, "jev")) == 1


def test_another_sessions_cut_is_its_own(store: Store) -> None:
    add_cuts(store, "a", [row()])

    assert regretted(store, ["b"], [POINTER], "expand") == 0
    assert regretted(store, ["b", "a"], [POINTER], "expand") == 1


def test_the_oldest_rows_leave(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_OUTCOMES", 2)
    for letter in "abc":
        add_cuts(store, "s", [row("r-" + letter * 10, tool=letter)])

    assert [one.tool for one in outcomes(store)] == ["b", "c"]


# --- the same call again --------------------------------------------------------------------------------------------


def notice(pointer: str = POINTER) -> str:
    return (
        f"x\n[hermes_jev: this call ran and returned 8,423 characters; the first 1 are above, all are stored: "
        f'expand(id="{pointer}")]'
    )


def calls(*steps: tuple[str, Any, str]) -> tuple[str, ...]:
    messages = [user(GOAL)]
    for number, (tool, arguments, content) in enumerate(steps, 1):
        messages += pair(number, content, tool, arguments)
    return repeated(Transcript.parse(messages))


READ, TEST = ("read_file", {"path": "a.py"}), ("terminal", {"command": "pytest"})


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([(*READ, notice()), (*READ, "text")], (POINTER,)),
        ([(*READ, notice()), ("read_file", {"path": "b.py"}, "text")], ()),
        ([(*READ, "whole"), (*READ, "text")], ()),
        ([(*READ, notice()), ("patch", {"path": "z.py"}, "done"), (*READ, "text")], ()),
        ([(*TEST, notice()), ("terminal", {"command": "echo 1 > a.py"}, ""), (*TEST, "text")], ()),
        ([("patch", {"path": "z.py"}, "done"), (*TEST, notice()), (*TEST, "text")], (POINTER,)),
        ([(*READ, "quoted: " + notice() + " and more"), (*READ, "text")], ()),
    ],
)
def test_the_same_call_with_nothing_written_in_between(
    steps: list[tuple[str, Any, str]], found: tuple[str, ...]
) -> None:
    assert calls(*steps) == found


# --- through the passes of a session --------------------------------------------------------------------------------


def messages(count: int = 6) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [user(GOAL)]
    for number in range(1, count + 1):
        made += pair(number, text(4_000, f"w{number}"), "read_file", {"path": f"m{number}.py"})
    return [*made, assistant("done")]


def job(store: Store, session: str | None = "s") -> Job:
    return Job(settings=Settings(), judge=Fixed(0.9, 0.1), store=store, session=session)


def test_a_pass_puts_its_cuts_on_record_and_finds_calls_made_again(store: Store) -> None:
    pruned = run(messages(), job(store))
    assert [(one.tool, one.judge, one.score, one.regret) for one in outcomes(store)] == [
        ("read_file", "scripted", 0.1, "")
    ] * 3

    again = [*pruned.messages, *pair(9, text(4_000, "w1"), "read_file", {"path": "m1.py"}), assistant("so")]
    run(again, job(store))

    assert [one.regret for one in outcomes(store)][:3] == ["again", "", ""]


def test_without_a_session_cuts_are_on_record_under_no_name(store: Store) -> None:
    run(messages(), job(store, None))

    assert len(outcomes(store)) == 3
    assert regretted(store, ["s"], [one["pointer"] for one in decisions(store, None)], "expand") == 0


def decisions(store: Store, session: str | None) -> list[dict[str, Any]]:
    found = json.loads(store.receipts(session)[0].body)["decisions"]
    return [decision for decision in found if decision["pointer"]]


def test_an_expand_counts_and_an_error_does_not(store: Store) -> None:
    run(messages(), job(store))
    first = decisions(store, "s")[0]["pointer"]

    record_expand(json.dumps({"error": "nothing is stored", "id": first}), store, lambda: ["s"])
    assert not any(one.regret for one in outcomes(store))

    record_expand(json.dumps({"id": first, "text": "…"}), store, lambda: ["other", "s"])
    assert [one.regret for one in outcomes(store)].count("expand") == 1


def test_a_store_that_cannot_be_used_costs_the_record_only(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.add_receipt("s", "{}")
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("DROP TABLE outcomes")
    learned = Settings(calibration="learned")

    pruned = run(messages(), Job(settings=learned, judge=Fixed(0.9, 0.1), store=store, session="s"))
    record_expand(json.dumps({"id": POINTER}), store, lambda: ["s"])
    run([*pruned.messages, *messages()], Job(settings=learned, judge=Fixed(0.9, 0.1), store=store, session="s"))

    assert pruned.receipt.outcome == "compacted"
    for what in ("of a cut was not recorded", "of earlier cuts cannot be read", "of cut results cannot be read"):
        assert what in caplog.text
