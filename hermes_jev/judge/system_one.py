"""The remote judge: asks a System One service over HTTP within one deadline for the whole pass.

All requests of a pass go out together, a few at a time. One that fails for a passing reason is sent again while time
is left; one that is too long is cut in two by its questions; a refused key ends the pass. What was answered by the
deadline is returned, and what was not is counted, never guessed.

The object holds plain data and no open handle, so it can be copied, sent to another thread, and used from any event
loop. Nothing of a request, of a key, or of an error body beyond its status and short type is logged or kept.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import math
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Any

import httpx
from pydantic import SecretStr

from ..errors import (
    ConfigError,
    JudgeAuth,
    JudgeBadRequest,
    JudgeBadResponse,
    JudgeError,
    JudgeTooLarge,
    JudgeTransient,
)
from .dialects import DIALECTS, Decoded, Dialect, from_bytes, to_bytes
from .endpoints import Endpoint, checked_key
from .protocol import Answer, Answers, Question, Request

logger = logging.getLogger(__name__)

RETRIES = 2
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 5.0
CONNECT_TIMEOUT_S = 3.0
MAX_RESPONSE_BYTES = 1_000_000

_SUBJECT = re.compile(r"([a-z]+[0-9]+)(?:_(?:call|output))?")


class SystemOne:
    """A `Judge` that asks `endpoint`.

    In what `ask` returns, `requests` counts every request sent, repeats included; `failed` and `errors` count the
    requests (or the parts they were cut into) that ended without an answer, one code each, in the order of the
    requests given.

    `key` is None for a service that needs none. `request_timeout_s` bounds one attempt. `jitter` gives numbers in
    [0, 1) that shorten a delay by up to a quarter; `sleep` waits between attempts. `transport` replaces the network.

    Raises ConfigError for an endpoint with an unknown dialect and for a key that cannot stand in a header.
    """

    name = "jev"
    local = False
    local = False

    def __init__(
        self,
        endpoint: Endpoint,
        key: SecretStr | None,
        *,
        concurrency: int = 8,
        request_timeout_s: float = 10.0,
        transport: httpx.AsyncBaseTransport | None = None,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if endpoint.dialect not in DIALECTS:
            raise ConfigError(f"endpoint {endpoint.name}: the dialect {endpoint.dialect!r} is unknown")
        self.endpoint = endpoint
        self.concurrency = max(1, concurrency)
        self.request_timeout_s = request_timeout_s
        self.key = None if key is None else checked_key(key, f"the key for {endpoint.name}")
        self.transport = transport
        self.jitter = jitter
        self.sleep = sleep

    def __repr__(self) -> str:
        return f"SystemOne(endpoint={self.endpoint.name!r}, model={self.endpoint.model!r})"

    @property
    def version(self) -> str:
        """The model that is asked for."""
        return self.endpoint.model

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        """Answer what can be answered within `deadline_s` seconds. Never raises for a failing service."""
        started = time.monotonic()
        ends = asyncio.get_running_loop().time() + deadline_s
        asked = [part for request in requests for part in split_to_fit(request, self.endpoint.max_questions)]
        outcome = _Outcome(errors=[[] for _ in asked])
        if asked:
            async with self._client() as client:
                await self._ask_all(client, asked, outcome, ends)
        errors = tuple(code for codes in outcome.errors for code in codes)
        return Answers(
            by_id=outcome.by_id,
            judge=self.name,
            model=outcome.model,
            requests=outcome.sent,
            failed=len(errors),
            errors=errors,
            input_tokens=outcome.input_tokens,
            cost=outcome.input_tokens * self.endpoint.price_per_million_tokens / 1_000_000,
            latency_ms=round((time.monotonic() - started) * 1000),
        )

    def _client(self) -> httpx.AsyncClient:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "hermes-jev"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key.get_secret_value()}"
        timeout = httpx.Timeout(self.request_timeout_s, connect=min(CONNECT_TIMEOUT_S, self.request_timeout_s))
        return httpx.AsyncClient(
            headers={**headers, "Content-Type": "application/json"},
            timeout=timeout,
            limits=httpx.Limits(max_connections=self.concurrency),
            transport=self.transport,
            follow_redirects=False,  # a redirect would carry the key and the transcript to another host
            trust_env=False,
        )

    async def _ask_all(
        self, client: httpx.AsyncClient, asked: Sequence[Request], outcome: _Outcome, ends: float
    ) -> None:
        run = _Pass(self, client, asyncio.Semaphore(self.concurrency), ends, outcome)
        tasks = [asyncio.create_task(run.ask(request, place)) for place, request in enumerate(asked)]
        try:
            await asyncio.wait(tasks, timeout=max(0.0, ends - asyncio.get_running_loop().time()))
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for codes, result in zip(outcome.errors, results, strict=True):
            if isinstance(result, asyncio.CancelledError):
                codes.append(JudgeTransient.code)
            elif isinstance(result, BaseException):
                raise result


@dataclass(slots=True)
class _Outcome:
    """What a pass has so far. It survives the deadline; the tasks that fill it do not."""

    errors: list[list[str]]
    by_id: dict[str, Answer] = field(default_factory=dict)
    model: str = ""
    input_tokens: int = 0
    sent: int = 0

    def add(self, decoded: Decoded) -> None:
        self.by_id.update(decoded.answers)
        self.model = self.model or decoded.model
        self.input_tokens += decoded.input_tokens


class _Retryable(JudgeTransient):
    """A failure that may pass, with the seconds the service asked to wait, if it did."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


