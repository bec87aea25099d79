"""Sessions that rotate, turns that leave, long inputs and old words, in the installed hosts: a scripted model, real
tools, and the way back from what the host itself exports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from host_run import HostHome, make_home
from hosts import HOSTS, ROOT, host_python
from model_server import ModelServer, Steps, text_of
from system_one_server import SystemOneServer
from test_host_e2e import (
    FILL,
    FINAL,
    QUERY,
    Play,
    assert_cut,
    assert_ended_well,
    assert_paired,
    assert_settled,
    assert_words_kept,
    expand,
    judge_env,
    low,
    opened,
    stored,
    terminal,
)

pytestmark = pytest.mark.host

Step = Mapping[str, Any]


@pytest.fixture(params=list(HOSTS))
def python(request: pytest.FixtureRequest) -> Path:
    return host_python(request.param)


def silent(number: int, size: int) -> dict[str, Any]:
    """As `terminal`, and the assistant says nothing."""
    return {"calls": terminal(number, size)["calls"]}


def long_input(number: int, size: int) -> dict[str, Any]:
    """A call with a long input and a short result."""
    lines = "".join(f"row {number}-{i:04d} of the input\n" for i in range(size // 22))
    command = f"cat > part{number}.txt <<'END'\n{lines}END\necho written {number}"
    return {"text": f"I write {number}.", "calls": [{"name": "terminal", "arguments": {"command": command}}]}


def played(host: HostHome, model: ModelServer, steps: Sequence[Step], query: str = QUERY, **more: Any) -> Play:
    model.script = Steps(steps)
    before = len(model.requests)
    run = host.chat(query, **more)
    return Play(host, run, model.conversations()[before:], list(model.failures))


def restored(host: HostHome, session: str) -> list[dict[str, Any]]:
    """The session as the host exports it, every original put back by `jev restore`."""
    done = host.hermes("sessions", "export", "-", "--session-id", session)
    assert done.rc == 0, done.stderr
    export = "".join(line + "\n" for line in done.stdout.splitlines() if line.startswith("{"))
    jev = subprocess.run(
        [sys.executable, "-m", "hermes_jev.cli", "restore", "-", "--store", str(host.home / "hermes_jev")],
        input=export,
        cwd=host.work,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    (document,) = map(json.loads, jev.stdout.splitlines())
    return [row for row in document["messages"] if row.get("active", 1)]


def results_of(messages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {m["tool_call_id"]: text_of(dict(m)) for m in messages if m["role"] == "tool"}


def test_a_session_that_rotates_keeps_its_pointers(python: Path, tmp_path: Path) -> None:
    """`compression.in_place: false`: the session goes on under another id and is resumed in another process."""
    with (
        SystemOneServer(decide=lambda question_id, *_: low(question_id)) as judge,
        ModelServer(Steps([{"text": FINAL}]), log=tmp_path / "requests.jsonl") as model,
    ):
        env = judge_env(judge.url)
        host = make_home(python, tmp_path, model.url, in_place=False)
        (host.work / "notes.txt").write_text("".join(f"note {i:04d} of the pallets\n" for i in range(600)))
        first = played(host, model, [*FILL, expand(1), {"text": FINAL}], env=env)
        kept = stored(host)
        second = played(
            host, model, [expand(1), {"text": FINAL}], "And the first part?", env=env, resume=first.run.session_id
        )
    for play in (first, second):
        assert_ended_well(play)
        assert_words_kept(play)
        assert_settled(play)
    assert_cut(first)
    call_id = first.last.call_ids[0]
    original = first.originals()[call_id]
    assert opened(first.last, 1) == original
    assert opened(second.last, 1, since=sum(1 for _ in first_pages(first))) == original
    assert stored(host) == kept


def first_pages(play: Play) -> list[str]:
    return [i for i in play.last.call_ids if i in play.last.results and '"next_offset"' in play.last.results[i]]


def test_turns_that_leave_come_back_from_the_hosts_own_export(python: Path, tmp_path: Path) -> None:
    steps = [silent(number, 24_000) for number in range(1, 10)]
    with (
        SystemOneServer(decide=lambda *_: 0.1) as judge,
        ModelServer(Steps([{"text": FINAL}]), log=tmp_path / "requests.jsonl") as model,
    ):
        host = make_home(python, tmp_path, model.url, settings={"removed_calls": "drop"})
        play = played(host, model, [*steps, {"text": FINAL}], env=judge_env(judge.url))
    assert_ended_well(play)
    assert "calls gone" in play.run.log
    assert len(play.last.messages) < 2 + 2 * len(steps)
    assert any("ran next to this one, stored: " in text for text in play.last.results.values())
    back = restored(host, play.run.session_id)
    assert_paired([message for message in back if message["role"] != "session_meta"])
    assert results_of(back) == play.originals()


def inputs_of(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    return [call["function"]["arguments"] for message in messages for call in message.get("tool_calls") or ()]


def test_two_refusals_in_a_row_climb_to_long_inputs(python: Path, tmp_path: Path) -> None:
    """Nothing but inputs fills this window, and the provider counts more than anybody else."""
    refused = {"error": "overflow"}
    steps: list[Step] = [*(long_input(n, 9_000) for n in range(1, 9)), *(long_input(n, 200) for n in range(9, 13))]
    with ModelServer(Steps([{"text": FINAL}]), log=tmp_path / "requests.jsonl") as model:
        host = make_home(python, tmp_path, model.url)
        play = played(host, model, [*steps, refused, refused, {"text": FINAL}])
    assert_ended_well(play, errors=2)
    assert "deep pass: long input" in play.run.log, [line for line in play.run.log.split("\n") if "hermes_jev" in line]
    now = inputs_of(play.last.messages)
    assert all(isinstance(json.loads(text), dict) for text in now)
    assert any('part=\\"arguments\\"' in text for text in now)
    whole = [text for talk in play.talks for text in inputs_of(talk.messages) if "[hermes_jev: " not in text]
    back = inputs_of(restored(host, play.run.session_id))
    assert [json.loads(text) for text in back] == [json.loads(text) for text in dict.fromkeys(whole)]
