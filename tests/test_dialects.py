"""The wire format: what is sent, to the letter, and where answers are found in what comes back."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_jev.errors import JudgeBadRequest, JudgeBadResponse
from hermes_jev.judge.dialects import (
    DIALECTS,
    from_bytes,
    to_bytes,
)
from hermes_jev.judge.protocol import Answer, Limits, Question, Request, Subject

SPEECH = DIALECTS["systemone"]

NOUL = Question("t1_call", "noul", "Does the call still matter?", {"true": "It does.", "false": "It does not."})
CHOICE = Question("fate", "choice", "Which fate?", {"keep": "Needed.", "summarize": "Gist.", "drop": "Chatter."})
SCORE = Question("value", "score", "How much?", {"0": "Nothing.", "1": "Some.", "2": "All."})


def test_request_is_the_published_shape_and_nothing_else() -> None:
    subject = Subject(1, "read", "{}", "local text", 10, 3, "ok")
    request = Request({"goal": "g"}, (NOUL, CHOICE, SCORE), goal="local goal", actions=("a",), subjects=(subject,))

    body = SPEECH.encode(request, "jev-1.13.0")

    assert json.loads(to_bytes(body)) == {
        "model": "jev-1.13.0",
        "state": {"goal": "g"},
        "questions": {
            "t1_call": {
                "type": "noul",
                "instructions": "Does the call still matter?",
                "criteria": {"true": "It does.", "false": "It does not."},
            },
            "fate": {
                "type": "choice",
                "instructions": "Which fate?",
                "criteria": {"keep": "Needed.", "summarize": "Gist.", "drop": "Chatter."},
            },
            "value": {"type": "score", "instructions": "How much?", "criteria": ["Nothing.", "Some.", "All."]},
        },
    }


def test_questions_and_options_are_sent_in_their_order() -> None:
    body = SPEECH.encode(Request("s", (SCORE, CHOICE)), "m")

    assert list(body["questions"]) == ["value", "fate"]
    assert list(body["questions"]["fate"]["criteria"]) == ["keep", "summarize", "drop"]


def test_a_noul_without_criteria_has_no_such_field() -> None:
    body = SPEECH.encode(Request("s", (Question("q", "noul", "Is it?", {}),)), "m")

    assert body["questions"]["q"] == {"type": "noul", "instructions": "Is it?"}


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("plain é 漢字 🙂", "plain é 漢字 🙂"),
        ("half \ud83d alone", "half \ufffd alone"),
        ("other half \ude00", "other half \ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("two halves \ud83d\ude00", "two halves 😀"),
        ("\ufeff mark and \udc80", "\ufeff mark and \ufffd"),
        ('nul \x00, line \r\n, quote " and \\', 'nul \x00, line \r\n, quote " and \\'),
    ],
)
def test_text_is_sent_as_utf8(text: str, sent: str) -> None:
    assert json.loads(to_bytes({"state": text, text: 1}).decode("utf-8")) == {"state": sent, sent: 1}


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_sent_and_text_without_half_pairs_unchanged(text: str) -> None:
    sent = json.loads(to_bytes({"state": text}).decode("utf-8"))["state"]

    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert sent == text
    assert not any("\ud800" <= character <= "\udfff" for character in sent)


def test_non_ascii_text_costs_its_utf8_length() -> None:
    assert to_bytes({"s": "漢"}) == '{"s":"漢"}'.encode()


@pytest.mark.parametrize("value", [math.nan, math.inf, {1, 2}, b"bytes"], ids=["nan", "inf", "set", "bytes"])
def test_what_json_cannot_hold_is_a_bad_request(value: Any) -> None:
    with pytest.raises(JudgeBadRequest):
        to_bytes({"state": value})


@pytest.mark.parametrize("raw", [b"", b"<html>", b")]}'\n{}", b"{", b"\xff\xfe\xfd", b"[" * 100_000, b"1" * 5000])
def test_what_is_no_json_is_a_bad_response(raw: bytes) -> None:
    with pytest.raises(JudgeBadResponse):
        from_bytes(raw)


def test_names_are_compared_in_one_unicode_form() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    question = Question(composed, "choice", "?", {composed: "", "no": ""})
    answer = {"type": "choice", "choice": decomposed, "probabilities": {decomposed: 0.75, "no": 0.25}}

    decoded = SPEECH.decode({"answers": {decomposed: answer}}, [question])

    assert decoded.answers == {composed: Answer({composed: 0.75, "no": 0.25})}


TWO = [Question("a", "noul", "?", {}), Question("b", "noul", "?", {})]
A, B = {"type": "noul", "noul": 0.25}, {"type": "noul", "noul": 0.75}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"a": A, "b": B}, {"a": 0.25, "b": 0.75}),
        ({"b": B, "a": A}, {"a": 0.25, "b": 0.75}),
        ({"b": B}, {"b": 0.75}),
        ({"a": A, "b": {"type": "noul", "noul": 7}}, {"a": 0.25}),
        ({"a": A, "c": B}, {"a": 0.25}),
        ({}, {}),
        ([{**B, "name": "b"}, {**A, "name": "a"}], {"a": 0.25, "b": 0.75}),
        ([{**B, "name": "b"}], {"b": 0.75}),
        ([A, B], {"a": 0.25, "b": 0.75}),
        ([{**A, "name": None}, {**B, "name": "b"}], {"a": 0.25, "b": 0.75}),
        ([B], {}),
        ([A, B, B], {}),
        ([{**A, "name": "a"}, {**B, "name": "a"}], {}),
        ([{**B, "name": 7}, B], {"b": 0.75}),
        ([], {}),
    ],
    ids=repr,
)
def test_answers_are_found_by_name_or_place(answers: Any, expected: dict[str, float]) -> None:
    for body in ({"answers": answers}, {"result": {"answers": answers}, "success": True, "errors": []}):
        assert {name: answer.yes for name, answer in SPEECH.decode(body, TWO).answers.items()} == expected


@pytest.mark.parametrize(
    "body",
    [None, [], "text", 5, {}, {"answers": None}, {"answers": "text"}, {"result": None}, {"result": []}, {"error": "x"}],
    ids=repr,
)
def test_a_body_without_answers_is_a_bad_response(body: Any) -> None:
    with pytest.raises(JudgeBadResponse):
        SPEECH.decode(body, TWO)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 318, "output_tokens": 34}, 318),
        ({"input_tokens": 318.0}, 318),
        ({"inputTokens": 318}, 318),
        ({"input_tokens": None}, 0),
        ({"input_tokens": "318"}, 0),
        ({"input_tokens": -5}, 0),
        ({"input_tokens": True}, 0),
        ({"input_tokens": math.nan}, 0),
        ({"input_tokens": math.inf}, 0),
        ({"input_tokens": 10**400}, 0),
        ({}, 0),
        (None, 0),
        ([1], 0),
    ],
)
def test_usage_is_read_where_it_makes_sense(usage: Any, tokens: int) -> None:
    assert SPEECH.decode({"answers": {"a": A}, "usage": usage}, TWO).input_tokens == tokens


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("jev-1.13.0", "jev-1.13.0"),
        ("typesafe/jev-1.13-20260917", "typesafe/jev-1.13-20260917"),
        ("~typesafe/jev-latest", "~typesafe/jev-latest"),
        ("a sentence in its place", ""),
        ("x" * 101, ""),
        (None, ""),
        (13, ""),
    ],
)
def test_the_models_id_is_kept_if_it_is_one(model: Any, kept: str) -> None:
    assert SPEECH.decode({"answers": {"a": A}, "model": model}, TWO).model == kept


# --- one-sided criteria, and the other dialects -------------------------------------------------------------------

ONE_SIDED = Question("q", "noul", "Is it?", {"true": "It is."})


def test_a_noul_with_one_side_has_it_in_its_instructions_where_both_are_needed() -> None:
    strict = Limits(both_noul_sides=True)

    plain = SPEECH.encode(Request("s", (ONE_SIDED, NOUL)), "m", Limits())["questions"]
    folded = SPEECH.encode(Request("s", (ONE_SIDED, NOUL)), "m", strict)["questions"]

    assert plain["q"] == {"type": "noul", "instructions": "Is it?", "criteria": {"true": "It is."}}
    assert folded["q"] == {"type": "noul", "instructions": "Is it?\nTrue means: It is."}
    assert plain["t1_call"] == folded["t1_call"]


OPENAI, ENVELOPE = DIALECTS["openai"], DIALECTS["cloudflare"]


def test_openai_is_asked_in_lists() -> None:
    choice = Question("fate", "choice", "Which?", {"keep": "Needed.", "drop": ""})

    body = OPENAI.encode(Request({"goal": "größer", "half": "\ud83d"}, (NOUL, choice, SCORE)), "gpt-6-luna", Limits())

    sent = json.loads(to_bytes(body))
    assert json.loads(sent.pop("input")) == {"goal": "größer", "half": "\ufffd"}
    assert sent == {
        "model": "gpt-6-luna",
        "questions": [
            {
                "type": "predicate",
                "name": "t1_call",
                "instructions": "Does the call still matter?\nTrue means: It does.\nFalse means: It does not.",
            },
            {
                "type": "choice",
                "name": "fate",
                "instructions": "Which?",
                "choices": [{"value": "keep", "description": "Needed."}, {"value": "drop"}],
            },
            {
                "type": "score",
                "name": "value",
                "instructions": "How much?",
                "levels": [
                    {"label": "0", "description": "Nothing."},
                    {"label": "1", "description": "Some."},
                    {"label": "2", "description": "All."},
                ],
            },
        ],
    }


def test_openai_takes_a_text_as_it_is_and_refuses_what_json_cannot_hold() -> None:
    assert OPENAI.encode(Request("plain", (NOUL,)), "m", Limits())["input"] == "plain"
    with pytest.raises(JudgeBadRequest):
        OPENAI.encode(Request({"n": math.nan}, (NOUL,)), "m", Limits())


def test_openais_published_answer_is_read() -> None:
    body = {
        "model": "gpt-6-luna",
        "answers": [
            {"type": "predicate", "name": "t1_call", "probability": 0.93},
            {
                "type": "choice",
                "name": "fate",
                "choice": "keep",
                "confidence": 0.9,
                "probabilities": [
                    {"value": "keep", "probability": 0.95},
                    {"value": "summarize", "probability": 0.05},
                    {"value": "drop", "probability": 0},
                ],
            },
            {
                "type": "score",
                "name": "value",
                "score": 1.7,
                "confidence": 0.8,
                "probabilities": [
                    {"value": 0, "label": "0", "probability": 0.05},
                    {"value": 1, "label": "1", "probability": 0.2},
                    {"value": 2, "label": "2", "probability": 0.75},
                ],
            },
        ],
        "usage": {"input_tokens": 210, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 0},
    }

    decoded = OPENAI.decode(body, [NOUL, CHOICE, SCORE])

    assert decoded.answers == {
        "t1_call": Answer({"true": 0.93}),
        "fate": Answer({"keep": 0.95, "summarize": 0.05, "drop": 0.0}),
        "value": Answer({"0": 0.05, "1": 0.2, "2": 0.75}),
    }
    assert (decoded.model, decoded.input_tokens, decoded.cost) == ("gpt-6-luna", 210, None)


@pytest.mark.parametrize("name", ["t1_call", None])
def test_a_refusal_takes_no_other_answer_with_it(name: str | None) -> None:
    other = {"type": "choice", "name": "fate" if name else None, "choice": "keep"}

    decoded = OPENAI.decode({"answers": [{"type": "refusal", "name": name}, other]}, [NOUL, CHOICE])

    assert decoded.answers == {"fate": Answer(level="keep")}


def test_openrouters_published_answer_is_read() -> None:
    body = {
        "answers": {
            "t1_call": {"noul": 0.96, "type": "noul"},
            "fate": {
                "choice": "keep",
                "confidence": 0.75,
                "probabilities": {"drop": 0, "summarize": 0.16, "keep": 0.84},
                "type": "choice",
            },
            "value": {
                "confidence": 0.99,
                "legend": {"0": "Nothing.", "1": "Some.", "2": "All."},
                "probabilities": {"0": 0, "1": 0.01, "2": 0.99},
                "score": 1.99,
                "type": "score",
            },
        },
        "id": "gen-dec-1789738314-X5e5eKGQdvR9rblyX250",
        "model": "typesafe/jev-1.13-20260917",
        "provider": "TypeSafe",
        "usage": {"cost": 0.000019992, "input_tokens": 476, "output_tokens": 70},
    }

    decoded = SPEECH.decode(body, [NOUL, CHOICE, SCORE])

    assert {name: list(answer.probabilities.values()) for name, answer in decoded.answers.items()} == {
        "t1_call": [0.96],
        "fate": [0.84, 0.16, 0.0],
        "value": [0.0, 0.01, 0.99],
    }
    assert decoded[1:] == ("typesafe/jev-1.13-20260917", 476, 0.000019992)


def test_cloudflares_published_answer_is_read() -> None:
    result = {"model": "clef-flash", "answers": {"t1_call": {"type": "noul", "noul": 0.7012}}}
    body = {
        "result": {**result, "usage": {"input_tokens": 120, "output_tokens": 0}},
        "success": True,
        "errors": [],
        "messages": [],
    }

    decoded = ENVELOPE.decode(body, [NOUL])

    assert decoded == ({"t1_call": Answer({"true": 0.7012})}, "clef-flash", 120, None)
    assert ENVELOPE.encode(Request("s", (NOUL,)), "m", Limits()) == SPEECH.encode(Request("s", (NOUL,)), "m", Limits())


@pytest.mark.parametrize(
    "body", [{"success": False, "errors": []}, {"success": False, "result": {"answers": {"t1_call": {}}}}, [], None]
)
def test_an_envelope_that_is_no_success_is_a_bad_response(body: Any) -> None:
    with pytest.raises(JudgeBadResponse):
        ENVELOPE.decode(body, [NOUL])


@pytest.mark.parametrize(
    ("more", "cost"),
    [
        ({"usage": {"cost": 0.5}}, 0.5),
        ({"usage": {"cost": "0.5"}}, 0.5),
        ({"usage": {"cost": 0}}, 0.0),
        ({"provider_metadata": {"gateway": {"cost": "0.000042"}}}, 0.000042),
        ({"usage": {"cost": None}, "provider_metadata": {"gateway": {"cost": 0.25}}}, 0.25),
        ({"usage": {"cost": True}}, None),
        ({"usage": {"cost": "much"}}, None),
        ({"usage": {"cost": -1}}, None),
        ({"usage": {"cost": math.nan}}, None),
        ({"usage": {"cost": "inf"}}, None),
        ({"usage": {"cost": 10**400}}, None),
        ({"usage": {"cost": 10**6}}, None),
        ({"usage": [], "provider_metadata": []}, None),
        ({}, None),
    ],
    ids=repr,
)
def test_a_price_is_read_where_it_makes_sense(more: dict[str, Any], cost: float | None) -> None:
    assert SPEECH.decode({"answers": {"a": A}, **more}, TWO).cost == cost


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "answers",
                    "result",
                    "a",
                    "fate",
                    "value",
                    "type",
                    "name",
                    "noul",
                    "probability",
                    "probabilities",
                    "choice",
                    "keep",
                    "0",
                    "usage",
                    "input_tokens",
                    "model",
                ]
            ),
            inner | st.sampled_from(["noul", "choice", "score", 0.5]),
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(JSON_VALUES)
def test_whatever_comes_back_is_refused_or_sound(body: Any) -> None:
    questions = [Question("a", "noul", "?", {}), CHOICE, SCORE]
    with contextlib.suppress(JudgeBadResponse):
        assert ENVELOPE.decode(body, questions) == SPEECH.decode(body, questions)
    try:
        decoded = SPEECH.decode(body, questions)
    except JudgeBadResponse:
        return
    for question in questions:
        found = decoded.answers.get(question.id)
        if found is not None and not found.probabilities:
            assert (found.level is None) is not (found.score is None)
            assert found.level is None or found.level in question.criteria
            assert found.score is None or 0 <= found.score <= len(question.criteria) - 1
        elif found is not None:
            assert list(found.probabilities) == (["true"] if question.kind == "noul" else list(question.criteria))
            assert all(0 <= probability <= 1 for probability in found.probabilities.values())
    assert decoded.answers.keys() <= {question.id for question in questions}
    assert decoded.input_tokens >= 0
