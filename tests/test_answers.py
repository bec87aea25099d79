"""What is believed of an answer, and what follows from it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_jev.judge.answers import choice_confidence, expected_score, likeliest, score_confidence
from hermes_jev.judge.dialects import DIALECTS
from hermes_jev.judge.protocol import Answer, Question

SPEECH = DIALECTS["systemone"]

NOUL = Question("t1_call", "noul", "Does the call still matter?", {"true": "It does.", "false": "It does not."})
CHOICE = Question("fate", "choice", "Which fate?", {"keep": "Needed.", "summarize": "Gist.", "drop": "Chatter."})
SCORE = Question("value", "score", "How much?", {"0": "Nothing.", "1": "Some.", "2": "All."})


def named(option: Any, probability: Any) -> dict[str, Any]:
    return {"value": option, "probability": probability}


def answer_to(question: Question, answer: Any) -> Answer | None:
    body = {"model": "jev-1.13.0", "answers": {question.id: answer}, "usage": {"input_tokens": 300}}
    return SPEECH.decode(body, [question]).answers.get(question.id)


@pytest.mark.parametrize(
    ("answer", "yes"),
    [
        ({"type": "noul", "noul": 0.95}, 0.95),
        ({"type": "noul", "noul": 0}, 0.0),
        ({"type": "noul", "noul": 1}, 1.0),
        ({"type": "predicate", "probability": 0.3}, 0.3),
        ({"type": "boolean", "noul": 0.3}, 0.3),
        ({"type": "noul", "probability": 0.3, "confidence": 0.9, "x_more": {}}, 0.3),
    ],
)
def test_a_noul_is_believed(answer: Any, yes: float) -> None:
    assert answer_to(NOUL, answer) == Answer({"true": yes})


@pytest.mark.parametrize(
    "answer",
    [
        {"type": "noul", "noul": -0.01},
        {"type": "noul", "noul": 1.01},
        {"type": "noul", "noul": math.nan},
        {"type": "noul", "noul": math.inf},
        {"type": "noul", "noul": 10**400},
        {"type": "noul", "noul": True},
        {"type": "noul", "noul": "0.5"},
        {"type": "noul", "noul": None},
        {"type": "noul"},
        {"type": "choice", "noul": 0.5},
        {"type": ["noul"], "noul": 0.5},
        {"noul": 0.5},
        {"type": "refusal"},
        {"type": "unsupported", "noul": 0.5},
        0.5,
        True,
        None,
        [],
    ],
    ids=repr,
)
def test_a_bad_noul_is_no_answer(answer: Any) -> None:
    assert answer_to(NOUL, answer) is None


@pytest.mark.parametrize(
    "answer",
    [
        {"type": "choice", "choice": "keep", "probabilities": {"keep": 0.9, "summarize": 0.1, "drop": 0}},
        {"type": "choice", "choice": "drop", "probabilities": {"drop": 0, "keep": 0.9, "summarize": 0.1}},
        {"type": "choice", "confidence": 3, "probabilities": {"keep": 0.9, "summarize": 0.1, "drop": 0.0}},
        {
            "type": "choice",
            "choice": "keep",
            "probabilities": [
                {"value": "drop", "probability": 0},
                {"value": "keep", "probability": 0.9},
                {"label": "summarize", "probability": 0.1},
            ],
        },
    ],
    ids=["map", "another order and choice", "no choice", "list"],
)
def test_a_choice_is_its_probabilities(answer: Any) -> None:
    checked = answer_to(CHOICE, answer)

    assert checked == Answer({"keep": 0.9, "summarize": 0.1, "drop": 0.0})
    assert list(checked.probabilities) == ["keep", "summarize", "drop"]


@pytest.mark.parametrize(
    "answer",
    [
        {
            "type": "score",
            "score": 1.05,
            "probabilities": {"0": 0.0, "1": 0.95, "2": 0.05},
            "legend": {"0": "Nothing."},
        },
        {"type": "score", "score": 99, "probabilities": {"2": 0.05, "1": 0.95, "0": 0}},
        {"type": "score", "legend": None, "probabilities": [0, 0.95, 0.05]},
        {
            "type": "score",
            "probabilities": [
                {"value": 0, "label": "0", "probability": 0},
                {"value": 2, "label": "2", "probability": 0.05},
                {"value": 1, "label": "1", "probability": 0.95},
            ],
        },
    ],
    ids=["map", "unordered, wrong mean", "bare numbers", "list"],
)
def test_a_score_is_its_probabilities(answer: Any) -> None:
    assert answer_to(SCORE, answer) == Answer({"0": 0.0, "1": 0.95, "2": 0.05})


@pytest.mark.parametrize(
    ("question", "probabilities"),
    [
        (CHOICE, {"keep": 0.9, "drop": 0.1}),
        (CHOICE, {"keep": 0.5, "summarize": 0.2, "drop": 0.2, "other": 0.1}),
        (CHOICE, {"Keep": 0.9, "summarize": 0.1, "drop": 0.0}),
        (CHOICE, {"keep": 0.9, "summarize": 0.16, "drop": 0.0}),
        (CHOICE, {"keep": 0.9, "summarize": 0.04, "drop": 0.0}),
        (CHOICE, {"keep": 0, "summarize": 0, "drop": 0}),
        (CHOICE, {"keep": 1.2, "summarize": -0.2, "drop": 0.0}),
        (CHOICE, {"keep": math.nan, "summarize": 0.5, "drop": 0.5}),
        (CHOICE, {"keep": True, "summarize": 0.0, "drop": 0.0}),
        (CHOICE, {"keep": "1", "summarize": 0, "drop": 0}),
        (CHOICE, [0.9, 0.1, 0.0]),
        (CHOICE, [{"value": "keep", "probability": 0.5}] * 2 + [{"value": "drop", "probability": 0.0}]),
        (CHOICE, [named("keep", 0.9), named("keep", 0.9), named("summarize", 0.1), named("drop", 0)]),
        (CHOICE, [named("keep", None), named("keep", 0.9), named("summarize", 0.1), named("drop", 0)]),
        (CHOICE, [named(True, 0.9), named("summarize", 0.1), named("drop", 0)]),
        (CHOICE, []),
        (CHOICE, None),
        (CHOICE, 1.0),
        (SCORE, {"1": 0.0, "2": 0.95, "3": 0.05}),
        (SCORE, {"0": 0.5, "1": 0.5}),
        (SCORE, {"Nothing.": 0.0, "Some.": 0.95, "All.": 0.05}),
        (SCORE, [0.5, 0.5]),
        (SCORE, [0.25] * 4),
        (SCORE, None),
    ],
    ids=repr,
)
def test_bad_probabilities_are_no_answer(question: Question, probabilities: Any) -> None:
    assert answer_to(question, {"type": question.kind, "probabilities": probabilities}) is None


@pytest.mark.parametrize("choice", ["other", "", 1, ["keep"]])
def test_a_choice_outside_the_options_is_no_answer(choice: Any) -> None:
    probabilities = {"keep": 0.9, "summarize": 0.1, "drop": 0}

    assert answer_to(CHOICE, {"type": "choice", "choice": choice, "probabilities": probabilities}) is None


@pytest.mark.parametrize(
    ("options", "total", "believed"),
    [
        (2, 0.95, True),
        (2, 0.94, False),
        (2, 1.05, True),
        (20, 0.9, True),
        (20, 0.89, False),
        (250, 0.1, True),
        (250, 0, False),
    ],
)
def test_the_sum_may_be_off_by_the_rounding_of_its_terms(options: int, total: float, believed: bool) -> None:
    question = Question("q", "choice", "?", {f"o{i}": "" for i in range(options)})
    probabilities = {f"o{i}": 0.0 for i in range(options)} | {"o0": min(total, 1.0), "o1": max(0.0, total - 1)}

    assert (answer_to(question, {"type": "choice", "probabilities": probabilities}) is not None) is believed


# --- answers without probabilities --------------------------------------------------------------------------------

LEVELS = Question("value", "score", "How much?", {"none": "Nothing of it.", "some": "A part.", "all": "Every word."})


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        (CHOICE, {"choice": "drop"}, Answer(level="drop")),
        (CHOICE, {"choice": "drop", "confidence": 0.9, "probabilities": None}, Answer(level="drop")),
        (CHOICE, {"choice": "drop", "probabilities": {}}, Answer(level="drop")),
        (CHOICE, {"choice": "other"}, None),
        (CHOICE, {"choice": None}, None),
        (CHOICE, {}, None),
        (CHOICE, {"choice": "drop", "probabilities": {"drop": 2}}, None),
        (LEVELS, {"score": 1.4}, Answer(score=1.4)),
        (LEVELS, {"score": 0, "legend": None}, Answer(score=0.0)),
        (LEVELS, {"score": 2, "probabilities": []}, Answer(score=2.0)),
        (LEVELS, {"score": 2.01}, None),
        (LEVELS, {"score": -0.1}, None),
        (LEVELS, {"score": math.nan}, None),
        (LEVELS, {"score": True}, None),
        (LEVELS, {"score": "some"}, Answer(level="some")),
        (LEVELS, {"score": "2"}, Answer(level="all")),
        (LEVELS, {"score": "A part."}, Answer(level="some")),
        (LEVELS, {"level": "all"}, Answer(level="all")),
        (LEVELS, {"level": 1}, Answer(level="some")),
        (LEVELS, {"label": "none"}, Answer(level="none")),
        (LEVELS, {"level": "much"}, None),
        (LEVELS, {"level": 3}, None),
        (LEVELS, {"level": True}, None),
        (LEVELS, {"level": ["all"]}, None),
        (LEVELS, {"score": 1.0, "probabilities": {"0": 0.5, "1": 0.5}}, None),
        (LEVELS, {}, None),
        (NOUL, {"level": "true"}, None),
        (NOUL, {"score": 1.0}, None),
    ],
    ids=repr,
)
def test_an_answer_may_only_name_a_level_or_give_a_score(question: Question, answer: Any, expected: Any) -> None:
    assert answer_to(question, {"type": question.kind, **answer}) == expected


def test_a_level_goes_by_its_place_before_its_name_before_its_description() -> None:
    question = Question("v", "score", "?", {"1": "2", "x": "1", "2": "x"})

    named = {word: answer_to(question, {"type": "score", "level": word}) for word in ("0", "1", "2", "x")}

    assert {word: answer.level if answer else None for word, answer in named.items()} == {
        "0": "1",
        "1": "x",
        "2": "2",
        "x": "x",
    }


def test_the_likeliest_is_computed() -> None:
    said_otherwise = {"type": "choice", "choice": "drop", "probabilities": {"keep": 0.5, "summarize": 0.5, "drop": 0}}
    answer = answer_to(CHOICE, said_otherwise)

    assert answer is not None
    assert likeliest(answer) == "keep"
    assert likeliest(Answer(level="drop")) == "drop"
    assert likeliest(Answer(score=1.5)) is None


def test_confidence_and_mean_follow_the_published_examples() -> None:
    choice = Answer({"billing": 0.88, "technical": 0.12, "sales": 0.0})
    score = Answer({"0": 0.0, "1": 0.95, "2": 0.05})

    assert choice_confidence(choice) == pytest.approx(0.82)
    assert expected_score(score) == pytest.approx(1.05)
    assert score_confidence(score) == pytest.approx(0.925)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10).filter(lambda weights: sum(weights) > 0.01))
def test_mean_and_confidence_stay_in_range(weights: list[float]) -> None:
    answer = Answer({str(level): weight for level, weight in enumerate(weights)})

    assert -1e-9 <= expected_score(answer) <= len(weights) - 1 + 1e-9
    assert 0 <= choice_confidence(answer) <= 1 + 1e-9
    assert 0 <= score_confidence(answer) <= 1


@pytest.mark.parametrize("levels", [1, 2, 3, 5, 10])
def test_a_certain_answer_has_confidence_one_and_a_flat_choice_none(levels: int) -> None:
    certain = Answer({str(level): float(level == 0) for level in range(levels)})
    flat = Answer({str(level): 1 / levels for level in range(levels)})

    assert choice_confidence(certain) == score_confidence(certain) == 1
    assert choice_confidence(flat) == pytest.approx(float(levels == 1))
