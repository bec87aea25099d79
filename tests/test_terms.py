"""What a text can be found by."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev.readable import readable
from hermes_jev.terms import LONGEST_TERM, LONGEST_TEXT, names_in, query_terms, term_counts, terms_in

FOUND = [
    ("src/app/getUserName.py", {"src/app/getusername.py", "getusername", "get", "user", "name", "py"}),
    ("foo-bar:baz", {"foo-bar:baz", "foo", "bar", "baz"}),
    ("C:\\temp\\a.txt", {"c:\\temp\\a.txt", "temp", "txt"}),
    ("snake_case_id", {"snake_case_id", "snake", "case", "id"}),
    ("HTTPServer2", {"httpserver2", "server"}),
    ("records record", {"record"}),
    ("供应商编号", {"供应", "商编", "编号", "供"}),
    ("版本v2发布", {"版本", "v2", "发布"}),
    ("ＡＢＣ１２３", {"abc123"}),
    ("Größe STRASSE", {"größe", "strasse"} - {"größe"}),
    ("привет мир", {"привет", "мир"}),
    ('{"output": "first\\nsecond"}', {"first", "second"}),
    ('{"path": "C:\\\\temp"}', {"temp"}),
    ("user@example.org", {"user@example.org", "example"}),
]


@pytest.mark.parametrize(("text", "terms"), FOUND, ids=[text[:12] for text, _ in FOUND])
def test_terms(text: str, terms: set[str]) -> None:
    assert terms <= set(term_counts(text))


@pytest.mark.parametrize("text", ["", " \n", "***", "→ 🚀 ::", "\x00", "\ud800", "50%"])
def test_signs_are_no_terms(text: str) -> None:
    assert set(term_counts(text)) <= {"50"}


def test_counts_add_up() -> None:
    assert term_counts("a.b a.b b") == {"a.b": 2, "a": 2, "b": 3}


def test_encoded_data_is_no_term() -> None:
    assert all(len(term) <= LONGEST_TERM for term in term_counts("QUJD" * 5_000))


def test_of_a_long_text_both_ends_are_found() -> None:
    found = term_counts("alpha " + "x " * LONGEST_TEXT + " omega")
    assert {"alpha", "omega"} <= set(found)


def test_a_query_of_filler_words_keeps_them() -> None:
    assert query_terms("the error of it") == ["error"]
    assert query_terms("OR") == ["or"]
    assert query_terms("字") == ["字"]
    assert query_terms("") == []


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.text(max_size=200))
def test_any_text_gives_terms_that_can_be_looked_up(text: str) -> None:
    for term in [*term_counts(text), *query_terms(text)]:
        assert term == "".join(term.split())
        assert '"' not in term
        term.encode("utf-8")
    assert terms_in(text) == set(term_counts(text))


def test_names() -> None:
    text = "see src/a/b.py and https://x.org/y?z=1, getUser(), order_id 4711, main.rs; but not plain words"
    assert names_in(text) == {"src/a/b.py", "https://x.org/y?z=1,", "getUser", "order_id", "4711", "main.rs"}


READABLE = [
    ("plain\ntext", "plain\ntext"),
    ('{"a": 1}', '{"a": 1}'),
    ('{"output": "x\\ny", "exit_code": 0}', "output:\nx\ny\nexit_code: 0"),
    ('{"a": {"b": ["x\\ny"]}}', "a.b[0]:\nx\ny"),
    ("[broken\\n", "[broken\\n"),
    ([{"type": "text", "text": "one"}, {"type": "image_url"}, {"type": "text", "text": "two"}], "one\ntwo"),
    ([1, 2], "[1, 2]"),
    ({"a": "é"}, '{"a": "é"}'),
    (None, "null"),
]


@pytest.mark.parametrize(("value", "text"), READABLE, ids=lambda value: repr(value)[:20])
def test_readable(value: object, text: str) -> None:
    assert readable(value) == text
