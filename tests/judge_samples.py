"""Requests, and a remote judge to ask them of, for the tests of the judge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from pydantic import SecretStr
from system_one_server import KEY

from hermes_jev.judge.endpoints import PRESETS, TYPESAFE, resolve_endpoint
from hermes_jev.judge.protocol import Question, Request
from hermes_jev.judge.system_one import SystemOne

URL = TYPESAFE.url
CRITERIA = {"true": "It will be needed.", "false": "It will not."}
QUARTER = {"type": "noul", "noul": 0.25}


def questions(*ordinals: int) -> tuple[Question, ...]:
    return tuple(
        Question(f"t{ordinal}_{part}", "noul", f"Is `t{ordinal}` needed?", CRITERIA)
        for ordinal in ordinals
        for part in ("call", "output")
    )


def a_request(*ordinals: int, text: str = "a line of output") -> Request:
    items = [{"id": f"t{ordinal}", "text": text} for ordinal in ordinals]
    return Request({"goal": "fix the parser", "items": items}, questions(*ordinals))


def ok_response(request: Request) -> httpx.Response:
    """What the service says to the request: 0.25 to every question, 1000 tokens read."""
    answers = {question.id: QUARTER for question in request.questions}
    usage = {"input_tokens": 1000, "output_tokens": 20}
    return httpx.Response(200, json={"model": "jev-1.13.0", "answers": answers, "usage": usage})


class Naps:
    """Remembers how long it was told to sleep, and does not."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def judge_for(endpoint: str, **options: Any) -> SystemOne:
    """A judge that asks a known service, with a key where it takes one."""
    resolved = resolve_endpoint({"CLOUDFLARE_ACCOUNT_ID": "a1b2c3"}, preset=PRESETS[endpoint])
    key = SecretStr(KEY) if resolved.key_needed else None
    return SystemOne(resolved, key, **{"jitter": lambda: 0.0, "sleep": Naps(), **options})


def judge_at(
    url: str | None = None,
    *,
    key: str | None = KEY,
    sleep: Callable[[float], Awaitable[None]] | None = None,
    **options: Any,
) -> SystemOne:
    endpoint = TYPESAFE if url is None else resolve_endpoint({}, base_url=url)
    secret = None if key is None else SecretStr(key)
    return SystemOne(endpoint, secret, jitter=lambda: 0.0, sleep=sleep or Naps(), **options)
