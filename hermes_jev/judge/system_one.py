"""The remote judge: asks a decision service over HTTP within one deadline for the whole pass.

All requests of a pass go out together, a few at a time. One that fails for a passing reason is sent again while time
is left; one that is too long is cut in two by its questions, and a single item to head and tail; a refused key, or a
wait longer than the pass, ends it. What was answered by the deadline is returned, and what was not is counted, never
guessed.

The object holds plain data and no open handle, so it can be copied, sent to another thread, and used from any event
loop. Nothing of a request, of a key, or of an error body beyond its status and short type is logged or kept.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache

import httpx
from pydantic import SecretStr

from ..errors import ConfigError
from ..tokens import estimate_tokens
from .dialects import DIALECTS, to_bytes
from .endpoints import checked_key
from .presets import Endpoint
from .protocol import Answers, Limits, Request
from .round_trips import Pass, Wire
from .splitting import within

CONNECT_TIMEOUT_S = 3.0
OVERHEAD_TOKENS = 270
"""Tokens a request is charged beside its body."""


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
        """The model that is asked for, and whose it is."""
        return self.endpoint.version

    @property
    def service(self) -> str:
        """The endpoint and its host: what failures, waits and costs are remembered by."""
        return f"{self.endpoint.name} {httpx.URL(self.endpoint.url).netloc.decode('ascii')}"

    @property
    def limits(self) -> Limits:
        """What one request may hold."""
        return self.endpoint.limits

    def price(self, requests: Sequence[Request]) -> float:
        """What asking them would cost, in US dollars, by estimate. Raises JudgeBadRequest for what JSON cannot hold."""
        if not self.endpoint.price_per_million_tokens:
            return 0.0
        parts = (part for request in requests for part in within(request, self.limits))
        return self._dollars(sum(estimated_tokens(self._encoded(part)) for part in parts))

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        """Answer what can be answered within `deadline_s` seconds. Never raises for a failing service."""
        started = time.monotonic()
        ends = asyncio.get_running_loop().time() + deadline_s
        asked = [part for request in requests for part in within(request, self.limits)]
        run = Pass(self._wire(), ends, len(asked))
        if asked:
            async with self._client() as client:
                await run.ask_all(client, asked)
        unaskable = sum(len(request.questions) for request in requests) - sum(len(part.questions) for part in asked)
        errors = (*run.errors(), *(["bad_request"] if unaskable else []))
        return Answers(
            by_id=run.by_id,
            judge=self.name,
            model=run.model,
            requests=run.sent,
            failed=len(errors),
            errors=errors,
            input_tokens=run.tokens,
            cost=run.reported_cost + self._dollars(run.tokens_without_cost),
            latency_ms=round((time.monotonic() - started) * 1000),
            details=tuple(dict.fromkeys(run.details)),
            trimmed=frozenset(run.trimmed),
            wait_s=max(0.0, run.leave_alone_until - asyncio.get_running_loop().time()),
        )

    def _wire(self) -> Wire:
        return Wire(
            url=self.endpoint.url,
            encode=self._encoded,
            decode=DIALECTS[self.endpoint.dialect].decode,
            estimate=estimated_tokens,
            concurrency=self.concurrency,
            timeout_s=self.request_timeout_s,
            jitter=self.jitter,
            sleep=self.sleep,
        )

    def _encoded(self, request: Request) -> bytes:
        return to_bytes(DIALECTS[self.endpoint.dialect].encode(request, self.endpoint.model, self.limits))

    def _dollars(self, tokens: int) -> float:
        return tokens * self.endpoint.price_per_million_tokens / 1_000_000

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
            verify=_certificates(),
            follow_redirects=False,  # a redirect would carry the key and the transcript to another host
            trust_env=False,
        )


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Read once a process: that takes longer than all else a client does before its first request."""
    return httpx.create_ssl_context(trust_env=False)


def estimated_tokens(content: bytes) -> int:
    """Estimated tokens that a service charges for a request with this body."""
    return OVERHEAD_TOKENS + estimate_tokens(content.decode("utf-8"))
