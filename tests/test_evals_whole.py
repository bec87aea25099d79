"""`jev eval` on whole sessions, and what the engine's own search brings back of what its pass cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import GOAL, assistant, call, pair, result, text, user
from eval_sessions import CUT, messages, session, write

from hermes_jev.errors import StoreError
from hermes_jev.evals.case import case_of, whole_case_of
from hermes_jev.evals.corpus import Session
from hermes_jev.evals.engine_policy import prune_by_default
from hermes_jev.evals.generic import Generic
from hermes_jev.evals.options import Options
from hermes_jev.evals.own_search import OwnSearch, Wanted, own_recovery_of
from hermes_jev.evals.report import tables
from hermes_jev.evals.run import Evaluation, Plan, evaluate
from hermes_jev.evals.score import loss_of
from hermes_jev.evals.texts import size_of
from hermes_jev.judge import Lexical
from hermes_jev.policy import Cuts
from hermes_jev.settings import Settings
from hermes_jev.store import Keep, Kept, Store


def cells(found: Evaluation, name: str) -> dict[str, dict[str, str]]:
    """A table as rows by name."""
    (one,) = [table for table in tables(found) if table.name == name]
    return {row[0]: dict(zip(one.columns, row, strict=True)) for row in one.cells}


# --- whole sessions -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """Three sessions of two kinds, of which the one of the office is mostly words."""
    path = write(tmp_path_factory.mktemp("mixed"), count=2)
    words = [message for n in range(40) for message in (user(text(2_000, f"u{n}")), assistant("Yes."))]
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"id": "talk", "kind": "office", "messages": [*words, *messages(9)]}) + "\n")
    options = Options(
        cuts=(), policies=("none", "keep-last-10", "stock-prune", "hermes_jev"), judges=("lexical", "zero")
    )
    return evaluate([str(path)], Plan(options))


def test_a_whole_session_is_measured_as_it_ended(mixed: Evaluation, tmp_path: Path) -> None:
    made = messages(20, (1, 4, 8, 13))
    after = prune_by_default(made, Lexical(), Settings(), Store(tmp_path)).messages

    (row,) = [row for row in mixed.rows if (row.id, row.policy) == ("made-0", "hermes_jev")]

    assert row.group == "whole"
    assert (row.cut, row.chars, row.removed) == (1.0, size_of(made), size_of(made) - size_of(after))
    assert not row.measures_loss
    assert row.removed == row.tool_removed <= row.bound < row.tool_chars


def test_whole_sessions_are_no_cases(mixed: Evaluation) -> None:
    assert mixed.cases == 0
    assert {table.name for table in tables(mixed)} == {"whole"}
    assert mixed.timings == ()


def test_sizes_of_whole_sessions_are_summed_by_kind_of_the_tool_heavy_and_of_all(mixed: Evaluation) -> None:
    found = cells(mixed, "whole")

    everybody = ("hermes_jev", "hermes_jev/zero", "none", "keep-last-10", "stock-prune")
    assert list(found) == [
        *("coding: hermes_jev", "coding: stock-prune", "office: hermes_jev", "office: stock-prune"),
        *(f"tool-heavy: {name}" for name in everybody),
        *(f"all: {name}" for name in everybody),
    ]
    own = [row for row in mixed.rows if row.policy == "hermes_jev"]
    removed, tool = sum(row.tool_removed for row in own), sum(row.tool_chars for row in own)
    total = found["all: hermes_jev"]
    assert total["sessions"] == "3"
    assert total["of all characters"] == f"{100 * sum(row.removed for row in own) / sum(row.chars for row in own):.1f}"
    assert total["of tool characters"] == f"{100 * removed / tool:.1f}"
    assert total["of what the pins allow"] == f"{100 * removed / sum(row.bound for row in own):.1f}"
    assert found["tool-heavy: hermes_jev"]["sessions"] == "2"
    assert list(found["tool-heavy: hermes_jev"].values())[1:] == list(found["coding: hermes_jev"].values())[1:]
    assert found["office: hermes_jev"]["of all characters"] != found["coding: hermes_jev"]["of all characters"]
    assert found["all: none"]["of tool characters"] == "0.0"


def test_a_session_without_tool_results_has_no_size_to_speak_of() -> None:
    talk = Session("talk", "k", "s", "talk", False, [user("hello"), assistant("hello"), user("bye"), assistant("bye")])

    assert whole_case_of(talk, Settings()) is None


def test_a_session_too_short_to_be_cut_is_still_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "short.json"
    path.write_text(json.dumps([user(GOAL), *pair(1, text(4_000))]), encoding="utf-8")

    found = evaluate([str(path)], Plan(Options(policies=("none",))))

    assert [(row.group, row.policy) for row in found.rows] == [("whole", "none")]
    assert evaluate([str(path)], Plan(Options(policies=("none",), least_chars=10_000))).rows == ()


# --- the engine's own search --------------------------------------------------------------------------------------


def kept(store: Store, owner: str, texts: list[str]) -> list[str]:
    """The pointers under which these outputs are stored for a session."""
    items = [Keep("terminal", json.dumps({"command": f"run {n}"}), one, "unknown", str) for n, one in enumerate(texts)]
    replies = store.keep(owner, items)
    assert all(isinstance(reply, Kept) for reply in replies)
    return [reply.id for reply in replies if isinstance(reply, Kept)]


def test_what_a_hit_shows_and_what_opening_it_shows_are_told_apart(tmp_path: Path) -> None:
    store = Store(tmp_path)
    towns = ("Aarhus", "Bergen", "Calais", "Dover", "Emden", "Fowey")
    logs = [f"harbour master of {town}\n{text(9_000, town)}" for town in towns]
    ids, deep = kept(store, "s", logs), logs[2][6_000:6_060]
    search = OwnSearch(store, "s")
    search.take_in()

    near = search.brought("harbour Calais", [Wanted("harbour master of Calais", {ids[2]})])
    far = search.brought("harbour Calais", [Wanted(deep, {ids[2]})])
    missed = search.brought("harbour Calais", [Wanted("nowhere at all", {"r-aaaaaaaaaa"})])
    wordless = search.brought(" ", [Wanted(deep, {ids[2]})])

    assert near.shown
    assert (far.found, far.shown, far.expanded) == (True, False, True)
    assert 0 < far.reply_chars <= 4_000
    assert (missed.found, missed.shown, missed.expanded) == (False, False, False)
    assert (wordless.found, wordless.shown, wordless.expanded) == (False, False, False)


def test_only_what_the_session_may_open_is_searched(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (theirs,) = kept(store, "other", ["harbour master berth_code"])
    kept(store, "s", ["harbour office"])
    wanted = [Wanted("berth_code", {theirs})]

    assert not OwnSearch(store, "s").brought("harbour master", wanted).expanded
    assert OwnSearch(store, "other").brought("harbour master", wanted).found


def test_a_search_that_fails_is_no_figure(tmp_path: Path) -> None:
    (tmp_path / "truth.sqlite3").mkdir()

    with pytest.raises(StoreError):
        OwnSearch(Store(tmp_path), "s").brought("harbour", [Wanted("x", set())])


def test_a_pass_is_asked_for_what_it_cut_itself(tmp_path: Path) -> None:
    """The second of two equal results holds the string too: either is a right hit, and both have one pointer."""
    log = f"{text(2_500, 'a')}\nmeteorological harbour berth_4711_code\n{text(2_500, 'b')}"
    past = [user(GOAL), *pair(1, log), *pair(2, text(5_000, "c"))]
    past += [message for n in range(3, 9) for message in pair(n, text(2_000, f"d{n}"))]
    step = assistant("The harbour now.", call("z", "terminal", {"command": "berth_4711_code meteorological"}))
    made = Session(
        "s", "k", "s", "s", False, [*past, step, result("z", "ok"), assistant("a"), user("b"), assistant("c")]
    )
    case = case_of(made, size_of(past) / size_of(made.messages) - 0.001, Generic(), Settings())
    assert case is not None
    settings, store = Settings(fact_chars=0), Store(tmp_path)
    loss = loss_of(case, prune_by_default(case.prefix, Lexical(), settings, store, "mine").messages)
    assert [need.text for need in loss.lost] == ["berth_4711_code"]

    own = own_recovery_of(case, loss, OwnSearch(store, "mine"), Cuts(settings))
    other = own_recovery_of(case, loss, OwnSearch(store, "another"), Cuts(settings))

    assert own == (1, 1, 1)
    assert other == (0, 0, 0)


def test_the_table_of_recovery_asks_the_product_for_the_engine_alone(tmp_path: Path) -> None:
    options = Options(
        cuts=(float(CUT),), shares=(), policies=("last-3-stubs", "hermes_jev"), judges=("lexical", "oracle+0.6"),
        settings=Settings(fact_chars=0, excerpt_chars=100),
    )  # fmt: skip

    evaluation = evaluate([str(write(tmp_path, count=3))], Plan(options))
    found = cells(evaluation, "recovery")

    columns = ("session_search: right result", "string in the reply", "after one expand")
    assert [found["last-3-stubs"][column] for column in columns] == ["-", "-", "-"]
    for name in ("hermes_jev", "hermes_jev/oracle+0.6"):
        right, shown, expanded = (float(found[name][column]) for column in columns)
        assert 0 <= shown <= expanded <= 100
        assert 0 < right <= 100
    for row in evaluation.rows:
        assert 0 <= row.own_shown <= row.own_expanded <= row.search_steps
        assert row.own_found <= row.search_steps
        assert row.policy.startswith("hermes_jev") or not (row.own_found or row.own_expanded)
    assert session().id not in found