@dataclass(slots=True)
class _Pass:
    """One call of `ask`: the connection, the places left on it, and the time it must end (of the event loop)."""

    judge: SystemOne
    client: httpx.AsyncClient
    slots: asyncio.Semaphore
    ends: float
    outcome: _Outcome
    refused: bool = False

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.judge.endpoint.dialect]

    async def ask(self, request: Request, place: int) -> None:
        """Put the request's answers, or the code of its failure, into the outcome."""
        try:
            decoded = await self._ask_with_retries(request)
            self.outcome.add(decoded)
            if not decoded.answers:
                raise JudgeBadResponse("none of the answers can be used")
        except JudgeTooLarge as error:
            parts = split(request)
            if parts is None:
                self._give_up(error, place)
            else:
                await asyncio.gather(*(self.ask(part, place) for part in parts))
        except JudgeError as error:
            self._give_up(error, place)

    def _give_up(self, error: JudgeError, place: int) -> None:
        logger.debug("a request to %s failed: %s: %s", self.judge.endpoint.name, error.code, error)
        self.outcome.errors[place].append(error.code)

    async def _ask_with_retries(self, request: Request) -> Decoded:
        content = to_bytes(self.dialect.encode(request, self.judge.endpoint.model))
        attempt = 0
        while True:
            try:
                return await self._ask_once(content, request.questions)
            except _Retryable as error:
                delay = self._delay(attempt, error.wait_s)
                # A delay that would cross the deadline is not begun: nobody would be there for the answer.
                if attempt == RETRIES or asyncio.get_running_loop().time() + delay >= self.ends:
                    raise
            await self.judge.sleep(delay)
            attempt += 1

    def _delay(self, attempt: int, wait_s: float | None) -> float:
        if wait_s is not None:
            return wait_s
        return min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0**attempt) * (1 - 0.25 * self.judge.jitter())

    async def _ask_once(self, content: bytes, questions: Sequence[Question]) -> Decoded:
        async with self.slots:
            if self.refused:
                raise JudgeAuth("the key was refused earlier in this pass")
            self.outcome.sent += 1
            response, body = await self._post(content)
            if not response.is_success:
                error = _status_error(response, self._error_type(body))
                self.refused = self.refused or isinstance(error, JudgeAuth)
                raise error
        if body is None:
            raise JudgeBadResponse(f"the body is compressed, or over {MAX_RESPONSE_BYTES} bytes")
        return self.dialect.decode(from_bytes(body), questions)

    async def _post(self, content: bytes) -> tuple[httpx.Response, bytes | None]:
        """The response and its body, None for a body that is not read. Raises _Retryable."""
        try:
            async with (
                asyncio.timeout(self.judge.request_timeout_s),
                self.client.stream("POST", self.judge.endpoint.url, content=content) as response,
            ):
                return response, await _read_limited(response)
        except TimeoutError:
            failure = "time-out"
        except httpx.TransportError as error:
            failure = type(error).__name__
        # Raised here, not above, so that no error of the library, with the request in it, hangs on to this one.
        raise _Retryable(failure)

    def _error_type(self, body: bytes | None) -> str:
        try:
            return self.dialect.error_type(from_bytes(body or b""))
        except JudgeBadResponse:
            return ""


