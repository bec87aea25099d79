"""The remote judge: what it sends, what it makes of the key, of long requests, and of itself."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import math
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
import respx
from judge_samples import CRITERIA, QUARTER, a_request, judge_at, questions
from pydantic import SecretStr
from system_one_server import KEY, MODES, SystemOneServer

from hermes_jev.errors import ConfigError
from hermes_jev.judge.endpoints import TYPESAFE, resolve_endpoint
from hermes_jev.judge.protocol import Answers, Question, Request
from hermes_jev.judge.splitting import TRIMMED_HEAD, TRIMMED_TAIL, split, split_to_fit, trim
from hermes_jev.judge.system_one import SystemOne


@pytest.fixture
def server() -> Iterator[SystemOneServer]:
    with SystemOneServer(lambda question_id, question, state: 0.9 if question_id == "t2_output" else 0.1) as running:
        yield running


# --- what is sent -------------------------------------------------------------------------------------------------


async def test_all_questions_are_answered_and_counted(server: SystemOneServer) -> None:
    answers = await judge_at(server.url).ask([a_request(1, 2), a_request(3)], 5.0)

    assert {name: answer.yes for name, answer in answers.by_id.items()} == {
        **{f"t{n}_{part}": 0.1 for n in (1, 2, 3) for part in ("call", "output")},
        "t2_output": 0.9,
    }
    assert (answers.judge, answers.model, answers.requests, answers.failed, answers.errors) == (
        "jev",
        "jev-1.13.0",
        2,
        0,
        (),
    )
    tokens = sum(270 + math.ceil(len(request.raw) / 4) for request in server.requests)
    assert answers.input_tokens == tokens
    assert answers.cost == pytest.approx(tokens * 0.042e-6)


async def test_the_request_on_the_wire(server: SystemOneServer) -> None:
    await judge_at(server.url).ask([a_request(1, text="half \ud83d, 漢字")], 5.0)

    (request,) = server.requests
    assert request.path == "/v1/systemone"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept-encoding"] == "identity"
    assert "content-encoding" not in request.headers
    assert request.body.keys() == {"model", "state", "questions"}
    assert request.body["state"]["items"] == [{"id": "t1", "text": "half \ufffd, 漢字"}]
    assert "漢字".encode() in request.raw


async def test_a_service_without_a_key_gets_none() -> None:
    with SystemOneServer(key=None) as server:
        answers = await judge_at(server.url, key=None).ask([a_request(1)], 5.0)

    assert len(answers.by_id) == 2
    assert "authorization" not in server.requests[0].headers


async def test_proxies_and_certificates_of_the_environment_are_not_used(
    server: SystemOneServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent")

    assert len((await judge_at(server.url).ask([a_request(1)], 5.0)).by_id) == 2


async def test_no_more_than_the_allowed_number_at_once(server: SystemOneServer) -> None:
    server.delay_s = 0.05

    answers = await judge_at(server.url, concurrency=3).ask([a_request(n) for n in range(9)], 5.0)

    assert len(answers.by_id) == 18
    assert server.max_concurrent == 3


async def test_a_request_over_the_number_of_questions_is_cut_beforehand() -> None:
    with SystemOneServer() as server:
        answers = await judge_at(server.url).ask([a_request(*range(70))], 5.0)

    assert len(answers.by_id) == 140
    assert all(len(request.body["questions"]) <= 64 for request in server.requests)


async def test_nothing_asked_is_nothing_sent() -> None:
    judge = judge_at("http://127.0.0.1:9")

    assert await judge.ask([], 5.0) == Answers(judge="jev")
    assert await judge.ask([Request("state", ())], 5.0) == Answers(judge="jev")


async def test_a_state_that_is_no_json_fails_alone(server: SystemOneServer) -> None:
    bad = Request({"n": math.nan}, questions(1))

    answers = await judge_at(server.url).ask([bad, a_request(2)], 5.0)

    assert answers.by_id.keys() == {"t2_call", "t2_output"}
    assert (answers.requests, answers.failed, answers.errors) == (1, 1, ("bad_request",))


# --- the key ------------------------------------------------------------------------------------------------------


async def test_a_refused_key_ends_the_pass(server: SystemOneServer) -> None:
    judge = judge_at(server.url, key="apikey_wrong", concurrency=1)

    answers = await judge.ask([a_request(n) for n in range(5)], 5.0)

    assert (answers.requests, answers.failed, answers.errors) == (1, 5, ("auth",) * 5)
    assert len(server.requests) == 1


async def test_a_missing_key_is_a_refused_key(server: SystemOneServer) -> None:
    assert (await judge_at(server.url, key=None).ask([a_request(1)], 5.0)).errors == ("auth",)


async def test_the_next_pass_asks_again(server: SystemOneServer) -> None:
    judge = judge_at(server.url)
    server.key = "apikey_other"
    refused = await judge.ask([a_request(1)], 5.0)
    server.key = KEY

    assert refused.errors == ("auth",)
    assert len((await judge.ask([a_request(1)], 5.0)).by_id) == 2


def test_a_key_that_cannot_stand_in_a_header_never_gets_there() -> None:
    with pytest.raises(ConfigError) as caught:
        judge_at(key="apikey_1\nX: y")

    assert "apikey_1" not in str(caught.value)


# --- too long -----------------------------------------------------------------------------------------------------


async def test_a_request_that_is_too_long_is_halved_until_it_fits(server: SystemOneServer) -> None:
    server.mode, server.limit_bytes = "too_large", 2500

    answers = await judge_at(server.url).ask([a_request(*range(8), text="x" * 500)], 5.0)

    assert len(answers.by_id) == 16
    assert (answers.requests, answers.failed) == (7, 0)
    for request in server.requests:
        asked = {name.partition("_")[0] for name in request.body["questions"]}
        assert {item["id"] for item in request.body["state"]["items"]} == asked
        assert request.body["state"]["goal"] == "fix the parser"


def one_long_item(characters: int) -> Request:
    items = [{"id": f"t{n}", "text": "<" + "x" * (characters if n == 2 else 10) + ">"} for n in range(4)]
    return Request({"context": "How to read this. " * 30, "items": items}, questions(0, 1, 2, 3))


async def test_a_single_item_that_is_too_long_is_asked_about_by_head_and_tail(server: SystemOneServer) -> None:
    server.mode, server.limit_bytes = "too_large", 2000

    answers = await judge_at(server.url).ask([one_long_item(5000)], 5.0)

    assert len(answers.by_id) == 8
    assert answers.trimmed == {"t2_call", "t2_output"}
    assert (answers.failed, answers.errors) == (0, ())
    last = next(
        r for r in server.requests if list(r.body["questions"]) == ["t2_call", "t2_output"] and len(r.raw) < 2000
    )
    assert last.body["state"]["context"] == "How to read this. " * 30
    shown = last.body["state"]["items"][0]["text"]
    assert (shown[0], shown[-1], len(shown)) == ("<", ">", TRIMMED_HEAD + TRIMMED_TAIL + len(" … (cut) … "))


async def test_an_item_that_is_still_too_long_gets_no_answer_and_the_others_do() -> None:
    stubborn = httpx.MockTransport(refuse_second)

    answers = await judge_at(transport=stubborn).ask([one_long_item(5000)], 5.0)

    assert answers.by_id.keys() == {f"t{n}_{part}" for n in (0, 1, 3) for part in ("call", "output")}
    assert (answers.failed, answers.errors, answers.trimmed) == (1, ("too_large",), frozenset())


def refuse_second(request: httpx.Request) -> httpx.Response:
    """Too long whenever t2 is asked about."""
    asked = json.loads(request.content)["questions"]
    if "t2_call" in asked:
        return httpx.Response(400, json={"detail": {"error_type": "max_tokens_exceeded"}})
    return httpx.Response(200, json={"model": "jev-1.13.0", "answers": dict.fromkeys(asked, QUARTER)})


@pytest.mark.parametrize(("concurrency", "most"), [(1, 12), (8, 64)])
async def test_a_service_that_finds_everything_too_long_is_soon_left_alone(concurrency: int, most: int) -> None:
    refused = httpx.Response(413, json={"detail": "too large"})
    judge = judge_at(transport=httpx.MockTransport(lambda request: refused), concurrency=concurrency)

    answers = await judge.ask([a_request(*range(32), text="x" * 900) for _ in range(8)], 30.0)

    assert set(answers.errors) == {"too_large"}
    assert answers.by_id == {}
    # Down to three trimmed items, and not through all 760 requests of eight trees.
    assert answers.requests <= most


def test_pairs_stay_together_and_items_follow_their_questions() -> None:
    note = {"id": "note", "text": "about all"}
    asked = (*questions(1), Question("t2_output", "noul", "?", {}), *questions(3))
    state = {"goal": "g", "items": [{"id": "t1"}, {"id": "t2"}, {"id": "t3"}, {"id": "t4"}, note, "loose"]}

    parts = split(Request(state, asked, goal="local"))

    assert parts is not None
    assert [[question.id for question in part.questions] for part in parts] == [
        ["t1_call", "t1_output"],
        ["t2_output", "t3_call", "t3_output"],
    ]
    assert parts[0].state == {"goal": "g", "items": [{"id": "t1"}, note, "loose"]}
    assert parts[1].state == {"goal": "g", "items": [{"id": "t2"}, {"id": "t3"}, note, "loose"]}
    assert parts[0].goal == "local"


def test_a_list_of_turns_is_parted_like_one_of_items() -> None:
    asked = tuple(Question(f"T{n}", "choice", "Which?", CRITERIA) for n in (3, 4))
    state = {"context": "how", "turns": [{"id": "T3", "text": "a"}, {"id": "T4", "text": "b"}], "lines": ["x", "y"]}

    parts = split(Request(state, asked))

    assert parts is not None
    assert [part.state["turns"] for part in parts if isinstance(part.state, dict)] == [
        [{"id": "T3", "text": "a"}],
        [{"id": "T4", "text": "b"}],
    ]
    assert all(part.state["lines"] == ["x", "y"] for part in parts if isinstance(part.state, dict))


@pytest.mark.parametrize("state", ["text", {"items": "text"}, {"goal": "g"}])
def test_a_state_of_another_form_goes_whole_to_both_halves(state: Any) -> None:
    asked = (Question("is_urgent", "noul", "?", {}), Question("is_spam", "noul", "?", {}))

    parts = split(Request(state, asked))

    assert parts == (Request(state, asked[:1]), Request(state, asked[1:]))


@pytest.mark.parametrize(
    ("state", "trimmed"),
    [
        ("a" * 5000, "a" * 200 + " … (cut) … " + "a" * 100),
        ({"n": 5, "ok": None}, None),
        ("short", None),
        ({"timeline": [f"line {n}" for n in range(9)]}, {"timeline": [f"line {n}" for n in range(3, 9)]}),
        ({"items": [{"id": "t1", "n": 1, "deep": {"x": ["b" * 999]}}]}, ...),
    ],
    ids=["text", "numbers", "short", "lines", "deep"],
)
def test_long_texts_of_a_state_are_cut_and_nothing_else(state: Any, trimmed: Any) -> None:
    if trimmed is ...:
        trimmed = {"items": [{"id": "t1", "n": 1, "deep": {"x": ["b" * 200 + " … (cut) … " + "b" * 100]}}]}

    found = trim(Request(state, questions(1), goal="local"))

    assert (found is None) is (trimmed is None)
    if found is not None:
        assert (found.state, found.questions, found.goal) == (trimmed, questions(1), "local")
        assert trim(found) is None


def test_one_subject_cannot_be_halved() -> None:
    assert split(a_request(1)) is None
    assert list(split_to_fit(a_request(1), 1)) == [a_request(1)]


# --- the object ---------------------------------------------------------------------------------------------------


def test_the_judge_is_plain_data(server: SystemOneServer) -> None:
    original = SystemOne(resolve_endpoint({}, base_url=server.url), SecretStr(KEY))

    for judge in (copy.deepcopy(original), pickle.loads(pickle.dumps(original)), original, original):
        answers = asyncio.run(judge.ask([a_request(1)], 5.0))
        assert (judge.name, judge.version, len(answers.by_id)) == ("jev", "jev-1.13.0", 2)


def test_an_unknown_dialect_is_a_setting_that_cannot_be_used() -> None:
    endpoint = replace(TYPESAFE, dialect="esperanto")

    with pytest.raises(ConfigError, match="esperanto"):
        SystemOne(endpoint, None)


async def test_neither_key_nor_request_shows_anywhere(
    server: SystemOneServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    judge = judge_at(server.url)
    seen: list[str] = [repr(judge), str(judge), repr(vars(judge)), repr(judge.endpoint)]
    for mode in MODES:
        server.mode, server.limit_bytes = mode, 10
        answers = await judge.ask([a_request(1, text="PRIVATE WORDS")], 0.3)
        seen += [repr(answers.errors), answers.model]
    server.mode, server.key = "ok", "apikey_other"
    seen.append(repr(await judge.ask([a_request(1, text="PRIVATE WORDS")], 5.0)))
    with respx.mock:
        respx.post(judge.endpoint.url).respond(422, json={"detail": [{"input": "PRIVATE WORDS", "msg": KEY}]})
        seen.append(repr(await judge.ask([a_request(1)], 5.0)))
        respx.post(judge.endpoint.url).respond(400, json={"detail": {"error_type": KEY, "message": "PRIVATE WORDS"}})
        seen.append(repr(await judge.ask([a_request(1)], 5.0)))
        respx.post(judge.endpoint.url).mock(side_effect=httpx.ConnectError(f"PRIVATE WORDS {KEY}"))
        seen.append(repr(await judge.ask([a_request(1)], 5.0)))
        odd = {"model": "PRIVATE WORDS", "answers": {"t1_call": QUARTER}}
        respx.post(judge.endpoint.url).respond(200, json=odd)
        seen.append(repr(await judge.ask([a_request(1)], 5.0)))
    out, err = capfd.readouterr()
    everything = "\n".join([*seen, caplog.text, *(repr(vars(record)) for record in caplog.records), out, err])

    assert "HTTP 401 authentication_error" in caplog.text
    assert "HTTP 422" in caplog.text
    assert "PRIVATE WORDS" not in everything
    assert KEY not in everything
    assert "apikey_" not in everything
