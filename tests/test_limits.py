"""What a service takes in one request is what a pass puts into one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from builders import session
from judge_samples import judge_for
from system_one_server import SystemOneServer

import hermes_jev
from hermes_jev.judge import limits_of
from hermes_jev.judge.endpoints import PRESETS, resolve_endpoint
from hermes_jev.judge.protocol import Limits
from hermes_jev.judge.system_one import SystemOne
from hermes_jev.tokens import estimate_tokens


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"custom"}))
def test_a_judges_limits_are_its_endpoints(name: str) -> None:
    assert limits_of(judge_for(name)) == PRESETS[name].limits


@pytest.mark.parametrize(
    "limits",
    [
        Limits(),
        Limits(questions=10),
        Limits(questions=1),
        Limits(state_tokens=4_000),
        Limits(request_tokens=5_000),
        PRESETS["ollama"].limits,
    ],
    ids=["usual", "few questions", "one question", "small state", "small request", "ollama"],
)
def test_no_request_of_a_pass_is_over_them(limits: Limits, tmp_path: Path) -> None:
    with SystemOneServer(key=None) as server:
        endpoint = replace(resolve_endpoint({}, base_url=server.url), limits=limits)
        pruned = hermes_jev.prune(session(70), judge=SystemOne(endpoint, None), store=tmp_path / "store")

    assert {decision.verdict is None for decision in pruned.decisions} == {False}
    for request in server.requests:
        items = len(request.body["state"]["items"])
        assert len(request.body["questions"]) == 2 * items <= max(2, limits.questions)
        assert items == 1 or estimate_tokens(dumped(request.body["state"])) <= limits.state_tokens
        assert items == 1 or estimate_tokens(dumped(request.body)) <= limits.request_tokens * 1.1
    least = -(-67 // max(1, min(32, limits.questions // 2)))
    assert len(server.requests) >= least


def dumped(part: object) -> str:
    return json.dumps(part, ensure_ascii=False)
