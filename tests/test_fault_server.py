"""A server on loopback that misbehaves as servers and what stands before them do: on a real socket, with real time."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Iterator

import pytest
from judge_samples import Naps, a_request, judge_at
from system_one_server import KEY, SystemOneServer

from hermes_jev.judge.blocking import ask_blocking
from hermes_jev.judge.endpoints import PRESETS, resolve_endpoint


@pytest.fixture
def server() -> Iterator[SystemOneServer]:
    with SystemOneServer() as running:
        yield running


# --- a first byte that does not come ------------------------------------------------------------------------------


async def test_a_first_byte_that_comes_in_time_is_waited_for(server: SystemOneServer) -> None:
    server.mode, server.first_byte_s = "slow_first_byte", 0.2

    answers = await judge_at(server.url).ask([a_request(1)], 10.0)

    assert (len(answers.by_id), answers.requests, answers.errors) == (2, 1, ())


async def test_one_that_comes_too_late_costs_an_attempt(server: SystemOneServer) -> None:
    server.mode, server.first_byte_s, server.faults = "slow_first_byte", 60.0, 1

    answers = await judge_at(server.url, request_timeout_s=0.3).ask([a_request(1)], 10.0)

    assert (len(answers.by_id), answers.requests, answers.failed) == (2, 2, 0)


async def test_one_that_never_comes_is_given_up_at_the_deadline_and_the_rest_is_there(server: SystemOneServer) -> None:
    server.mode, server.first_byte_s, server.faults = "slow_first_byte", 60.0, 1

    answers = await judge_at(server.url, concurrency=1).ask([a_request(1), a_request(2)], 0.4)

    assert (answers.by_id, answers.errors) == ({}, ("transient", "transient"))
    # The request that was in flight was read, as far as anyone knows.
    assert answers.input_tokens > 270


def test_nobody_waits_longer_than_the_deadline_says(server: SystemOneServer) -> None:
    server.mode = "hang"

    answers = ask_blocking(judge_at(server.url), [a_request(n) for n in range(20)], 0.3)

    assert answers.errors == ("transient",) * 20


# --- broken off ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["reset", "half_body"])
async def test_an_answer_that_breaks_off_is_asked_again_and_never_half_believed(
    server: SystemOneServer, mode: str
) -> None:
    server.mode = mode
    down = await judge_at(server.url).ask([a_request(1)], 10.0)
    server.faults = 1
    up = await judge_at(server.url).ask([a_request(1)], 10.0)

    assert (down.by_id, down.requests, down.errors) == ({}, 3, ("transient",))
    assert (len(up.by_id), up.requests, up.errors) == (2, 2, ())


# --- every form of Retry-After ------------------------------------------------------------------------------------


def in_seconds(seconds: float) -> str:
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


@pytest.mark.parametrize(
    ("after", "after_ms", "naps"),
    [
        (None, None, [0.5, 1.0]),
        ("1", None, [1.0, 1.0]),
        ("1.5", None, [1.5, 1.5]),
        ("0", None, [0.0, 0.0]),
        (None, "250", [0.25, 0.25]),
        ("7", "250", [0.25, 0.25]),
        ("1", "nan", [1.0, 1.0]),
        ("1", "-5", [1.0, 1.0]),
        ("-1", None, [0.5, 1.0]),
        ("nan", None, [0.5, 1.0]),
        ("inf", None, [0.5, 1.0]),
        ("soon", None, [0.5, 1.0]),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None, [0.5, 1.0]),
        ("60", None, []),
        (None, "60000", []),
        ("1e300", None, []),
        ("Fri, 31 Dec 2999 23:59:59 GMT", None, []),
    ],
)
async def test_a_429_is_waited_for_as_it_says(
    server: SystemOneServer, after: str | None, after_ms: str | None, naps: list[float]
) -> None:
    server.mode, server.retry_after, server.retry_after_ms = "http_429", after, after_ms
    taken = Naps()

    answers = await judge_at(server.url, sleep=taken).ask([a_request(1)], 10.0)

    assert taken.taken == naps
    assert (answers.requests, answers.errors) == (len(naps) + 1, ("transient",))
    assert (answers.wait_s > 40) is (not naps)


async def test_a_429_may_name_a_date(server: SystemOneServer) -> None:
    server.mode, server.faults, server.retry_after = "http_429", 1, in_seconds(4)
    naps = Naps()

    answers = await judge_at(server.url, sleep=naps).ask([a_request(1)], 30.0)

    assert len(answers.by_id) == 2
    assert len(naps.taken) == 1
    assert 0 <= naps.taken[0] <= 4

    server.mode, server.faults, server.retry_after = "http_429", None, in_seconds(600)
    late = await judge_at(server.url).ask([a_request(1)], 30.0)
    assert 500 < late.wait_s <= 600


# --- elsewhere ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
async def test_nothing_follows_a_redirect(server: SystemOneServer, status: int) -> None:
    with SystemOneServer(key=None) as other:
        server.mode, server.redirect_status, server.location = "redirect", status, f"{other.url}/v1/systemone"

        answers = await judge_at(server.url).ask([a_request(1), a_request(2)], 10.0)

    assert (answers.by_id, answers.requests, answers.errors) == ({}, 2, ("bad_request", "bad_request"))
    assert answers.details == (f"HTTP {status}",)
    assert other.requests == []


async def test_a_key_goes_in_one_header_and_nowhere_else(server: SystemOneServer) -> None:
    server.key = None
    judge = judge_at(server.url)

    answers = await judge.ask([a_request(1)], 10.0)

    (request,) = server.requests
    assert [name for name, value in request.headers.items() if KEY in value] == ["authorization"]
    assert KEY.encode() not in request.raw
    assert KEY not in request.path + repr(judge) + repr(answers) + judge.service


async def test_the_model_that_answered_is_recorded_and_the_one_asked_for_is_the_pinned_one(
    server: SystemOneServer,
) -> None:
    answers = await judge_at(server.url).ask([a_request(1)], 10.0)

    assert json.loads(server.requests[0].raw)["model"] == "jev-1.13.0" == answers.model
    for row in PRESETS.values():
        env = {"CLOUDFLARE_ACCOUNT_ID": "a1b2c3", "JEV_API_URL": server.url}
        model = resolve_endpoint(env, preset=row).model
        assert model
        assert "latest" not in model
