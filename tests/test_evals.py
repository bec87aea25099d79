"""`jev eval`: from transcripts to tables, the same for the same seed, and plain about what it cannot say."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from builders import GOAL, assistant, pair, text, user
from eval_sessions import CUT, messages, session, share_of, write

from hermes_jev import cli
from hermes_jev.errors import InputError
from hermes_jev.evals.case import case_of
from hermes_jev.evals.compactors import Engine, LastStubs, Never, Stock
from hermes_jev.evals.corpus import group_of, sessions
from hermes_jev.evals.cost import replay
from hermes_jev.evals.generic import Generic
from hermes_jev.evals.passes import repeat
from hermes_jev.evals.prices import Prices, prices_from
from hermes_jev.evals.rows import Row, averaged
from hermes_jev.evals.score import loss_of
from hermes_jev.evals.statistics import estimate
from hermes_jev.judge import Lexical
from hermes_jev.settings import Settings
from hermes_jev.store import Store

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own, and no settings or keys of this process."""
    for name in list(os.environ):
        if name.startswith(("HERMES_", "TYPESAFE_", "JEV_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "300")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Addresses that this process tried to reach."""
    tried: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: tried.append(address))
    return tried


def evaluate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    try:
        code = cli.main(["eval", *arguments])
    except SystemExit as ended:
        code = int(str(ended.code))
    out, err = capsys.readouterr()
    return code, out, err


def as_json(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def table(found: dict[str, Any], name: str) -> dict[str, dict[str, str]]:
    """A table of the JSON as rows by name."""
    (one,) = [table for table in found["tables"] if table["name"] == name]
    return {row[0]: dict(zip(one["columns"], row, strict=True)) for row in one["cells"]}


def test_everything_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str], offline: list[Any]) -> None:
    path, out, svg = write(tmp_path / "in"), tmp_path / "out.json", tmp_path / "loss.svg"

    code, shown, said = evaluate(
        capsys, str(path), "--cuts", CUT, "--shares", ".3,.5", "--thresholds", "--judge",
        "lexical,oracle", "--json", str(out), "--picture", str(svg),
    )  # fmt: skip

    assert code == 0
    assert said == "6 sessions, 6 cases\n"
    found = as_json(out)
    assert {one["name"] for one in found["tables"]} == {
        *("sizes", "whole", "losses", "equal", "equal-kinds", "kinds", "thresholds", "recovery", "promises"),
    }
    for one in found["tables"]:
        assert one["title"] in shown
    losses = table(found, "losses")
    assert losses["none"]["needed strings lost"].startswith("0.0 ")
    assert losses["last-3-stubs"]["less recency, exact"].startswith("0.0 ")
    assert table(found, "equal")["50% hermes_jev/oracle"]["lost"].startswith("0.0 ")
    assert table(found, "promises")["hermes_jev"]["words unchanged"] == "100.0"
    assert table(found, "promises")["hermes_jev"]["second pass unchanged"] == "100.0"
    assert len(table(found, "thresholds")) == 10
    drawing = ElementTree.fromstring(svg.read_text(encoding="utf-8"))
    words = "".join(drawing.itertext())
    assert "hermes_jev, at equal size" in words
    assert "(6 cases)" in words
    assert offline == []


