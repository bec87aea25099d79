"""One long turn in the installed hosts: the window fills several times, and hosts allow a turn only a few passes."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from host_run import CLOSED
from hosts import HOSTS, host_python
from model_server import ModelServer, Steps, overflow
from system_one_server import SystemOneServer
from test_host_e2e import FINAL, QUERY, Play, home_with_notes, judge_env, play, terminal

pytestmark = pytest.mark.host

CALLS = 24
SIZE = 20_000
WINDOW = 65_536


@pytest.fixture(scope="module", params=list(HOSTS))
def long_turn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Play:
    """24 calls of 20,000 characters in one turn, about twice the window; the judge needs none of them any more."""
    folder = tmp_path_factory.mktemp("long")
    steps = [*(terminal(number, SIZE) for number in range(1, CALLS + 1)), {"text": FINAL}]
    with SystemOneServer(decide=lambda *_: 0.1) as judge:
        return play(host_python(request.param), folder, steps, env=judge_env(judge.url))


def test_it_ends_with_the_answer(long_turn: Play) -> None:
    assert long_turn.run.rc == 0, long_turn.run.stderr[-2_000:]
    assert FINAL in long_turn.run.stdout
    assert not long_turn.failures


def test_the_prompt_never_outgrows_the_window(long_turn: Play) -> None:
    prompts = [sum(map(len, talk.results.values())) // 4 for talk in long_turn.talks]
    assert max(prompts) < WINDOW
    assert sum(later < earlier for earlier, later in itertools.pairwise(prompts)) >= 2


def test_no_pass_was_for_nothing(long_turn: Play) -> None:
    passes = re.findall(r"hermes_jev: (\w+): \d+ shortened", long_turn.run.log)
    assert len(passes) >= 2
    assert set(passes) == {"compacted"}


def test_every_cut_was_made_once(long_turn: Play) -> None:
    """What a pass settled keeps its bytes in every later request."""
    settled: dict[str, str] = {}
    for talk in long_turn.talks:
        for call, text in talk.results.items():
            if "[hermes_jev: " in text:
                assert settled.setdefault(call, text) == text
    assert len(settled) >= CALLS // 2


# --- a provider that really refuses, and a judge that keeps or is down


class Refusing(ModelServer):
    """A provider whose window is real: what does not fit is refused."""

    refused = 0

    def answer(self, body: dict[str, Any]) -> Any:
        used = self.usage_of(body)["prompt_tokens"]
        if used > WINDOW:
            self.refused += 1
            return overflow(WINDOW, used)
        return super().answer(body)


@pytest.mark.parametrize("host", list(HOSTS))
@pytest.mark.parametrize("judge", ["lexical", "down"])
def test_a_turn_of_large_results_ends_with_the_answer(host: str, judge: str, tmp_path: Path) -> None:
    """14 results of 23,000 characters: the judge keeps some, or does not answer, and the window must not burst."""
    steps = [*(terminal(number, 23_000) for number in range(1, 15)), {"text": FINAL}]
    env = {} if judge == "lexical" else judge_env(CLOSED)
    with Refusing(Steps(steps), log=tmp_path / "requests.jsonl") as model:
        run = home_with_notes(host_python(host), tmp_path, model).chat(QUERY, env=env)
    assert run.rc == 0, run.stderr[-2_000:]
    assert FINAL in run.stdout
    assert "falling back" not in run.log
