"""What the plugin adds beside the engine, inside the real, installed hosts: tool, shell command, slash command, skill.

One run of `hermes chat` a host and engine, shared by the tests that look at what it left.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from host_run import ENGINE, TOOLSETS, HostHome, HostRun, make_home
from hosts import HOSTS, host_python
from model_server import Conversation, ModelServer, Step, Steps

pytestmark = pytest.mark.host

ROOT = Path(__file__).resolve().parent.parent
TOOL = "jev_compact_select"
STOCK = "compressor"
QUERY = "Count the crates and never round a number."


def by_name(name: str, arguments: Mapping[str, Any], talk: Conversation) -> Step:
    """A call of a tool: directly where the host shows it, else as newer hosts have tools of plugins called."""
    if name in talk.tools:
        return Step.from_json({"text": f"I call {name}.", "calls": [{"name": name, "arguments": arguments}]})
    wrapped = {"calls": [{"name": name, "arguments": arguments}]}
    return Step.from_json({"text": f"I call {name}.", "calls": [{"name": "tool_call", "arguments": wrapped}]})


class Script:
    """Steps, of which some are calls by name."""

    def __init__(self, steps: Sequence[Mapping[str, Any]]) -> None:
        self.steps, self.said = list(steps), 0

    def __call__(self, talk: Conversation) -> Step:
        step = self.steps[min(self.said, len(self.steps) - 1)]
        self.said += 1
        if "by_name" in step:
            return by_name(step["by_name"], step["arguments"], talk)
        return Step.from_json(step)


@dataclass(frozen=True)
class Play:
    host: HostHome
    run: HostRun
    last: Conversation

    def reply(self, ordinal: int) -> dict[str, Any]:
        """The JSON object that the call of this ordinal (from 1) got."""
        found = json.loads(self.last.results[self.last.call_ids[ordinal - 1]])
        assert isinstance(found, dict)
        if TOOL not in self.last.tools and isinstance(found.get("results"), list):
            inner = found["results"][0]
            found = inner.get("result", inner)
            found = json.loads(found) if isinstance(found, str) else found
        return dict(found)


def configured(host: HostHome, **more: Any) -> None:
    """Change the host's configuration."""
    file = host.home / "config.yaml"
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), **more}), encoding="utf-8")


def shown(command: str) -> dict[str, Any]:
    return {"text": f"I run {command}.", "calls": [{"name": "terminal", "arguments": {"command": command}}]}


def play(host: HostHome, model: ModelServer, toolsets: str) -> Play:
    run = host.chat(QUERY, toolsets=toolsets)
    assert run.rc == 0, run.stderr[-2_000:]
    assert model.failures == []
    return Play(host, run, model.conversations()[-1])


@pytest.fixture(scope="module", params=[(name, engine) for name in HOSTS for engine in (ENGINE, STOCK)], ids=str)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Play:
    """The agent works, weighs its own session and then a list, and opens the skill."""
    name, engine = request.param
    given = [{"role": "user", "content": f"turn {at}"} for at in range(9)]
    steps = [
        shown("seq 1 40"),
        {"by_name": TOOL, "arguments": {"keep_last": 1, "limit": 3_000}},
        {"by_name": TOOL, "arguments": {"messages": given, "keep_last": 2}},
        {"text": "I read.", "calls": [{"name": "skill_view", "arguments": {"name": "hermes_jev:jev-compaction"}}]},
        {"text": "Done."},
    ]
    with ModelServer(Script(steps)) as model:
        host = make_home(host_python(name), tmp_path_factory.mktemp("turns") / "host", model.url)
        configured(host, context={"engine": engine})
        return play(host, model, f"terminal,skills,{ENGINE}")


def test_the_agent_gets_the_digest_of_its_own_session(played: Play) -> None:
    reply = played.reply(2)
    assert reply["status"] == "ok"
    assert reply["judge"] == "lexical"
    assert QUERY in reply["digest"]
    assert len(reply["digest"]) <= 3_000
    assert sum(reply["counts"].values()) == len(reply["fates"]) >= 4


def test_the_agent_gets_the_digest_of_a_list(played: Play) -> None:
    reply = played.reply(3)
    assert set(reply["fates"]) == {str(at) for at in range(9)}
    assert "[KEEP VERBATIM] user: turn 8" in reply["digest"]


def test_the_host_loads_the_skill(played: Play) -> None:
    content = played.last.results[played.last.call_ids[3]]
    assert "# Shortening a conversation" in content
    assert '"success": true' in content


def hermes(host: HostHome, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(host.python.with_name("hermes")), *arguments]
    return subprocess.run(
        command, cwd=host.work, env=host.environment(), capture_output=True, encoding="utf-8", timeout=90, check=False
    )


