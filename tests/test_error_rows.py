"""Each service's refusals as published, one row each: the code, how often it is asked, and that nothing leaks.

The bodies are those of the services' documentation and of what was seen of them; every secret word in them is made up.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import httpx
import pytest
import respx
from judge_samples import Naps, a_request, judge_for

ECHO = "PRIVATE WORDS of the request"


class Row(NamedTuple):
    endpoint: str
    status: int
    body: Any
    code: str
    sent: int = 1
    headers: Mapping[str, str] = MappingProxyType({})


def detail(error_type: str, message: str = ECHO) -> dict[str, Any]:
    return {"detail": {"error_type": error_type, "message": message}}


def error(code: int | str | None, message: str = ECHO, **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **more}}


def envelope(code: int) -> dict[str, Any]:
    return {"success": False, "errors": [{"code": code, "message": ECHO}], "result": None, "messages": []}


NESTED = '{"detail":{"error_type":"max_tokens_exceeded"}}'
SCHEMA = {"detail": [{"loc": ["body", "state"], "msg": "Field required", "type": "missing", "input": ECHO, "ctx": {}}]}

ROWS = [
    # TypeSafe, every row of the errors it is known to send.
    Row("typesafe", 400, {"detail": {"error_type": "max_tokens_exceeded"}}, "too_large"),
    Row("typesafe", 400, detail("api_usage_error", "Unknown model: x"), "bad_request"),
    Row("typesafe", 400, {"detail": "Too many choices. Must have at most 255 choices."}, "bad_request"),
    Row("typesafe", 401, detail("authentication_error", "Cannot authenticate with the server."), "auth"),
    Row("typesafe", 403, detail("authentication_error", "Must supply an API key!"), "auth"),
    Row("typesafe", 404, {"detail": "Not Found"}, "bad_request"),
    Row("typesafe", 422, SCHEMA, "bad_request"),
    Row("typesafe", 429, detail("rate_limit_error"), "transient", 3),
    Row("typesafe", 429, "", "transient", 3, {"retry-after": "1"}),
    Row("typesafe", 408, "", "transient", 3),
    Row("typesafe", 500, "Internal Server Error", "transient", 3),
    Row("typesafe", 502, "<html>", "transient", 3),
    Row("typesafe", 503, "", "transient", 3),
    Row("typesafe", 504, "", "transient", 3),
    Row("typesafe", 529, detail("overloaded_error"), "transient", 3),
    # OpenRouter.
    Row("openrouter", 400, error(400, "questions.q.instructions: Required"), "bad_request"),
    Row("openrouter", 400, error(400, "x is not a valid model ID"), "bad_request"),
    Row("openrouter", 400, error(400, NESTED), "too_large"),
    Row("openrouter", 400, error(400, ECHO, metadata={"raw": NESTED, "provider_name": "TypeSafe"}), "too_large"),
    Row("openrouter", 401, error(401, "Missing Authentication header"), "auth"),
    Row("openrouter", 402, error(402), "auth", 1, {"retry-after": "60"}),
    Row("openrouter", 403, error(403), "auth"),
    Row("openrouter", 404, error(404), "bad_request"),
    Row("openrouter", 413, error(413), "too_large"),
    Row("openrouter", 429, error(429), "transient", 3, {"retry-after": "2"}),
    *[Row("openrouter", status, error(status), "transient", 3) for status in (500, 502, 503, 524, 529)],
    # OpenAI.
    Row("openai", 400, error("context_length_exceeded", type="invalid_request_error", param="input"), "too_large"),
    Row("openai", 400, error("unknown_model", type="invalid_request_error"), "bad_request"),
    Row("openai", 401, error("invalid_api_key", type="invalid_request_error"), "auth"),
    Row("openai", 404, error("model_not_found", type="invalid_request_error"), "bad_request"),
    Row("openai", 429, error("rate_limit_exceeded", type="requests"), "transient", 3),
    Row("openai", 429, error("insufficient_quota", type="insufficient_quota"), "transient"),
    Row("openai", 500, error(None, type="server_error"), "transient", 3),
    # Cloudflare: numbers in an envelope.
    Row("cloudflare", 429, envelope(3036), "transient"),
    Row("cloudflare", 429, envelope(3040), "transient", 3),
    Row("cloudflare", 400, envelope(5006), "bad_request"),
    Row("cloudflare", 401, envelope(10000), "auth"),
    Row("cloudflare", 413, envelope(3006), "too_large"),
    Row("cloudflare", 200, envelope(3040), "bad_response"),
    # Vercel: an upstream's body arrives as text.
    Row("vercel", 400, error(None, NESTED), "too_large"),
    Row("vercel", 400, {"message": "model: Required", "error_type": "invalid_request"}, "bad_request"),
    Row("vercel", 401, {"message": "Authentication failed", "error_type": "authentication_error"}, "auth"),
    Row("vercel", 403, error("customer_verification_required"), "auth"),
    Row("vercel", 503, error(None), "transient", 3),
    # Local servers.
    Row("ollama", 404, {"error": "model 'nimble' not found"}, "bad_request"),
    Row("ollama", 400, {"error": ECHO}, "bad_request"),
    Row("ollama", 500, {"error": ECHO}, "transient", 3),
    Row("llamacpp", 400, error(400, ECHO, type="exceed_context_size_error"), "too_large"),
    Row("llamacpp", 503, error(503, "Loading model", type="unavailable_error"), "transient", 3),
    Row("llamacpp", 413, {"detail": ECHO}, "too_large"),
    # No redirect is followed, whoever sends it.
    *[
        Row(endpoint, status, "", "bad_request", 1, {"location": "https://elsewhere.example/v1/systemone"})
        for endpoint in ("typesafe", "openai", "cloudflare")
        for status in (301, 302, 303, 307, 308)
    ],
]


def named(row: Row) -> str:
    return f"{row.endpoint}-{row.status}-{row.code}"


@pytest.mark.parametrize("row", ROWS, ids=named)
@respx.mock
async def test_each_row_has_its_code_and_number_of_attempts(row: Row, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    judge = judge_for(row.endpoint)
    content = row.body if isinstance(row.body, str) else json.dumps(row.body)
    route = respx.post(judge.endpoint.url).respond(row.status, text=content, headers=row.headers)

    answers = await judge.ask([a_request(1)], 30.0)

    assert route.call_count == row.sent
    assert (answers.by_id, answers.requests, answers.failed, answers.errors) == ({}, row.sent, 1, (row.code,))
    assert ECHO not in caplog.text + repr(answers)
    assert len(respx.calls) == row.sent


@pytest.mark.parametrize("endpoint", ["typesafe", "openrouter", "openai", "cloudflare", "vercel", "ollama", "llamacpp"])
@respx.mock
async def test_a_passing_failure_is_waited_out_everywhere(endpoint: str) -> None:
    judge = judge_for(endpoint, sleep=(naps := Naps()))
    good = {"answers": [{"type": "noul", "noul": 0.25}, {"type": "noul", "noul": 0.25}], "model": "m"}
    route = respx.post(judge.endpoint.url).mock(
        side_effect=[
            httpx.Response(429, headers={"retry-after": "3"}),
            httpx.ReadTimeout("slow"),
            httpx.Response(200, json={"result": good, "success": True} if endpoint == "cloudflare" else good),
        ]
    )

    answers = await judge.ask([a_request(1)], 30.0)

    assert {name: answer.yes for name, answer in answers.by_id.items()} == {"t1_call": 0.25, "t1_output": 0.25}
    assert (answers.requests, answers.errors, naps.taken) == (3, (), [3.0, 1.0])
    assert route.call_count == 3


@pytest.mark.parametrize("endpoint", ["typesafe", "openrouter", "openai", "cloudflare", "vercel", "ollama", "llamacpp"])
@respx.mock
async def test_what_is_too_long_is_halved_everywhere(endpoint: str) -> None:
    judge = judge_for(endpoint)

    def two_at_most(request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)["questions"]
        names = list(asked) if isinstance(asked, dict) else [question["name"] for question in asked]
        if len(names) > 2:
            return httpx.Response(413, json={})
        answers = {name: {"type": "noul", "noul": 0.25} for name in names}
        return httpx.Response(200, json={"answers": answers})

    respx.post(judge.endpoint.url).mock(side_effect=two_at_most)

    answers = await judge.ask([a_request(1, 2, 3, 4)], 30.0)

    assert len(answers.by_id) == 8
    # The second half is as large as the first one, which was refused: it is halved without being sent.
    assert (answers.requests, answers.failed, answers.trimmed) == (6, 0, frozenset())


@pytest.mark.parametrize(
    ("row", "tokens", "said"),
    [
        (Row("typesafe", 500, "", "transient", 3), True, ("HTTP 500",)),
        (Row("typesafe", 429, "", "transient", 3), False, ("HTTP 429",)),
        (Row("typesafe", 401, detail("authentication_error"), "auth"), False, ("HTTP 401 authentication_error",)),
        (Row("typesafe", 404, {"detail": "Not Found"}, "bad_request"), False, ("HTTP 404",)),
        (Row("typesafe", 422, SCHEMA, "bad_request"), False, ("HTTP 422",)),
    ],
    ids=lambda value: named(value) if isinstance(value, Row) else "",
)
@respx.mock
async def test_failed_calls_are_counted_and_charged_where_they_were_read(row: Row, tokens: bool, said: Any) -> None:
    judge = judge_for(row.endpoint)
    content = row.body if isinstance(row.body, str) else json.dumps(row.body)
    respx.post(judge.endpoint.url).respond(row.status, text=content)

    answers = await judge.ask([a_request(1)], 30.0)

    price = judge.price([a_request(1)])
    assert answers.details == said
    assert (answers.input_tokens > 0) is tokens
    assert answers.cost == pytest.approx(row.sent * price if tokens else 0)
