"""The service that stands in for System One is as strict as the one it stands for."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from judge_samples import a_request, judge_at
from system_one_server import KEY, SystemOneServer


@pytest.fixture
def server() -> Iterator[SystemOneServer]:
    with SystemOneServer(lambda question_id, question, state: 0.9 if question_id == "t2_output" else 0.1) as running:
        yield running


@pytest.mark.parametrize(
    ("changes", "status", "kind"),
    [
        ({}, 200, ""),
        ({"x_more": 1}, 200, ""),
        ({"state": ["a", 1]}, 200, ""),
        ({"model": "jev-latest"}, 200, ""),
        ({"state": None}, 422, "string_type"),
        ({"state": 5}, 422, "string_type"),
        ({"questions": {}}, 422, "too_short"),
        ({"questions": []}, 422, "dict_type"),
        ({"questions": {"": {"type": "noul", "instructions": "?"}}}, 422, "string_too_short"),
        ({"questions": {"q": {"instructions": "?"}}}, 422, "missing"),
        ({"questions": {"q": {"type": "noul", "instructions": 5}}}, 422, "string_type"),
        ({"questions": {"q": {"type": "noul", "criteria": {"true": 1}}}}, 422, "string_type"),
        ({"questions": {"q": {"type": "score", "criteria": {"0": "a", "1": "b"}}}}, 422, "list_type"),
        ({"questions": {"q": {"type": "choice", "criteria": ["a", "b"]}}}, 422, "dict_type"),
        ({"model": "jev-9"}, 400, "api_usage_error"),
        ({"questions": {"q": {"type": "score", "criteria": ["x"] * 11}}}, 400, ""),
        ({"questions": {"q": {"type": "choice", "criteria": {str(n): None for n in range(256)}}}}, 400, ""),
        ({"questions": {"q": {"type": "predicate"}}}, 400, "api_usage_error"),
    ],
)
def test_the_server_is_as_strict_as_the_schema(
    server: SystemOneServer, changes: dict[str, Any], status: int, kind: str
) -> None:
    body = {"model": "jev-1.13.0", "state": "s", "questions": {"q": {"type": "noul", "instructions": "?"}}, **changes}

    response = httpx.post(f"{server.url}/v1/systemone", json=body, headers={"authorization": f"Bearer {KEY}"})

    assert response.status_code == status
    assert len(response.headers["x-typesafe-request-id"]) == len("req_") + 32
    detail = response.json().get("detail")
    assert (detail is None) == (status == 200)
    assert f'"{kind}"' in response.text or not kind


def test_the_server_names_a_missing_and_a_wrong_key(server: SystemOneServer) -> None:
    statuses = [
        httpx.post(f"{server.url}/v1/systemone", json={}, headers=headers).status_code
        for headers in ({}, {"authorization": "Bearer"}, {"authorization": "Bearer wrong"}, {"authorization": KEY})
    ]

    assert statuses == [403, 403, 401, 401]


def test_the_server_runs_as_a_program(tmp_path: Path) -> None:
    portfile, log = tmp_path / "port", tmp_path / "log.jsonl"
    program = Path(__file__).with_name("system_one_server.py")
    arguments = ["--portfile", str(portfile), "--log", str(log), "--default", "0.2", "--answer", "t1_output=0.75"]
    with subprocess.Popen([sys.executable, str(program), *arguments]) as process:
        try:
            while not portfile.exists():
                assert process.poll() is None
                time.sleep(0.01)
            judge = judge_at(f"http://127.0.0.1:{portfile.read_text()}")
            answers = asyncio.run(judge.ask([a_request(1)], 5.0))
        finally:
            process.terminate()

    assert {name: answer.yes for name, answer in answers.by_id.items()} == {"t1_call": 0.2, "t1_output": 0.75}
    (line,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert (line["path"], line["authorized"], line["body"]["model"]) == ("/v1/systemone", True, "jev-1.13.0")
    assert KEY not in log.read_text()
