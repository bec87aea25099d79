"""The seam between plain functions and asynchronous judges: it waits for the deadline and for nothing else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from judge_samples import a_request, judge_at
from system_one_server import SystemOneServer

from hermes_jev.errors import JudgeAuth, JudgeBadResponse, JudgeError, JudgeTooLarge, JudgeTransient
from hermes_jev.judge.blocking import ask_blocking
from hermes_jev.judge.protocol import Answer, Answers, Request

REQUESTS = [a_request(1), a_request(2)]
GIVEN_UP = Answers(judge="scripted", failed=2, errors=("transient",))


class Scripted:
    """A judge that does what it is told."""

    name = "scripted"
    version = "scripted-1"
    local = True

    def __init__(self, act: Callable[[], Awaitable[Any]]) -> None:
        self.act = act

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        return await self.act()  # type: ignore[no-any-return]


def raising(error: BaseException) -> Scripted:
    async def act() -> Answers:
        raise error

    return Scripted(act)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Lets go, after the test, of whatever blocked in it, and waits until it is gone."""
    before = set(threading.enumerate())
    event = threading.Event()
    yield event
    event.set()
    # A thread that is just being started is listed already and cannot be joined yet, so look again instead.
    for _ in range(1_000):
        if not set(threading.enumerate()) - before:
            break
        time.sleep(0.01)
    assert not set(threading.enumerate()) - before


def test_answers_come_back_as_they_are() -> None:
    expected = Answers(by_id={"t1_call": Answer({"true": 0.5})}, judge="scripted", requests=1, cost=0.5)

    async def act() -> Answers:
        await asyncio.sleep(0)
        return expected

    assert ask_blocking(Scripted(act), REQUESTS, 5.0) == expected


def test_the_judge_gets_the_requests_and_the_deadline() -> None:
    seen: list[Any] = []

    class Curious(Scripted):
        async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
            seen.extend([requests, deadline_s])
            return Answers()

    ask_blocking(Curious(asyncio.Event().wait), REQUESTS, 1.5)

    assert seen == [REQUESTS, 1.5]


async def test_it_works_inside_a_running_loop() -> None:
    expected = Answers(judge="scripted")

    async def act() -> Answers:
        return expected

    assert ask_blocking(Scripted(act), REQUESTS, 5.0) == expected
    assert asyncio.get_running_loop().is_running()


def test_it_works_from_many_threads_at_once() -> None:
    with SystemOneServer() as server:
        judge = judge_at(server.url)
        found: list[Answers] = []
        threads = [threading.Thread(target=lambda: found.append(ask_blocking(judge, REQUESTS, 10.0))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert [len(answers.by_id) for answers in found] == [4] * 6


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (JudgeAuth("no"), "auth"),
        (JudgeTooLarge("no"), "too_large"),
        (JudgeTransient("no"), "transient"),
        (JudgeBadResponse("no"), "bad_response"),
        (JudgeError("no"), "judge"),
        (ValueError("PRIVATE WORDS"), "judge"),
        (RecursionError("PRIVATE WORDS"), "judge"),
        (TimeoutError("PRIVATE WORDS"), "transient"),
        (asyncio.CancelledError(), "judge"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else value,
)
def test_a_judge_that_raises_costs_its_answers_only(
    error: BaseException, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert ask_blocking(raising(error), REQUESTS, 5.0) == Answers(judge="scripted", failed=2, errors=(code,))
    assert "the judge scripted failed" in caplog.text
    assert "PRIVATE WORDS" not in caplog.text


@pytest.mark.parametrize("returned", [None, {}, "text"], ids=repr)
def test_a_judge_that_returns_something_else_is_a_failed_judge(returned: Any) -> None:
    async def act() -> Any:
        return returned

    assert ask_blocking(Scripted(act), REQUESTS, 5.0) == Answers(judge="scripted", failed=2, errors=("judge",))


def test_a_judge_that_blocks_its_thread_is_left_behind(release: threading.Event) -> None:
    async def act() -> Answers:
        release.wait(30)
        return Answers()

    assert ask_blocking(Scripted(act), REQUESTS, 0.05) == GIVEN_UP


def test_a_judge_that_overruns_its_deadline_is_stopped() -> None:
    stopped = threading.Event()

    async def act() -> Answers:
        try:
            await asyncio.sleep(30)
        finally:
            stopped.set()
        return Answers()

    assert ask_blocking(Scripted(act), REQUESTS, 0.05) == GIVEN_UP
    assert stopped.wait(10)


def test_a_resolver_that_hangs_holds_neither_the_answers_nor_the_caller(release: threading.Event) -> None:
    expected = Answers(judge="scripted")

    async def act() -> Answers:
        lookup = asyncio.get_running_loop().run_in_executor(None, release.wait, 30)
        await asyncio.wait([lookup], timeout=0.02)
        return expected

    assert ask_blocking(Scripted(act), REQUESTS, 20.0) == expected
    assert not release.is_set()


def test_work_in_threads_gives_its_result_or_its_error() -> None:
    def fail() -> None:
        raise KeyError("inside")

    async def act() -> Answers:
        loop = asyncio.get_running_loop()
        value = await loop.run_in_executor(None, pow, 2, 5)
        with pytest.raises(KeyError):
            await loop.run_in_executor(None, fail)
        return Answers(model=str(value))

    assert ask_blocking(Scripted(act), REQUESTS, 5.0).model == "32"


def test_a_service_that_hangs_gives_what_the_others_gave() -> None:
    with SystemOneServer() as server:
        server.mode, server.faults = "hang", 1
        answers = ask_blocking(judge_at(server.url), REQUESTS, 0.4)

    assert len(answers.by_id) == 2
    assert (answers.failed, answers.errors) == (1, ("transient",))


EXITING = """
import asyncio, time
from hermes_jev.judge.blocking import ask_blocking
from hermes_jev.judge.protocol import Answers

class Hanging:
    name, version, local = "hanging", "1", True
    async def ask(self, requests, deadline_s):
        {body}
        return Answers()

print(ask_blocking(Hanging(), [], 0.05).errors, flush=True)
"""


@pytest.mark.parametrize(
    "body",
    ["time.sleep(600)", "await asyncio.get_running_loop().run_in_executor(None, time.sleep, 600)"],
    ids=["thread", "resolver"],
)
def test_what_was_left_behind_does_not_keep_the_process_alive(body: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXITING.replace("{body}", body)],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert (done.stdout, done.returncode) == ("('transient',)\n", 0), done.stderr