async def _read_limited(response: httpx.Response) -> bytes | None:
    """The body, or None if it is too long, or compressed: that was not asked for, and may unpack to any size."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return None
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            return None
    return bytes(body)


def _status_error(response: httpx.Response, error_type: str) -> JudgeError:
    """The error for a status that is no success. Its text is the status and the short type, nothing of the body."""
    status = response.status_code
    message = f"HTTP {status} {error_type}".rstrip()
    if status in (401, 403):
        return JudgeAuth(message)
    if status == 413 or (400 <= status < 500 and error_type == "max_tokens_exceeded"):
        return JudgeTooLarge(message)
    if status in (408, 429) or status >= 500:
        return _Retryable(message, retry_after(response.headers, time.time()))
    return JudgeBadRequest(message)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait as the service asks: `retry-after-ms`, else `retry-after` in seconds or as an HTTP date.

    `now` is Unix time. None where nothing usable is said: absent, negative, not finite, a date gone by.
    """
    candidates = (_number(headers.get("retry-after-ms"), 0.001), _seconds(headers.get("retry-after"), now))
    return next((wait for wait in candidates if wait is not None and math.isfinite(wait) and wait >= 0), None)


def _number(text: str | None, scale: float) -> float | None:
    try:
        return None if text is None else float(text) * scale
    except ValueError:
        return None


def _seconds(text: str | None, now: float) -> float | None:
    seconds = _number(text, 1.0)
    if text is None or seconds is not None:
        return seconds
    try:
        date = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now


def split_to_fit(request: Request, max_questions: int) -> Iterator[Request]:
    """The request itself, or pieces of at most `max_questions` questions where its subjects can be parted."""
    if not request.questions:
        return
    parts = split(request) if len(request.questions) > max_questions else None
    if parts is None:
        yield request
        return
    for part in parts:
        yield from split_to_fit(part, max_questions)


def split(request: Request) -> tuple[Request, Request] | None:
    """Two requests with half of the subjects each, or None for a single subject.

    The questions `t7_call` and `t7_output` have one subject, t7, and stay together; any other question is its own.
    Where the state is a mapping with a list under "items", an item with the id of a subject goes only where that
    subject is asked about. Questions must therefore name items by id, not by their place in the list.
    """
    subjects = list(dict.fromkeys(_subject(question.id) for question in request.questions))
    if len(subjects) < 2:
        return None
    middle = len(subjects) // 2
    return _only(request, set(subjects[:middle])), _only(request, set(subjects[middle:]))


def _only(request: Request, subjects: set[str]) -> Request:
    questions = tuple(question for question in request.questions if _subject(question.id) in subjects)
    state = request.state
    if isinstance(state, Mapping) and isinstance(state.get("items"), list):
        state = {**state, "items": [item for item in state["items"] if _belongs(item, subjects)]}
    return replace(request, state=state, questions=questions)


def _belongs(item: Any, subjects: set[str]) -> bool:
    name = item.get("id") if isinstance(item, Mapping) else None
    return not isinstance(name, str) or name in subjects or not _SUBJECT.fullmatch(name)


def _subject(question_id: str) -> str:
    match = _SUBJECT.fullmatch(question_id)
    return match[1] if match else question_id
