"""The wording of the questions, held to the rules it is written by."""

from __future__ import annotations

import re

import pytest

from hermes_jev.judge.protocol import Question
from hermes_jev.questions import CONTEXT, VERSION, question_ids, questions

MOST_CHARS = 300
NEGATIONS = re.compile(r"\b(?:not|no|never|none|nothing|neither|nor|without|cannot|un\w+ed)\b|n't\b", re.I)
ARITHMETIC = re.compile(
    r"\d|%|[<>=+*/]|\b(?:plus|minus|sum|count|number of|more than|less than|at least|at most|percent|average)\b"
    r"|\b(?:days?|hours?|weeks?|dates?|ago)\b",
    re.I,
)
NAME = re.compile(r"`t\d+` of `items`")
ALL = [question for ordinal in (1, 7, 999) for question in questions(ordinal)]


@pytest.mark.parametrize("question", ALL, ids=lambda question: question.id)
def test_a_question_keeps_the_rules_of_wording(question: Question) -> None:
    words = NAME.sub("`items`", question.instructions)

    assert question.kind == "noul"
    assert words.count("?") == 1
    assert words.endswith("?")
    assert not NEGATIONS.search(words)
    assert not ARITHMETIC.search(words)
    assert "goal" in words
    assert len(question.instructions) <= MOST_CHARS


@pytest.mark.parametrize("question", ALL, ids=lambda question: question.id)
def test_both_sides_are_described_and_described_differently(question: Question) -> None:
    assert list(question.criteria) == ["true", "false"]
    yes, no = question.criteria.values()
    for side in (yes, no):
        assert 40 <= len(side) <= MOST_CHARS
        assert not ARITHMETIC.search(side)
        assert side.endswith(".")
    assert yes != no


@pytest.mark.parametrize("ordinal", [1, 7, 999])
def test_a_question_names_its_item_by_id_and_itself_by_ordinal(ordinal: int) -> None:
    call, output = questions(ordinal)

    assert (call.id, output.id) == question_ids(ordinal) == (f"t{ordinal}_call", f"t{ordinal}_output")
    for question in (call, output):
        assert NAME.findall(question.instructions) == [f"`t{ordinal}` of `items`"]


def test_ids_are_ordinals_and_never_content() -> None:
    for question in ALL:
        assert re.fullmatch(r"t[1-9]\d*_(?:call|output)", question.id)
    assert len({question.id for question in ALL}) == len(ALL)


def test_the_two_questions_ask_different_things() -> None:
    call, output = questions(1)

    assert call.instructions != output.instructions
    assert call.criteria != output.criteria
    assert "output" in output.instructions
    assert "output" not in call.instructions


def test_whether_it_could_be_fetched_again_is_not_asked() -> None:
    words = " ".join(text for q in ALL for text in (q.instructions, *q.criteria.values())).lower()

    assert not re.search(r"\bagain\b|re-?(?:run|fetch|read|obtain|create)", words)


def test_the_reader_is_told_that_the_state_is_data() -> None:
    for field in ("items", "timeline", "goal"):
        assert f"`{field}`" in CONTEXT
    assert "data" in CONTEXT
    assert "orders" in CONTEXT


def test_the_wording_has_a_version() -> None:
    assert re.fullmatch(r"q\d+", VERSION)
