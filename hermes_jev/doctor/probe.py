"""One live question, and the exchange as it went over the wire, redacted."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx

from ..errors import StoreError
from ..judge import Answers, Judge, Request, Subject, SystemOne, ask_blocking
from ..questions import CONTEXT, question_ids, questions
from ..redact import redact
from ..store import Services, Spent, Store
from .findings import Finding, ok, problem

logger = logging.getLogger(__name__)

_SHOWN = 4_000
"""Characters of each side that are shown."""

_COMMAND = '{"command":"pytest -q"}'
_OUTPUT = "tests/test_parser.py::test_empty_line FAILED\nE   AssertionError: line 3 is missing\n1 failed, 41 passed"


@dataclass
class Exchange:
    """What was sent and what came back, as text; `status` 0 where nothing came back."""

    url: str = ""
    sent: str = ""
    status: int = 0
    received: str = ""


@dataclass(frozen=True)
class Probed:
    """How a live question went. `exchanges` are empty for a judge inside this process."""

    finding: Finding
    exchanges: tuple[Exchange, ...] = field(default=())


def probe(judge: Judge, deadline_s: float, store: Store) -> Probed:
    """Ask the judge about one made-up tool call. What it costs is added to the day's; a service that is being left
    alone is asked too, since that is what was asked for."""
    recorder = _Recorder()
    if isinstance(judge, SystemOne):
        judge = SystemOne(
            judge.endpoint, judge.key, request_timeout_s=judge.request_timeout_s, transport=recorder.transport()
        )
    answers = ask_blocking(judge, [_request()], deadline_s)
    if isinstance(judge, SystemOne):
        _account(judge, answers, store)
    return Probed(_finding(judge, answers), tuple(recorder.exchanges))


def _request() -> Request:
    item = {"id": "t1", "tool": "terminal", "input": _COMMAND, "outcome": "failed (exit code: 1)"}
    item |= {"size": f"{len(_OUTPUT)} characters", "age": "1 call ago", "output": _OUTPUT}
    goal = "Fix the parser so that empty lines are kept."
    subject = Subject(1, "terminal", _COMMAND, _OUTPUT, len(_OUTPUT), 1, "failed")
    state = {"context": CONTEXT, "goal": goal, "timeline": [f"user: {goal}"], "items": [item]}
    return Request(state, questions(1)[1:], goal=goal, subjects=(subject,))


def _finding(judge: Judge, answers: Answers) -> Finding:
    answer = answers.by_id.get(question_ids(1)[1])
    model = answers.model or judge.version
    if answer is not None:
        text = f"{judge.name} ({model}) answered {answer.yes:.2f} in {answers.latency_ms} ms"
        return ok("probe", "answered", f"{text}: is that output still needed?")
    why = ", ".join(dict.fromkeys([*answers.errors, *answers.details])) or "no answer that can be used"
    return problem("probe", "no_answer", f"{judge.name} did not answer: {why}")


def _account(judge: SystemOne, answers: Answers, store: Store) -> None:
    spent = Spent(answers.requests, answers.input_tokens, answers.cost)
    try:
        if any(spent):
            Services(store).record(judge.service, lambda row: row, spent)
    except StoreError as error:
        logger.debug("what the probe cost was not recorded: %s", error)


class _Recorder:
    """Keeps what goes through a transport, redacted."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def transport(self) -> httpx.AsyncBaseTransport:
        return _Recording(self)


class _Recording(httpx.AsyncBaseTransport):
    def __init__(self, recorder: _Recorder) -> None:
        self._recorder = recorder
        self._inner = httpx.AsyncHTTPTransport(verify=httpx.create_ssl_context(trust_env=False), trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = Exchange(str(request.url), _shown(request.content))
        self._recorder.exchanges.append(exchange)
        response = await self._inner.handle_async_request(request)
        exchange.status = response.status_code
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Watched(response.stream, exchange)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Watched(httpx.AsyncByteStream):
    """A body that is noted down while it is read."""

    def __init__(self, inner: httpx.AsyncByteStream, exchange: Exchange) -> None:
        self._inner, self._exchange, self._seen = inner, exchange, b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._seen = (self._seen + chunk)[: 4 * _SHOWN]
            yield chunk

    async def aclose(self) -> None:
        self._exchange.received = _shown(self._seen)
        await self._inner.aclose()


def _shown(body: bytes) -> str:
    safe = redact(body.decode("utf-8", "replace"))
    return safe if len(safe) <= _SHOWN else f"{safe[:_SHOWN]} …"
