"""Searching what was cut: ranked, shown at the right place, safe with every query."""

from __future__ import annotations

import json
import os
import stat
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from search_texts import keep

from hermes_jev.excerpts import GAP, Hit, Material
from hermes_jev.ranking import Candidate, Field, ranked
from hermes_jev.search import Answer, search, stored
from hermes_jev.store import Store
from hermes_jev.store.index import INDEX_NAME


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", now=count(1_000.0).__next__)


def hits(store: Store, query: str, session: str = "s", limit: int = 6) -> list[str]:
    return [hit.pointer for hit in search(store, query, [session], limit).hits]


# --- ranking ------------------------------------------------------------------------------------------------------


def test_rare_words_count_more(store: Store) -> None:
    common = [keep(store, f"connection log entry {n}") for n in range(8)]
    rare = keep(store, "entry about the flange")
    assert hits(store, "connection flange entry")[0] == rare
    assert set(hits(store, "connection", limit=10)) == set(common)


def test_more_of_a_word_counts_more_and_of_equals_the_newest(store: Store) -> None:
    once = [keep(store, f"flange and much else of kind {n}") for n in range(3)]
    often = keep(store, "flange flange flange and much else")
    newest = keep(store, "flange and much else of kind 9")
    for n in range(9):
        keep(store, f"something different {n}")

    found = hits(store, "flange")
    assert found[0] == often
    assert found[1:] == [newest, *reversed(once)]


def test_the_second_hit_brings_what_the_first_lacks() -> None:
    field = Field(40, 50.0, {"a": 3, "b": 3, "c": 1})
    same = [Candidate(f"r-same{n}", n, 50, {"a": 5, "b": 5}) for n in range(3)]
    other = Candidate("r-other", 0.0, 50, {"c": 5})
    assert [one.candidate.pointer for one in ranked([*same, other], field, 2)] == ["r-same2", "r-other"]


def test_a_word_that_nothing_holds_is_no_hindrance(store: Store) -> None:
    pointer = keep(store, "the flange is bent")
    assert hits(store, "flange zzzzz qqqqq") == [pointer]


# --- queries ------------------------------------------------------------------------------------------------------

LITERAL = [
    "foo-bar:baz",
    '"quoted"',
    "供应商编号",
    "应商",
    "C:\\temp\\a.txt",
    "50%",
    "getUserName",
    "username",
    "src/app/main.py",
    "main.py",
    "🚀",
    "→ done",
    "привет",
    "안녕",
    "NULs",
    "mid_of_word"[4:9],
]
TEXT = (
    'one foo-bar:baz two "quoted" 供应商编号 C:\\temp\\a.txt at 50% in getUserName of src/app/main.py 🚀 → done привет'
    " 안녕 NULs mid_of_word"
)


@pytest.mark.parametrize("query", LITERAL, ids=ascii)
def test_literal_text_is_found(store: Store, query: str) -> None:
    for n in range(5):
        keep(store, f"another output {n}")
    pointer = keep(store, TEXT)
    assert hits(store, query)[0] == pointer


ODD = [
    "",
    " ",
    "*",
    "OR",
    "NOT",
    "NEAR(",
    '"unbalanced',
    "a'; DROP TABLE x;--",
    "(((",
    "{}",
    "col:val",
    "-x",
    "^a",
    "a AND OR b",
    "\x00",
    "a\x00b",
    "\ud800",
    "\ud800x",
    "👩‍👩‍👧",
    "a" * 100_000,
    "word " * 20_000,
    "%_\\",
    "\n\t",
    "§0",
    "r-abcdefghij",
]


@pytest.mark.parametrize("query", ODD, ids=lambda query: ascii(query[:12]))
def test_odd_queries_never_fail(store: Store, query: str) -> None:
    keep(store, "some text")
    answer = search(store, query, ["s"], 6)
    assert len(answer.hits) <= 1
    assert store.check() == []


