"""What a handoff's material still holds, on sessions with known facts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import assistant, call, result, user

from hermes_jev.cli import main
from hermes_jev.evals.corpus import Session
from hermes_jev.evals.generic import Generic
from hermes_jev.evals.handoffs import LEAST_FACTS, WAYS, by_recency, compare, facts_of, table
from hermes_jev.judge import Lexical
from hermes_jev.settings import Settings

SAID = [f"services/ledger_{n}/settings_{n}.toml" for n in range(4)]
SHOWN = [f"build/output_{n}/artifact_{n}9731.tar.gz" for n in range(4)]
FILLER = "The weather is calm and the work goes on as it did before, word after word after word.\n"


def talk() -> list[Any]:
    """Early words name four files, early output four others; 40,000 characters of talk follow, then all are used."""
    before = [
        user("Look at " + ", ".join(SAID)),
        assistant("I list them.", call("c1")),
        result("c1", "\n".join(SHOWN)),
        *(assistant(f"Note {n}. " + FILLER * 5) for n in range(90)),
    ]
    later = [assistant(f"Now {said} and {shown}.") for said, shown in zip(SAID, SHOWN, strict=True)]
    return [*before, user("Go on."), *later]


def made(messages: list[Any]) -> Session:
    return Session("s1", "k", "s", "s1", composed=False, messages=messages)


def test_each_way_holds_what_it_holds() -> None:
    rows = {row.way: row for row in compare(made(talk()), 0.97, Generic(), Lexical(), Settings())}
    assert tuple(rows) == WAYS
    whole, last, chosen, recent = (rows[way] for way in WAYS)
    assert (whole.said, whole.all, whole.facts) == (1.0, 0.5, 8)
    assert (last.said, last.all) == (0.0, 0.0)
    assert last.chars <= 24_000 < whole.chars
    assert recent.chars <= chosen.chars <= 24_000


def test_facts_are_counted_once_and_only_when_used() -> None:
    messages = talk()
    said = "\n".join(SAID)
    facts = facts_of(messages[:-5], said, messages[-5:], Generic(), "s1")
    assert sorted(facts.said) == sorted(SAID)
    assert sorted(facts.tools) == sorted(SHOWN)
    assert facts_of(messages[:-5], said, [user(SAID[0])], Generic(), "s1") == ((), ())


def test_recency_is_the_newest_turns_whole() -> None:
    text = by_recency(talk(), 3_000)
    assert len(text) <= 3_000
    assert text.endswith(SHOWN[3] + ".")
    assert "turns left out" in text


def test_few_facts_do_not_count_and_nothing_said_is_no_case() -> None:
    few = [*talk()[:93], user("Go on."), assistant(f"Now {SAID[0]}."), assistant("Done.")]
    rows = compare(made(few), 0.97, Generic(), Lexical(), Settings())
    assert {row.said for row in rows} == {None}
    assert rows[0].facts < LEAST_FACTS
    assert "not defined" in table(rows, 7).cells[0][2]
    assert compare(made([result("c1", "x"), result("c2", "y")]), 0.5, Generic(), Lexical(), Settings()) == []


def test_the_command_prints_the_table_and_writes_the_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "session.json"
    file.write_text(json.dumps(talk()), encoding="utf-8")
    rows = tmp_path / "rows.json"
    assert main(["eval", "handoff", str(file), "--cuts", "0.97", "--markdown", "--json", str(rows)]) == 0
    out = capsys.readouterr().out
    assert all(f"| {way} |" in out for way in WAYS)
    assert [row["way"] for row in json.loads(rows.read_text())] == list(WAYS)
    assert main(["eval", "handoff", str(file), "--judge", "oracle"]) == 2
    assert main(["eval", "handoff", str(tmp_path / "none.json")]) == 2