def test_the_same_seed_gives_the_same_numbers_in_any_number_of_processes(tmp_path: Path) -> None:
    path, made = write(tmp_path / "in", count=3), []
    for number, jobs in enumerate(("1", "2")):
        out = tmp_path / f"{number}.json"
        subprocess.run(
            [sys.executable, "-m", "hermes_jev.cli", "eval", str(path), "--cuts", CUT, "--jobs", jobs,
             "--json", str(out)],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        found = as_json(out)
        made.append((found["rows"], [t for t in found["tables"] if t["name"] != "promises"]))

    assert made[0] == made[1]
    assert made[0][0]


def test_the_replays_have_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No session here is long enough for prices to matter, and that is said."""
    code, shown, _ = evaluate(
        capsys, str(write(tmp_path, count=1)), "--cuts", CUT, "--policies", "none", "--cycles", "--cost", "--markdown"
    )

    assert code == 0
    assert "## Repeated passes" in shown
    assert "| coding | 1 | 40 |" in shown
    assert "Not defined: no session is that long." in shown


def test_where_nothing_is_needed_losses_are_not_defined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [user(GOAL), *(m for n in range(9) for m in pair(n, text(2_500, f"o{n}")))]
    path, svg = tmp_path / "plain.json", tmp_path / "plain.svg"
    path.write_text(json.dumps([*rows, assistant("One."), user("More?"), assistant("No.")]), encoding="utf-8")

    code, shown, _ = evaluate(capsys, str(path), "--picture", str(svg))

    assert code == 0
    assert "What each policy removes" in shown
    assert "not defined (no case)" in shown
    assert "Not defined" in svg.read_text(encoding="utf-8")


def test_few_sessions_have_a_mean_and_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown, _ = evaluate(capsys, str(write(tmp_path, count=2)), "--cuts", CUT)

    assert code == 0
    assert "[no interval: 2 sessions]" in shown
    assert "at least 5 are needed" in shown


def test_a_folder_is_read_and_what_is_no_transcript_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "sub", count=1)
    (tmp_path / "notes.json").write_text('{"no": "transcript"}', encoding="utf-8")
    (tmp_path / "one.json.gz").write_bytes(gzip.compress(json.dumps(messages()).encode()))

    code, _, said = evaluate(capsys, str(tmp_path), "--cuts", CUT, "--policies", "none")

    assert code == 0
    assert "passed over:" in said
    assert "notes.json" in said
    assert "2 sessions, 2 cases" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("missing.json",), "no such file or folder"),
        (("empty",), "no transcripts in this folder"),
        (("bad.json",), "bad.json: line 1: not JSON"),
        (("good.json", "--policies", "magic"), "policy 'magic' is unknown"),
        (("good.json", "--judge", "magic"), "judge 'magic' is unknown"),
        (("good.json", "--prices", "1,2"), "four numbers are needed"),
        (("good.json", "--cuts", "1.5"), "shares between 0 and 1"),
        (("good.json", "--jobs", "0"), "--jobs: at least 1"),
        (("good.json", "--window", "0"), "holds nothing"),
        (("good.json", "--generic", "bad.json"), "no list of generic strings"),
        (("good.json", "--set", "nothing=1"), "unknown setting"),
        (("good.json", "--cuts", CUT, "--json", "no/such/out.json"), "cannot be written"),
    ],
)
def test_bad_input_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: Any, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    (tmp_path / "good.json").write_text(json.dumps(messages()), encoding="utf-8")

    code, _, said = evaluate(capsys, *arguments)

    assert code == 2
    assert words in said.splitlines()[-1]
    assert "Traceback" not in said


def test_too_short_a_session_is_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "short.json"
    path.write_text(json.dumps([user("hello"), assistant("hello")]), encoding="utf-8")

    code, _, said = evaluate(capsys, str(path))

    assert code == 1
    assert said.endswith("1 sessions, 0 cases\n")


# --- reading ------------------------------------------------------------------------------------------------------


def test_sessions_of_every_shape_have_names(tmp_path: Path) -> None:
    lines = [{"id": "real-s1", "kind": "ops", "source": "x", "messages": messages()}, {"messages": messages()}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps({"session_id": "own", "messages": messages()}), encoding="utf-8")
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(m) + "\n" for m in messages()), encoding="utf-8")

    found = list(sessions([str(tmp_path), str(tmp_path / "a.jsonl")]))

    assert [(s.id, s.kind, s.group) for s in found] == [
        ("real-s1", "ops", "real"), ("a:2", "sessions", "a:2"), ("own", "sessions", "own"), ("c", "sessions", "c"),
    ]  # fmt: skip
    assert group_of("lineage-abc") == group_of("abc-s2") == "abc"


def test_tasks_strung_together_measure_sizes_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "c.jsonl", tmp_path / "out.json"
    rows = [{"id": f"c{n}", "composed": True, "messages": messages()} for n in range(2)]
    rows.append({"id": "c3", "composed": True, "meta": {"join": "lineage"}, "messages": messages()})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    evaluate(capsys, str(path), "--cuts", CUT, "--policies", "none", "--json", str(out))

    measured = {row["id"]: row["measures_loss"] for row in as_json(out)["rows"] if row["group"] == "policy"}
    assert measured == {"c0": False, "c1": False, "c3": True}


def test_halves_split_sessions_and_not_their_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, seen = tmp_path / "parts.jsonl", {}
    rows = [{"id": f"made{n}-s{part}", "messages": messages(6, ())} for n in range(6) for part in range(2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    for half in ("even", "odd"):
        out = tmp_path / f"{half}.json"
        evaluate(capsys, str(path), "--cuts", ".5", "--policies", "none", "--half", half, "--json", str(out))
        seen[half] = {row["id"] for row in as_json(out)["rows"]}

    assert seen["even"]
    assert seen["odd"]
    assert not seen["even"] & seen["odd"]
    assert len(seen["even"] | seen["odd"]) == 12
    assert not {group_of(name) for name in seen["even"]} & {group_of(name) for name in seen["odd"]}


# --- statistics ---------------------------------------------------------------------------------------------------


def test_an_interval_is_over_sessions_not_over_cases() -> None:
    apart = [(f"s{n}", float(n % 2)) for n in range(40)]
    together = [(f"s{n % 8}", float(n % 2)) for n in range(40)]

    one, few = estimate(apart, 1), estimate(together, 1)

    assert one.mean == few.mean == 0.5
    assert (one.cases, one.sessions, few.sessions) == (40, 40, 8)
    assert one.low is not None
    assert few.low is not None
    assert one.low > few.low
    assert estimate(apart, 1) == one
    assert estimate(apart[::-1], 1) == one
    assert not one.is_clear or one.low > 0


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "not defined (no case)"),
        ([("a", None)], "not defined (no case)"),
        ([("a", 1.0), ("a", 3.0)], "2.0 [no interval: 1 session]"),
        ([(name, 2.0) for name in "abcde"], "2.0 [2.0, 2.0]"),
    ],
)
def test_what_is_not_defined_is_said(values: Any, text: str) -> None:
    assert estimate(values, 1).text() == text


def test_rows_without_enough_needs_have_no_share() -> None:
    row = Row(
        id="a", session="a", kind="k", cut=0.5, policy="p", group="policy", share=None, chars=100, removed=50,
        tool_chars=80, tool_removed=40, bound=60, measures_loss=False, needs=1, lost=1, old=0, old_lost=0,
        results_needed=1, results_lost=1, steps=1, steps_hit=1, again=10,
    )  # fmt: skip

    assert row.lost_share is None
    assert row.difference("recency") is None
    assert (row.removed_share, row.tool_share) == (50, 50)


def test_draws_of_chance_are_averaged() -> None:
    row = Row(
        id="a", session="a", kind="k", cut=0.5, policy="p", group="equal", share=0.5, chars=100, removed=50,
        tool_chars=80, tool_removed=40, bound=60, measures_loss=True, needs=4, lost=1, old=0, old_lost=0,
        results_needed=1, results_lost=1, steps=1, steps_hit=1, again=10, matched={"recency": 10.0},
    )  # fmt: skip

    both = averaged([row, replace(row, lost=2, tool_removed=44, matched={"recency": 20.0, "random": 1.0})])

    assert (both.lost, both.tool_removed, both.lost_share) == (1.5, 42, 37.5)
    assert both.matched == {"recency": 15.0}
    assert both.difference("recency") == 22.5
    assert averaged([row]) is row


# --- replays ------------------------------------------------------------------------------------------------------


def test_forty_passes_cut_nothing_twice_and_say_what_is_left() -> None:
    long = session(calls=60, used=(2, 9, 30, 44))

    found = repeat(long, Settings())

    assert (found.passes, found.recut, found.restless, found.words_changed) == (40, 0, 0, 0)
    assert found.changed > 10
    assert set(found.floor) == {"words", "arguments", "shortened", "small", "pinned", "kept"}
    assert found.floor["shortened"] > 0
    assert sum(found.floor.values()) < 0.3 * found.chars


def test_a_call_costs_what_the_cache_does_not_know() -> None:
    prices = Prices(input=3, output=15, cached=0.3, written=3.75)

    assert prices.call(1_000, 800, 100) == pytest.approx((0.3 * 800 + 3.75 * 200 + 15 * 100) / 1e6)
    assert prices.plain(1_000, 100) == pytest.approx((3 * 1_000 + 15 * 100) / 1e6)
    assert prices_from("1,2,3,4") == Prices(1, 2, 3, 4)
    for bad in ("", "1,2,3", "1,2,3,-4", "1,2,3,nan", "a,b,c,d"):
        with pytest.raises(InputError):
            prices_from(bad)


def test_without_compaction_every_prompt_begins_with_the_one_before() -> None:
    short = session(calls=3, used=())
    free = Prices(0, 0, 0, 1)

    found = replay(short, "none", Never(), 100_000, free)

    # Written once each: all but the last answer, which is never part of a prompt.
    calls = [message for message in short.messages if message["role"] == "assistant"]
    assert found.calls == len(calls)
    assert found.dollars * 1e6 == pytest.approx(found.peak)
    assert (found.passes, found.stuck_at, found.stability) == (0, None, None)


def test_the_engine_in_a_window_spares_money_and_is_not_stuck(tmp_path: Path) -> None:
    long, window = session(calls=60, used=()), 30_000
    engine = Engine(Lexical(), Store(tmp_path), Settings(), window)

    found = replay(long, "hermes_jev", engine, window, Prices())
    plain = replay(long, "none", Never(), window, Prices())

    assert found.passes >= 1
    assert found.over == 0
    assert found.stuck_at is None
    assert plain.over > 0
    assert found.dollars < plain.dollars
    assert found.peak < plain.peak


@pytest.mark.parametrize("size", [50, 9_000])
def test_a_policy_that_cannot_get_under_its_trigger_is_stuck_unless_words_alone_are_left(size: int) -> None:
    """Stubs never shorten inputs: with long ones there is something left to cut."""
    words = [user("word " * 4_000)] * 10
    inputs = [m for n in range(6) for m in pair(n, "ok", "write_file", {"content": text(size, f"i{n}")})]
    rest = [m for n in range(30) for m in (assistant(f"step {n}"), user("go on"))]
    long = type(session())("s", "k", "s", "s", False, [*words, *inputs, *rest, assistant("end")])

    found = replay(long, "stubs", LastStubs(3, 10_000), 20_000, Prices())

    assert (found.stuck_at is not None) is (size > 1_000)
    assert found.stuck_at is not None or found.floor_at is not None


def test_what_is_lost_is_read_off_the_prompt_where_the_session_is_cut() -> None:
    made = session(calls=20, used=(2, 5, 9, 18))
    found = case_of(made, share_of(made, 20), Generic(), Settings())
    assert found is not None

    kept = replay(made, "none", Never(), 100_000, Prices(), [found])
    stubs = replay(made, "stubs", LastStubs(3, 0), 100_000, Prices(), [found])

    assert kept.lost == (0.0,)
    assert stubs.lost == (len(loss_of(found, _stubbed(made.messages[: found.cut])).lost) / len(found.needs),)
    assert stubs.lost[0] > 0.5


def _stubbed(messages: list[Any]) -> list[Any]:
    made = LastStubs(3, 0).before_call(messages, 1)
    assert made is not None
    return made.messages


def test_the_stock_engine_summarises_the_middle_and_pays_for_it() -> None:
    long = session(calls=40, used=())

    found = replay(long, "stock", Stock(30_000, 20_000, Prices()), 30_000, Prices())

    assert found.passes >= 1
    assert found.requests == found.passes
    assert 0 < found.beside < found.dollars
    assert found.peak < 21_500