def test_hermes_jev_is_the_same_command_line(played: Play) -> None:
    configured(played.host, plugins={"enabled": [ENGINE], "entries": {ENGINE: {"settings": {"trigger_percent": 0.7}}}})
    helped = hermes(played.host, "jev", "--help")
    assert helped.returncode == 0
    assert all(word in helped.stdout for word in ("compact-select", "restore", "handoff", "usage: hermes jev"))
    for used, wanted in (("130000", "no"), ("150000", "compact"), ("190000", "urgent")):
        said = hermes(played.host, "jev", "should-compact", used, "200000")
        assert (said.returncode, said.stdout.strip()) == (0, wanted), said.stderr
    asked = hermes(played.host, "jev", "handoff", "--session", played.run.session_id)
    assert asked.returncode == 0, asked.stderr
    assert QUERY in asked.stdout
    refused = hermes(played.host, "jev", "expand", "nothing-like-it")
    assert refused.returncode in (1, 2)
    assert refused.stderr.startswith("jev: ")


SLASH = """
import sys
from hermes_cli.plugins import discover_plugins, get_plugin_command_handler, resolve_plugin_command_result
discover_plugins()
handler = get_plugin_command_handler("jev")
for raw in sys.argv[1:]:
    print(resolve_plugin_command_result(handler(raw)), end="\\n====\\n")
"""


def test_slash_jev_answers_and_the_hosts_model_writes_the_handoff(played: Play, tmp_path: Path) -> None:
    with ModelServer(Steps([{"text": "unused"}])) as model:
        configured(played.host, model={**json.loads((played.host.home / "config.yaml").read_text())["model"],
                                       "base_url": model.url})  # fmt: skip
        script = tmp_path / "slash.py"
        script.write_text(SLASH)
        named = f"handoff {played.run.session_id}"
        command = [str(played.host.python), str(script), "", "keep r-aaaaaaaaaa", "handoff", named]
        done = subprocess.run(command, cwd=played.host.work, env=played.host.environment(), capture_output=True,
                              encoding="utf-8", timeout=120, check=False)  # fmt: skip
        asked = [body["messages"][-1]["content"] for body in model.errands]
    assert done.returncode == 0, done.stderr[-2_000:]
    status, keep, unnamed, written = done.stdout.split("\n====\n")[:4]
    assert "hermes_jev: active" in status
    assert "/jev keep: " in keep
    assert "/jev handoff SESSION" in unnamed
    assert written == "A short answer."
    assert any(QUERY in text and "## Working on" in text for text in asked)


@pytest.mark.parametrize("name", list(HOSTS))
def test_the_hosts_scanner_lets_the_skill_in_as_a_community_skill(name: str, tmp_path: Path) -> None:
    script = tmp_path / "scan.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom tools.skills_guard import *\n"
        "found = scan_skill(Path(sys.argv[1]), source='community')\n"
        "print(format_scan_report(found))\nallowed, why = should_allow_install(found)\n"
        "sys.exit(0 if allowed is True and not found.findings else 1)\n"
    )
    shutil.copytree(ROOT / "skills" / "jev-compaction", tmp_path / "jev-compaction")
    command = [str(host_python(name)), str(script), str(tmp_path / "jev-compaction")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2_000:]


@pytest.mark.parametrize("name", list(HOSTS))
def test_a_rotated_session_is_read_too(name: str, tmp_path: Path) -> None:
    """With rotation the session goes on under another id; both are in the host's history."""
    rows = "'record %d-%04d lot %06d' % ({n}, i, i * 7919 % 999983)"
    fill = [
        shown(f'python3 -c "for i in range(1100): print({rows.format(n=n)})"') for n in range(1, 8)
    ]  # about 27,000 characters each
    steps = [*fill, {"by_name": TOOL, "arguments": {"keep_last": 1, "limit": 9_000}}, {"text": "Done."}]
    with ModelServer(Script(steps)) as model:
        host = make_home(host_python(name), tmp_path / "host", model.url)
        configured(host, compression={"enabled": True, "in_place": False})
        found = play(host, model, f"{TOOLSETS},{ENGINE}")
    assert "hermes_jev: compacted" in found.run.log
    reply = found.reply(8)
    assert reply["status"] == "ok"
    assert len(reply["fates"]) >= 15
    with closing(sqlite3.connect(host.state_db)) as connection:
        rotated = connection.execute(
            "SELECT id, parent_session_id FROM sessions WHERE parent_session_id IS NOT NULL"
        ).fetchall()
    assert rotated
    for session in {name for row in rotated for name in row}:
        asked = hermes(host, "jev", "handoff", "--session", session)
        assert asked.returncode == 0, asked.stderr
        assert QUERY in asked.stdout
