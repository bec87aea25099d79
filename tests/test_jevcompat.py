"""Our client against the public conformance kit's mock server and every fault it can be given.

Full, partial or a typed error, and never another answer than the sound server's: so never a wrong cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import session
from judge_samples import CRITERIA, Naps, judge_at
from pydantic import SecretStr

import hermes_jev
from hermes_jev.judge.endpoints import PRESETS, resolve_endpoint
from hermes_jev.judge.protocol import Answers, Question, Request
from hermes_jev.judge.system_one import SystemOne

mock = pytest.importorskip("jevcompat.mock")

NOUL = Question("t1_call", "noul", "Is `t1` needed?", CRITERIA)
PLAIN = Question("plain", "noul", "Is it?", {})
CHOICE = Question("fate", "choice", "Which fate?", {"Keep": "Needed.", "café": "Gist.", "drop": "Chatter."})
SCORE = Question("value", "score", "How much?", {"none": "Nothing.", "some": "A part.", "all": "All of it."})
ASKED = (NOUL, PLAIN, CHOICE, SCORE)
STATE = {"goal": "fix the parser", "items": [{"id": "t1", "text": "a line"}]}

LEAKS = {"id-leaks", "batch-leaks", "order-leaks"}
"""What these change no client can see: the server is sound in form and its numbers depend on the wrong things."""

PARTIAL = {
    "first-question-only": {"t1_call"},
    "noul-range": {"fate", "value"},
    "choice-key-case": {"t1_call", "plain", "value"},
    "choice-sum": {"t1_call", "plain", "value"},
    "score-keys-1-based": {"t1_call", "plain", "fate"},
    "score-sum": {"t1_call", "plain", "fate"},
}
ERRORS = {"wrong-route": "bad_request", "xssi-200": "bad_response"}


@pytest.fixture(scope="module")
def service() -> Iterator[Any]:
    """The server; a test sets `cfg` as it needs."""
    config = mock.MockConfig()
    with mock.Running(config) as running:
        running.cfg = config
        yield running


@pytest.fixture(autouse=True)
def sound_again(service: Any) -> Iterator[None]:
    yield
    service.cfg.faults, service.cfg.key, service.cfg.busy_every = frozenset(), None, 0


async def ask(judge: SystemOne, *questions: Question) -> Answers:
    return await judge.ask([Request(STATE, questions)], 5.0)


@pytest.mark.parametrize("fault", sorted(mock.FAULTS))
async def test_no_fault_makes_another_answer(service: Any, fault: str) -> None:
    judge = judge_at(service.url, key=None)
    clean = await ask(judge, *ASKED)
    service.cfg.faults = frozenset({fault})

    found = await ask(judge, *ASKED)

    assert clean.by_id.keys() == {"t1_call", "plain", "fate", "value"}
    expected = set() if fault in ERRORS else PARTIAL.get(fault, clean.by_id.keys())
    assert found.by_id.keys() == expected
    assert found.errors == ((ERRORS[fault],) if fault in ERRORS else ())
    if fault not in LEAKS:
        assert all(found.by_id[name] == clean.by_id[name] for name in found.by_id)
    assert found.model == ("" if fault in ERRORS else "jevcompat-mock-0.1")


ONE_SIDED = Question("q", "noul", "Is it?", {"true": "It is."})
MANY = Question("many", "choice", "Which?", {f"o{n}": "One of them." for n in range(65)})
SIX = Question("six", "score", "How much?", {str(n): f"Level {n}." for n in range(6)})
ODD_ID = Question("größe", "noul", "Is it?", {})


@pytest.mark.parametrize(
    ("fault", "questions", "code", "answered"),
    [
        ("noul-two-sided", (ONE_SIDED,), "bad_request", set()),
        ("cap-64", (MANY, NOUL), "bad_request", set()),
        ("cap-5-levels", (SIX,), "bad_request", set()),
        ("strict-ids", (ODD_ID,), "bad_request", set()),
        ("validation-400", (Question("q", "choice", "?", {}),), "bad_request", set()),
        ("text-errors", (Question("q", "choice", "?", {}),), "bad_request", set()),
        ("", (ONE_SIDED, MANY, SIX, ODD_ID), "", {"q", "many", "six", "größe"}),
    ],
)
async def test_what_a_server_refuses_is_a_bad_request(
    service: Any, fault: str, questions: Sequence[Question], code: str, answered: set[str]
) -> None:
    service.cfg.faults = frozenset({fault} if fault else ())

    found = await ask(judge_at(service.url, key=None), *questions)

    assert found.errors == ((code,) if code else ())
    assert found.by_id.keys() == answered


@pytest.mark.parametrize(
    ("fault", "questions", "answered", "errors"),
    [
        ("noul-two-sided", (ONE_SIDED, NOUL), {"q", "t1_call"}, ()),
        ("cap-64", (MANY, NOUL), {"t1_call"}, ("bad_request",)),
    ],
)
async def test_a_server_of_ones_own_is_asked_only_what_all_are_known_to_take(
    service: Any, fault: str, questions: Sequence[Question], answered: set[str], errors: tuple[str, ...]
) -> None:
    service.cfg.faults = frozenset({fault})
    endpoint = resolve_endpoint({}, base_url=service.url, preset=PRESETS["custom"])

    found = await ask(SystemOne(endpoint, None, sleep=Naps()), *questions)

    assert found.by_id.keys() == answered
    assert found.errors == errors


@pytest.mark.parametrize(
    ("fault", "key", "given"),
    [
        ("auth-rejects-header", None, "some"),
        ("auth-x-api-key", "right", "right"),
        ("auth-plain", "right", None),
        ("auth-invalid-403-text", "right", "wrong"),
        ("", "right", "wrong"),
        ("", "right", None),
    ],
)
async def test_a_key_that_does_not_open_is_an_auth_error(
    service: Any, fault: str, key: str | None, given: str | None
) -> None:
    service.cfg.faults, service.cfg.key = frozenset({fault} if fault else ()), key

    found = await ask(judge_at(service.url, key=given), *ASKED)

    assert (found.by_id, found.requests, found.errors) == ({}, 1, ("auth",))


@pytest.mark.parametrize(
    ("fault", "model"), [("reject-jev-latest", "jev-latest"), ("error-flat", "other"), ("", "other")]
)
async def test_a_model_that_is_not_served_is_a_bad_request(service: Any, fault: str, model: str) -> None:
    service.cfg.faults = frozenset({fault} if fault else ())
    endpoint = replace(resolve_endpoint({}, base_url=service.url), model=model)

    found = await ask(SystemOne(endpoint, SecretStr("key")), *ASKED)

    assert (found.by_id, found.requests, found.errors) == ({}, 1, ("bad_request",))


async def test_a_busy_server_is_asked_again(service: Any) -> None:
    service.cfg.busy_every = 2
    naps = Naps()
    judge = judge_at(service.url, key=None, sleep=naps)

    found = await judge.ask([Request(STATE, (NOUL,)), Request(STATE, (PLAIN,)), Request(STATE, (SCORE,))], 5.0)

    assert len(found.by_id) == 3
    assert found.errors == ()
    assert found.requests > 3
    assert set(naps.taken) == {0.0}


@pytest.mark.parametrize(
    "fault", ["first-question-only", "noul-range", "boolean-type", "nan", "wrong-route", "xssi-200"]
)
def test_no_fault_makes_a_cut_that_the_sound_server_would_not_make(service: Any, fault: str, tmp_path: Path) -> None:
    judge = judge_at(service.url, key=None)
    messages = session(8)
    clean = hermes_jev.prune(messages, judge=judge, store=tmp_path / "clean")
    service.cfg.faults = frozenset({fault})

    found = hermes_jev.prune(messages, judge=judge, store=tmp_path / "faulty")

    sound = {decision.exchange.ordinal: decision.action for decision in clean.decisions}
    assert set(sound.values()) > {"keep"}
    for decision in found.decisions:
        assert decision.action in ("keep", sound[decision.exchange.ordinal])
    assert hermes_jev.restore(found.messages, store=tmp_path / "faulty") == messages
    if fault in ERRORS:
        assert found.receipt.outcome == "judge_failed"
        assert found.messages is messages
