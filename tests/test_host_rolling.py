"""The rolling schedule in the installed hosts: results are settled before the window fills, where the host asks."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from host_run import HostHome, HostRun, make_home
from hosts import host_python
from model_server import Conversation, ModelServer, Steps
from system_one_server import SystemOneServer
from test_host_e2e import FINAL, QUERY, judge_env, terminal

from hermes_jev.extent import ROLLING_CALLS
from hermes_jev.rolling import NEVER_ASKED
from hermes_jev.settings import Settings

pytestmark = pytest.mark.host

CALLS, SIZE, WINDOW = 14, 8_000, 65_536
"""About 28,000 tokens: half of the window, so that nothing is due by its fill."""


def turn_of(host: str, folder: Path) -> tuple[HostHome, HostRun, list[Conversation]]:
    steps = [*(terminal(number, SIZE) for number in range(1, CALLS + 1)), {"text": FINAL}]
    model_server = ModelServer(Steps(steps), log=folder / "requests.jsonl")
    with SystemOneServer(decide=lambda *_: 0.1) as judge, model_server as model:
        home = make_home(host_python(host), folder, model.url, settings={"schedule": "rolling"}, context_length=WINDOW)
        run = home.chat(QUERY, env=judge_env(judge.url))
        assert run.rc == 0, run.stderr[-2_000:]
        assert FINAL in run.stdout
        assert not model.failures
        return home, run, model.conversations()


def test_a_host_that_asks_has_results_settled_once_and_only_near_the_end(tmp_path: Path) -> None:
    home, run, talks = turn_of("0.22", tmp_path)

    assert "hermes_jev: rolling: compacted" in run.log
    assert NEVER_ASKED not in run.log
    originals: dict[str, str] = {}
    settled: dict[str, str] = {}
    for before, talk in itertools.pairwise(talks):
        calls = list(talk.results)
        for call, text in before.results.items():
            originals.setdefault(call, text)
            if talk.results[call] != text:
                assert call not in settled, "settled text is never touched again"
                assert calls.index(call) >= len(calls) - ROLLING_CALLS - Settings().pin_last_calls - 1
                settled[call] = talk.results[call]
    assert len(settled) >= 3
    assert all("[hermes_jev: " in text for text in settled.values())
    assert not set(list(talks[-1].results)[-Settings().pin_last_calls :]) & set(settled)
    # The host's rows stay whole: what was settled in the prompt alone is there when the session is resumed.
    stored = {row.tool_call_id: row.content for row in home.rows(run.session_id) if row.role == "tool"}
    assert {call: stored[call] for call in settled} == {call: originals[call] for call in settled}


def test_a_host_that_does_not_ask_is_told_of_and_left_alone(tmp_path: Path) -> None:
    _, run, talks = turn_of("0.19", tmp_path)

    assert NEVER_ASKED in run.log
    assert "rolling: compacted" not in run.log
    assert not any("[hermes_jev: " in text for text in talks[-1].results.values())
