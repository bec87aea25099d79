"""The wording of the questions, held by a linter to the rules it is written by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hermes_jev.judge.protocol import Question
from hermes_jev.questions import CHOSEN, CONTEXT, PLAIN, REPEATABLE, VERSION, Wording, question_ids, questions

MOST_CHARS = 300
WORDINGS = [PLAIN, REPEATABLE]
ALL = [question for wording in WORDINGS for ordinal in (1, 7, 999) for question in questions(ordinal, wording)]
NAME = re.compile(r"`t\d+` of `items`")

ASKED: dict[str, re.Pattern[str]] = {
    "a negation": re.compile(
        r"\b(?:not|no|never|none|nothing|neither|nor|without|cannot|unless|un(?:needed|used|likely|able|important))\b"
        r"|n't\b",
        re.I,
    ),
    "two judgements": re.compile(r"\?.*\?|\band (?:is|does|will|can|should|would)\b|\bor (?:is|does|will|can)\b", re.I),
    "something to write": re.compile(
        r"\b(?:explain|describe|summari[sz]e|write|suggest|why|how|which|what is)\b", re.I
    ),
}
ANYWHERE: dict[str, re.Pattern[str]] = {
    "arithmetic": re.compile(
        r"\d|%|[<>=+*/]|\b(?:plus|minus|sum|count|number of|more than|less than|at least|at most|percent|average"
        r"|most of|half|twice|largest|longest|first \w+ of)\b",
        re.I,
    ),
    "a date or a time": re.compile(
        r"\b(?:seconds?|minutes?|hours?|days?|weeks?|dates?|ago|recent(?:ly)?|today|old(?:er)?)\b", re.I
    ),
    "a degree": re.compile(
        r"\b(?:very|highly|somewhat|fairly|extremely|important|importance|relevant|useful|likely|probably)\b", re.I
    ),
    "an order to the reader": re.compile(r"\b(?:please|you|your|answer with|respond|return|output only)\b", re.I),
}


def lint(question: Question) -> Iterator[str]:
    """What the wording of a question breaks: one judgement, high means keep, nothing to reckon, both sides told."""
    asked = NAME.sub("`items`", question.instructions)
    sides = list(question.criteria.values())
    if list(question.criteria) != ["true", "false"]:
        yield "both sides are not told"
    if len(set(sides)) < len(sides) or any(not 40 <= len(side) <= MOST_CHARS for side in sides):
        yield "a side is missing, short, long or like the other"
    if not asked.endswith("?") or len(asked) > MOST_CHARS:
        yield "it is no short question"
    if NAME.findall(question.instructions) != [f"`{question.id.partition('_')[0]}` of `items`"]:
        yield "it does not name its item by id, once"
    if "goal" not in asked:
        yield "it is not about the goal"
    yield from (name for name, form in ASKED.items() if form.search(asked))
    yield from (name for name, form in ANYWHERE.items() if any(form.search(text) for text in (asked, *sides)))


@pytest.mark.parametrize("question", ALL, ids=lambda question: question.id)
def test_a_question_keeps_the_rules_of_wording(question: Question) -> None:
    assert question.kind == "noul"
    assert list(lint(question)) == []


GOOD = questions(7)[1]
BAD = {
    "a negation": "Is the output of call `t7` of `items` not needed for the goal?",
    "two judgements": "Is call `t7` of `items` needed and is its output large, given the goal?",
    "something to write": "Explain why call `t7` of `items` matters for the goal?",
    "arithmetic": "Does call `t7` of `items` have more than 500 lines about the goal?",
    "a date or a time": "Was call `t7` of `items` made recently for the goal?",
    "a degree": "Is call `t7` of `items` very important for the goal?",
    "an order to the reader": "Please say whether call `t7` of `items` serves the goal?",
    "it is no short question": "Call `t7` of `items` serves the goal.",
    "it is not about the goal": "Is the output of call `t7` of `items` needed?",
    "it does not name its item by id, once": "Is the output of the seventh call needed for the goal?",
}


@pytest.mark.parametrize(("complaint", "words"), BAD.items(), ids=BAD)
def test_the_linter_finds_what_it_is_for(complaint: str, words: str) -> None:
    assert complaint in list(lint(replace(GOOD, instructions=words)))


@pytest.mark.parametrize("criteria", [{}, {"true": GOOD.criteria["true"]}, dict.fromkeys(("true", "false"), "x" * 50)])
def test_the_linter_wants_both_sides(criteria: dict[str, str]) -> None:
    assert any("side" in complaint for complaint in lint(replace(GOOD, criteria=criteria)))


@pytest.mark.parametrize("ordinal", [1, 7, 999])
def test_a_question_names_its_item_by_id_and_itself_by_ordinal(ordinal: int) -> None:
    call, output = questions(ordinal)

    assert (call.id, output.id) == question_ids(ordinal) == (f"t{ordinal}_call", f"t{ordinal}_output")


def test_ids_are_ordinals_and_never_content() -> None:
    for question in ALL:
        assert re.fullmatch(r"t[1-9]\d*_(?:call|output)", question.id)


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.version)
def test_the_two_questions_ask_different_things(wording: Wording) -> None:
    call, output = questions(1, wording)

    assert call.instructions != output.instructions
    assert call.criteria != output.criteria
    assert "output" in output.instructions
    assert "output" not in call.instructions


def test_one_wording_has_the_clause_and_the_chosen_one_has_not() -> None:
    def words(wording: Wording) -> str:
        return " ".join(text for q in questions(1, wording) for text in (q.instructions, *q.criteria.values())).lower()

    clause = re.compile(r"\bagain\b|re-?(?:run|fetch|read|obtain|create)")
    assert clause.search(words(REPEATABLE))
    assert not clause.search(words(PLAIN))
    assert CHOSEN is PLAIN
    assert questions(3) == questions(3, PLAIN) != questions(3, REPEATABLE)


def test_the_reader_is_told_that_the_state_is_data() -> None:
    for field in ("items", "timeline", "goal"):
        assert f"`{field}`" in CONTEXT
    assert "data" in CONTEXT
    assert "orders" in CONTEXT


def test_each_wording_has_a_version_of_its_own() -> None:
    assert CHOSEN.version == VERSION
    assert len({wording.version for wording in WORDINGS}) == len(WORDINGS)
