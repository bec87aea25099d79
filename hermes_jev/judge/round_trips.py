"""The round trips of one pass: sending, waiting, sending again, and keeping what came back.

A `Pass` lives for one call of `SystemOne.ask`. What it has gathered survives the deadline; the tasks that gather do
not.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import httpx

from ..errors import JudgeAuth, JudgeBadResponse, JudgeError, JudgeTooLarge, JudgeTransient
from .dialects import Decoded, from_bytes
from .failures import Retryable, asked_to_wait, error_word, retry_after, status_error, was_read
from .protocol import Answer, Question, Request
from .splitting import split, trim

logger = logging.getLogger(__name__)

RETRIES = 2
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 5.0
MAX_RESPONSE_BYTES = 1_000_000

HOPELESS = 3
"""After this many items that were too large even when trimmed, with nothing answered, the service's window is too
small for any."""


@dataclass(frozen=True, slots=True)
class Wire:
    """How a pass speaks to its service. `estimate` counts the tokens of a body when the service does not."""

    url: str
    encode: Callable[[Request], bytes]
    decode: Callable[[object, Sequence[Question]], Decoded]
    estimate: Callable[[bytes], int]
    concurrency: int
    timeout_s: float
    jitter: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]


class _Ended(JudgeError):
    """The pass is over: why is the `code` of the failure that ended it."""

    def __init__(self, code: str) -> None:
        super().__init__("the pass ended earlier")
        self.code = code


class _NotSent(Retryable):
    """No connection came about, so nothing was read or charged."""


class Pass:
    """What one pass has so far.

    `tokens` are all that were read; for `tokens_without_cost` the service named no price, for the others their
    `reported_cost` counts. `leave_alone_until` is a time of the event loop, as is `ends`.
    """

    def __init__(self, wire: Wire, ends: float, places: int) -> None:
        self.wire = wire
        self.ends = ends
        self.by_id: dict[str, Answer] = {}
        self.model = ""
        self.sent = 0
        self.tokens = 0
        self.tokens_without_cost = 0
        self.reported_cost = 0.0
        self.details: list[str] = []
        self.trimmed: set[str] = set()
        self.leave_alone_until = 0.0
        self._slots = asyncio.Semaphore(wire.concurrency)
        self._errors: list[list[str]] = [[] for _ in range(places)]
        self._ended = ""
        self._too_large = 0
        self._refused_bytes = sys.maxsize

    def errors(self) -> tuple[str, ...]:
        """Codes of what ended without an answer, in the order of the requests."""
        return tuple(code for codes in self._errors for code in codes)

    async def ask_all(self, client: httpx.AsyncClient, requests: Sequence[Request]) -> None:
        """Ask them all, until they are answered, have failed, or the time is up."""
        tasks = [asyncio.create_task(self._ask(client, request, place)) for place, request in enumerate(requests)]
        try:
            await asyncio.wait(tasks, timeout=max(0.0, self.ends - asyncio.get_running_loop().time()))
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for codes, result in zip(self._errors, results, strict=True):
            if isinstance(result, asyncio.CancelledError):
                codes.append(JudgeTransient.code)
            elif isinstance(result, BaseException):
                raise result

    async def _ask(self, client: httpx.AsyncClient, request: Request, place: int) -> None:
        """Keep the request's answers, or the code of its failure."""
        parts = split(request)
        try:
            async with self._slots:  # held while it waits to try again: a service in trouble gets less to do
                await self._ask_whole_or_trimmed(client, request, parts is not None)
        except JudgeTooLarge as error:
            if parts is None:
                self._give_up(error, place)
            else:
                await asyncio.gather(*(self._ask(client, part, place) for part in parts))
        except JudgeError as error:
            self._give_up(error, place)

    async def _ask_whole_or_trimmed(self, client: httpx.AsyncClient, request: Request, has_parts: bool) -> None:
        content = self.wire.encode(request)
        if has_parts and len(content) >= self._refused_bytes:
            raise JudgeTooLarge("a smaller one was too large")
        try:
            self._keep(await self._ask_with_retries(client, content, request.questions))
        except JudgeTooLarge:
            self._refused_bytes = min(self._refused_bytes, len(content))
            shorter = None if has_parts else trim(request)
            if shorter is None:
                raise
            decoded = await self._ask_with_retries(client, self.wire.encode(shorter), shorter.questions)
            self.trimmed.update(decoded.answers)
            self._keep(decoded)

    def _keep(self, decoded: Decoded) -> None:
        self.by_id.update(decoded.answers)
        self.model = self.model or decoded.model
        if not decoded.answers:
            raise JudgeBadResponse("none of the answers can be used")

    def _give_up(self, error: JudgeError, place: int) -> None:
        logger.debug("a request failed: %s: %s", error.code, error)
        self._errors[place].append(error.code)
        if not isinstance(error, _Ended):
            self.details.append(str(error))
        self._too_large += isinstance(error, JudgeTooLarge)
        if isinstance(error, JudgeAuth) or (self._too_large >= HOPELESS and not self.by_id):
            self._ended = error.code

    async def _ask_with_retries(
        self, client: httpx.AsyncClient, content: bytes, questions: Sequence[Question]
    ) -> Decoded:
        attempt = 0
        while True:
            try:
                return await self._ask_once(client, content, questions)
            except Retryable as error:
                delay = self._delay(attempt, error.wait_s)
                # A delay that would cross the deadline is not begun: nobody would be there for the answer.
                late = asyncio.get_running_loop().time() + delay >= self.ends
                if late and error.wait_s is not None:
                    self._ended = error.code
                if late or attempt == RETRIES:
                    raise
            await self.wire.sleep(delay)
            attempt += 1

    def _delay(self, attempt: int, wait_s: float | None) -> float:
        if wait_s is not None:
            return wait_s
        return min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0**attempt) * (1 - 0.25 * self.wire.jitter())

    async def _ask_once(self, client: httpx.AsyncClient, content: bytes, questions: Sequence[Question]) -> Decoded:
        if self._ended:
            raise _Ended(self._ended)
        self.sent += 1
        read, decoded = True, None
        try:
            response, body = await self._post(client, content)
            read = was_read(response.status_code)
            if not response.is_success:
                raise self._refusal(response, body)
            if body is None:
                raise JudgeBadResponse(f"the body is compressed, or over {MAX_RESPONSE_BYTES} bytes")
            decoded = self.wire.decode(from_bytes(body), questions)
            return decoded
        except _NotSent:
            read = False
            raise
        finally:  # also when the deadline cancels this: the request was sent
            if read:
                self._pay(content, decoded)

    def _refusal(self, response: httpx.Response, body: bytes | None) -> JudgeError:
        now = time.time()
        alone = asked_to_wait(response.status_code, response.headers, now)
        self.leave_alone_until = max(self.leave_alone_until, asyncio.get_running_loop().time() + alone if alone else 0)
        error = status_error(response.status_code, _word_in(body), retry_after(response.headers, now))
        if isinstance(error, JudgeAuth):
            self._ended = error.code
        return error

    def _pay(self, content: bytes, decoded: Decoded | None) -> None:
        tokens = decoded.input_tokens if decoded else 0
        tokens = tokens or self.wire.estimate(content)
        self.tokens += tokens
        if decoded is None or decoded.cost is None:
            self.tokens_without_cost += tokens
        else:
            self.reported_cost += decoded.cost

    async def _post(self, client: httpx.AsyncClient, content: bytes) -> tuple[httpx.Response, bytes | None]:
        """The response and its body, None for a body that is not read. Raises Retryable."""
        failure: Retryable
        try:
            async with (
                asyncio.timeout(self.wire.timeout_s),
                client.stream("POST", self.wire.url, content=content) as response,
            ):
                return response, await _read_limited(response)
        except TimeoutError:
            failure = Retryable("time-out")
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            failure = _NotSent(type(error).__name__)
        except httpx.TransportError as error:
            failure = Retryable(type(error).__name__)
        # Raised here, not above, so that no error of the library, with the request in it, hangs on to this one.
        raise failure


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


def _word_in(body: bytes | None) -> str:
    try:
        return error_word(from_bytes(body or b""))
    except JudgeBadResponse:
        return ""