@settings(derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
def test_any_query_is_answered(store: Store, query: str) -> None:
    keep(store, TEXT)
    answer = search(store, query, ["s"], 3)
    for excerpt in answer.material().excerpts(500):
        assert len(excerpt.text) < 700


def test_what_was_stored_lists_the_newest_first(store: Store) -> None:
    first, second = keep(store, "one"), keep(store, "two")
    keep(store, "{}", tool="expand")
    keep(store, "theirs", session="other")
    assert [one.pointer for one in stored(store, ["s"])] == [second, first]


# --- where the index cannot be kept -------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_folder_that_cannot_be_written(store: Store) -> None:
    pointer = keep(store, "the flange")
    store.folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert hits(store, "flange") == [pointer]
    finally:
        store.folder.chmod(0o700)


def test_a_folder_stands_where_the_index_should_be(store: Store) -> None:
    pointer = keep(store, "the flange")
    (store.folder / INDEX_NAME).mkdir()
    assert hits(store, "flange") == [pointer]


# --- excerpts -----------------------------------------------------------------------------------------------------

FILLER = "\n".join(f"nothing of note in line {n} here" for n in range(400))


def shown(answer: Answer, chars: int = 600) -> str:
    return answer.material().excerpts(chars)[0].text


def test_the_excerpt_shows_the_match_and_what_stands_around_it(store: Store) -> None:
    keep(store, f"{FILLER}\nbefore it\nthe flange is bent\nafter it\n{FILLER}")
    text = shown(search(store, "flange bent", ["s"], 6))
    assert "before it\nthe flange is bent\nafter it" in text
    assert text.startswith(("nothing", "before", GAP))


def test_several_places_of_one_output_are_shown(store: Store) -> None:
    keep(store, f"alpha flange\n{FILLER}\nomega flange")
    text = shown(search(store, "flange", ["s"], 6))
    assert "alpha flange" in text
    assert "omega flange" in text
    assert GAP in text


def test_the_place_with_most_of_the_query_wins(store: Store) -> None:
    scattered = "\n".join(f"pump status {n}" for n in range(60))
    keep(store, f"{scattered}\n{FILLER}\npump of station nine\nhas the valve 4711\npressure low\n{FILLER}")
    text = shown(search(store, "pump station valve pressure", ["s"], 6), 200)
    assert "has the valve 4711" in text


def test_names_near_a_match_are_listed_when_their_lines_do_not_fit() -> None:
    line = "flange " + " ".join(f"word{'' if n % 9 else f'_key_{n}'} padding" for n in range(60))
    (excerpt,) = Material([Hit(line, 1.0)], {"flange": 1.0}).excerpts(300)
    assert any(name.startswith("word_key_") for name in excerpt.names)
    assert len(json.dumps(excerpt.text)) + sum(len(name) + 2 for name in excerpt.names) <= 320


def test_one_long_line_is_cut_into_pieces_at_the_match() -> None:
    text = ", ".join(f'"field{n}": {n}' for n in range(3_000)) + ', "flange": "bent", ' + "x" * 9_000
    (excerpt,) = Material([Hit(text, 1.0)], {"flange": 1.0}).excerpts(400)
    assert '"flange": "bent"' in excerpt.text
    assert len(excerpt.text) <= 400


@pytest.mark.parametrize("chars", [0, 50, 300, 1_000, 4_000])
def test_excerpts_keep_to_their_length(store: Store, chars: int) -> None:
    for n in range(6):
        keep(store, "\n".join(f'flange "{n}" \\ line {m} \t of path/to/file_{m}.py' for m in range(200)))
    excerpts = search(store, "flange", ["s"], 6).material().excerpts(chars)
    assert sum(len(json.dumps(one.text)) + sum(len(name) + 2 for name in one.names) for one in excerpts) <= chars + 20


def test_a_long_hit_says_which_lines_to_read() -> None:
    text = f"{FILLER}\n" * 3 + f"the flange is bent\n{FILLER}"
    material = Material([Hit(text, 1.0), Hit("short", 1.0)], {"flange": 1.0})
    page = material.page(0, 5_000)
    assert page is not None
    lines = text.split("\n")[page[0] - 1 : page[1]]
    assert "the flange is bent" in lines
    assert len("\n".join(lines)) <= 5_000
    assert material.page(1, 5_000) is None


def test_every_hit_shows_a_line_that_matches(store: Store) -> None:
    """Also where another hit shows the same line."""
    for number in range(4):
        keep(store, f"run {number}\n" + "an error: connection refused\n" * 3 + f"{number} done\n" * 300)
    excerpts = search(store, "connection refused", ["s"], 10).material().excerpts(3_000)
    assert len(excerpts) == 4
    assert all("connection refused" in excerpt.text for excerpt in excerpts)
