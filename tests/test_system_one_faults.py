"""The remote judge when things fail: statuses, waits, the deadline, a network that misbehaves."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import socket
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import respx
from judge_samples import QUARTER, URL, Naps, a_request, judge_at, ok_response
from pydantic import SecretStr
from system_one_server import KEY, SystemOneServer

from hermes_jev.judge.endpoints import TYPESAFE
from hermes_jev.judge.failures import retry_after
from hermes_jev.judge.round_trips import MAX_RESPONSE_BYTES
from hermes_jev.judge.system_one import SystemOne


@pytest.fixture
def server() -> Iterator[SystemOneServer]:
    with SystemOneServer(lambda question_id, question, state: 0.9 if question_id == "t2_output" else 0.1) as running:
        yield running


# --- every status -------------------------------------------------------------------------------------------------

ECHO = {"detail": [{"loc": ["body", "state"], "msg": "Field required", "type": "missing", "input": "PRIVATE WORDS"}]}
STATUS_TABLE: list[tuple[int, Any, str, int]] = [
    (400, {"detail": {"error_type": "max_tokens_exceeded"}}, "too_large", 1),
    (400, {"detail": {"error_type": "api_usage_error", "message": "Unknown model: x"}}, "bad_request", 1),
    (400, {"detail": "Too many choices. Must have at most 255 choices."}, "bad_request", 1),
    (401, {"detail": {"error_type": "authentication_error", "message": "Cannot authenticate"}}, "auth", 1),
    (403, {"detail": {"error_type": "authentication_error", "message": "Must supply an API key!"}}, "auth", 1),
    (404, {"detail": "Not Found"}, "bad_request", 1),
    (405, {"detail": "Method Not Allowed"}, "bad_request", 1),
    (408, {}, "transient", 3),
    (413, {"error": {"code": 413, "message": "too long"}}, "too_large", 1),
    (422, ECHO, "bad_request", 1),
    (422, {"detail": {"error_type": "max_tokens_exceeded"}}, "too_large", 1),
    (429, {"detail": {"error_type": "rate_limit_error", "message": "slow down"}}, "transient", 3),
    (500, "Internal Server Error", "transient", 3),
    (502, "<html>", "transient", 3),
    (503, None, "transient", 3),
    (504, None, "transient", 3),
    (529, {"detail": {"error_type": "overloaded_error"}}, "transient", 3),
    (301, {}, "bad_request", 1),
    (307, {}, "bad_request", 1),
    (308, {}, "bad_request", 1),
]


@pytest.mark.parametrize(("status", "body", "code", "sent"), STATUS_TABLE)
@respx.mock
async def test_each_status_has_its_code_and_number_of_attempts(status: int, body: Any, code: str, sent: int) -> None:
    route = respx.post(URL).respond(status, json=body, headers={"location": "https://elsewhere.example/v1/systemone"})

    answers = await judge_at().ask([a_request(1)], 30.0)

    assert route.call_count == sent
    assert (answers.by_id, answers.requests, answers.failed, answers.errors) == ({}, sent, 1, (code,))


GOOD = json.dumps({"answers": {"t1_call": QUARTER}}).encode()


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, text="<html>Welcome</html>"),
        httpx.Response(200, text=""),
        httpx.Response(204),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"error": "quota"}),
        httpx.Response(200, json={"answers": {}}),
        httpx.Response(200, json={"answers": {"t9_call": QUARTER}}),
        httpx.Response(200, json={"answers": {"t1_call": {"type": "noul", "noul": 7}}}),
        httpx.Response(200, text='{"answers":{"t1_call":{"type":"noul","noul":NaN}}}'),
        httpx.Response(200, content=b" " * (MAX_RESPONSE_BYTES + 1)),
        httpx.Response(200, content=gzip.compress(GOOD), headers={"content-encoding": "gzip"}),
    ],
)
@respx.mock
async def test_a_success_without_an_answer_is_a_bad_response(response: httpx.Response) -> None:
    route = respx.post(URL).mock(return_value=response)

    answers = await judge_at().ask([a_request(1)], 5.0)

    assert (answers.by_id, answers.failed, answers.errors) == ({}, 1, ("bad_response",))
    assert route.call_count == 1


class Endless(httpx.AsyncByteStream):
    """A body of 100 kB pieces without an end."""

    def __init__(self) -> None:
        self.pieces = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.pieces += 1
            yield b" " * 100_000


async def test_a_body_without_an_end_is_left_at_the_limit() -> None:
    body = Endless()
    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=body))

    answers = await judge_at(transport=transport).ask([a_request(1)], 30.0)

    assert answers.errors == ("bad_response",)
    assert body.pieces == MAX_RESPONSE_BYTES // 100_000 + 1


@respx.mock
async def test_tokens_of_an_unusable_answer_are_paid_for_and_counted() -> None:
    respx.post(URL).respond(json={"answers": {}, "usage": {"input_tokens": 1_000_000}})

    assert (await judge_at().ask([a_request(1)], 5.0)).cost == pytest.approx(0.042)


@respx.mock
async def test_one_bad_answer_leaves_the_others() -> None:
    given = {"t1_call": {"type": "noul", "noul": math.nan}, "t1_output": QUARTER, "t2_call": QUARTER}
    respx.post(URL).respond(text=json.dumps({"answers": {**given, "t77_call": QUARTER}}))

    answers = await judge_at().ask([a_request(1, 2)], 5.0)

    assert answers.by_id.keys() == {"t1_output", "t2_call"}
    assert answers.errors == ()


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("slow"),
        httpx.ReadTimeout("slow"),
        httpx.ReadError("reset"),
        httpx.WriteError("reset"),
        httpx.RemoteProtocolError("half"),
    ],
    ids=lambda error: type(error).__name__,
)
@respx.mock
async def test_network_errors_are_tried_again(error: httpx.TransportError) -> None:
    route = respx.post(URL).mock(side_effect=[error, error, ok_response(a_request(1))])

    answers = await judge_at().ask([a_request(1)], 30.0)

    assert (len(answers.by_id), answers.requests, answers.failed) == (2, 3, 0)
    assert route.call_count == 3


# --- waiting ------------------------------------------------------------------------------------------------------


@respx.mock
async def test_delays_double_and_jitter_shortens_them() -> None:
    respx.post(URL).respond(503)
    plain, shortened = Naps(), Naps()

    await judge_at(sleep=plain).ask([a_request(1)], 30.0)
    await SystemOne(TYPESAFE, SecretStr(KEY), jitter=lambda: 0.8, sleep=shortened).ask([a_request(1)], 30.0)

    assert plain.taken == [0.5, 1.0]
    assert shortened.taken == pytest.approx([0.4, 0.8])


@respx.mock
async def test_the_wait_the_service_asks_for_is_kept() -> None:
    respx.post(URL).mock(
        side_effect=[
            httpx.Response(429, headers={"retry-after": "7"}),
            httpx.Response(529, headers={"retry-after": "7", "retry-after-ms": "1500"}),
            ok_response(a_request(1)),
        ]
    )
    naps = Naps()

    answers = await judge_at(sleep=naps).ask([a_request(1)], 30.0)

    assert naps.taken == [7.0, 1.5]
    assert len(answers.by_id) == 2


@pytest.mark.parametrize("wait", ["31", "86400", "1e300", "Fri, 31 Dec 2999 23:59:59 GMT"])
@respx.mock
async def test_a_wait_past_the_deadline_is_not_begun(wait: str) -> None:
    respx.post(URL).respond(429, headers={"retry-after": wait})
    naps = Naps()

    answers = await judge_at(sleep=naps).ask([a_request(1)], 30.0)

    assert naps.taken == []
    assert (answers.requests, answers.errors) == (1, ("transient",))


@pytest.fixture
def far_from_greenwich() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:09 GMT"}, 9.0),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:09 -0000"}, 9.0),
        ({"retry-after": "Fri, 15 Jan 2027 10:00:09 +0200"}, 9.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:59:59 GMT"}, None),
        ({"retry-after": "Fri, 99 Jan 2027 07:59:59 GMT"}, None),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after-ms": "-250", "retry-after": "3"}, 3.0),
        ({"retry-after-ms": "nan", "retry-after": "3"}, 3.0),
        ({"retry-after-ms": "x", "retry-after": "3"}, 3.0),
    ],
)
@pytest.mark.usefixtures("far_from_greenwich")
def test_the_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(httpx.Headers(headers), NOW) == seconds


# --- the deadline -------------------------------------------------------------------------------------------------


async def test_what_answered_by_the_deadline_is_returned(server: SystemOneServer) -> None:
    server.mode, server.faults = "hang", 2

    answers = await judge_at(server.url).ask([a_request(n) for n in range(5)], 0.5)

    assert len(answers.by_id) == 6
    assert (answers.requests, answers.failed, answers.errors) == (5, 2, ("transient", "transient"))


async def test_no_time_at_all_is_no_answer(server: SystemOneServer) -> None:
    answers = await judge_at(server.url).ask([a_request(1), a_request(2)], 0.0)

    assert (answers.by_id, answers.errors) == ({}, ("transient", "transient"))


async def test_one_slow_attempt_is_given_up_and_tried_again(server: SystemOneServer) -> None:
    server.mode, server.faults = "hang", 1

    answers = await judge_at(server.url, request_timeout_s=0.2).ask([a_request(1)], 5.0)

    assert (len(answers.by_id), answers.requests, answers.failed) == (2, 2, 0)


async def test_a_response_that_drips_does_not_outlast_an_attempt(server: SystemOneServer) -> None:
    server.mode = "drip"

    answers = await judge_at(server.url, request_timeout_s=0.15).ask([a_request(1)], 5.0)

    assert (answers.requests, answers.errors) == (3, ("transient",))


async def test_cancelling_the_pass_ends_its_requests(server: SystemOneServer) -> None:
    server.mode = "hang"
    pass_ = asyncio.create_task(judge_at(server.url).ask([a_request(1), a_request(2)], 30.0))
    while len(server.requests) < 2:
        await asyncio.sleep(0.005)

    pass_.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pass_

    assert asyncio.all_tasks() == {asyncio.current_task()}


# --- a real network -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["reset", "half_body", "http_500", "http_429"])
async def test_a_passing_fault_costs_an_attempt(server: SystemOneServer, mode: str) -> None:
    server.mode, server.faults, server.retry_after = mode, 2, "1"
    naps = Naps()

    answers = await judge_at(server.url, sleep=naps).ask([a_request(1)], 5.0)

    assert (len(answers.by_id), answers.requests, answers.failed) == (2, 3, 0)
    assert naps.taken == ([1.0, 1.0] if mode == "http_429" else [0.5, 1.0])


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("hang", "transient"),
        ("reset", "transient"),
        ("half_body", "transient"),
        ("http_429", "transient"),
        ("http_500", "transient"),
        ("html_200", "bad_response"),
        ("redirect", "bad_request"),
    ],
)
async def test_a_lasting_fault_is_said(server: SystemOneServer, mode: str, code: str) -> None:
    server.mode = mode

    answers = await judge_at(server.url).ask([a_request(1), a_request(2)], 0.4 if mode == "hang" else 5.0)

    assert (answers.by_id, answers.failed, answers.errors) == ({}, 2, (code, code))
    assert all(request.path == "/v1/systemone" for request in server.requests)


async def test_missing_answers_are_missing_and_unknown_ones_ignored(server: SystemOneServer) -> None:
    server.mode, server.omit = "partial", frozenset({"t1_output"})

    answers = await judge_at(server.url).ask([a_request(1, 2)], 5.0)

    assert answers.by_id.keys() == {"t1_call", "t2_call", "t2_output"}
    assert answers.errors == ()


async def test_raw_answers_are_checked_one_by_one(server: SystemOneServer) -> None:
    server.mode = "raw"
    server.raw = {"t1_call": {"type": "noul", "noul": math.nan}, "t1_output": "yes", "t2_call": {"type": "boolean"}}

    answers = await judge_at(server.url).ask([a_request(1, 2)], 5.0)

    assert {name: answer.yes for name, answer in answers.by_id.items()} == {"t2_output": 0.9}


async def test_nobody_listens() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        answers = await judge_at(f"http://127.0.0.1:{closed.getsockname()[1]}").ask([a_request(1)], 5.0)

    assert (answers.requests, answers.errors) == (3, ("transient",))
