"""`jev doctor` beside the real, installed hosts: each way in which a host does without the engine is made to happen,
the host really does without it, and doctor says why and exits with 1."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from host_run import TOOLSETS, HostHome, HostRun, make_home
from hosts import HOSTS, ROOT, host_python
from model_server import ModelServer, Steps

pytestmark = pytest.mark.host

FELL_BACK = "falling back to built-in compressor"
ACTIVE = "hermes_jev: active;"

OTHER = """
from agent.context_engine import ContextEngine

class Other(ContextEngine):
    name = "other_engine"
    def update_from_response(self, usage): pass
    def should_compress(self, prompt_tokens=None): return False
    def compress(self, messages, current_tokens=None, focus_topic=None, force=False): return messages

def register(ctx):
    ctx.register_context_engine(Other())
"""


@pytest.fixture(scope="module", params=list(HOSTS))
def python(request: pytest.FixtureRequest) -> Path:
    return host_python(request.param)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(Steps([{"text": "Done."}])) as running:
        yield running


@pytest.fixture
def host(python: Path, tmp_path: Path, model: ModelServer) -> HostHome:
    return make_home(python, tmp_path, model.url)


def configure(host: HostHome, **parts: Any) -> None:
    file = host.home / "config.yaml"
    config = json.loads(file.read_text(encoding="utf-8"))
    for name, value in parts.items():
        given = config.get(name)
        config[name] = {**given, **value} if isinstance(given, dict) else value
    file.write_text(json.dumps(config), encoding="utf-8")


def doctor(host: HostHome, *arguments: str, **environment: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report, by a Python without the host, which finds the host's own by the command `hermes`."""
    path = os.pathsep.join([str(host.python.parent), "/usr/bin", "/bin"])
    done = subprocess.run(
        [sys.executable, "-m", "hermes_jev.cli", "doctor", "--json", *arguments],
        cwd=ROOT,
        env={"PATH": path, "HOME": str(host.folder / "user"), "HERMES_HOME": str(host.home), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def codes(report: Mapping[str, Any], level: str = "problem") -> set[str]:
    return {finding["code"] for finding in report["findings"] if finding["level"] == level}


# --- situations -------------------------------------------------------------------------------------------------------


def not_enabled(host: HostHome) -> None:
    configure(host, plugins={"enabled": []})


def disabled(host: HostHome) -> None:
    configure(host, plugins={"disabled": ["hermes_jev"]})


def wrong_case(host: HostHome) -> None:
    configure(host, context={"engine": "Hermes_Jev"})


def another_first(host: HostHome) -> None:
    folder = host.home / "plugins" / "a_engine"
    folder.mkdir()
    (folder / "plugin.yaml").write_text("name: a_engine\nkind: standalone\nversion: 1.0.0\n", encoding="utf-8")
    (folder / "__init__.py").write_text(OTHER, encoding="utf-8")
    configure(host, plugins={"enabled": ["a_engine", "hermes_jev"]})


def no_folder(host: HostHome) -> None:
    shutil.rmtree(host.home / "plugins" / "hermes_jev")


def half_a_copy(host: HostHome) -> None:
    shutil.rmtree(host.home / "plugins" / "hermes_jev" / "hermes_jev")


def missing_dependency(host: HostHome) -> None:
    file = host.home / "plugins" / "hermes_jev" / "hermes_jev" / "errors.py"
    file.write_text(f"import a_package_that_is_not_there\n{file.read_text(encoding='utf-8')}", encoding="utf-8")


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (not_enabled, "not_enabled"),
        (disabled, "disabled"),
        (wrong_case, "wrong_case"),
        (another_first, "another_first"),
        (no_folder, "not_loaded"),
        (half_a_copy, "incomplete"),
        (missing_dependency, "broken"),
    ],
)
def test_each_silent_fall_back_is_found(host: HostHome, make: Callable[[HostHome], None], code: str) -> None:
    make(host)

    run = host.chat("Say something.")
    rc, report = doctor(host)

    assert "Done." in run.stdout
    assert FELL_BACK in run.log
    assert ACTIVE not in run.log
    assert rc == 1
    assert not report["healthy"]
    assert {code, "fell_back"} <= codes(report)
    assert codes(report) <= {code, "fell_back", "broken"}
    assert "runs" not in codes(report, "ok")


def test_another_engine_chosen_needs_no_fall_back(host: HostHome) -> None:
    configure(host, context={"engine": "compressor"})

    run = host.chat("Say something.")
    rc, report = doctor(host)

    assert ACTIVE not in run.log
    assert (rc, codes(report)) == (1, {"not_selected"})


def test_a_host_that_runs_the_engine_is_healthy(host: HostHome) -> None:
    assert codes(doctor(host)[1], "note") == {"no_key", "auxiliary_probed", "no_log"}

    run = host.chat("Say something.")
    rc, report = doctor(host)

    assert ACTIVE in run.log
    assert rc == 0
    assert report["healthy"]
    assert {"runs", "ran", "tools", "version", "home"} <= codes(report, "ok")


def test_what_was_mended_is_history(host: HostHome) -> None:
    not_enabled(host)
    host.chat("Say something.")
    configure(host, plugins={"enabled": ["hermes_jev"]})

    rc, report = doctor(host)

    assert rc == 0
    assert "fell_back" in codes(report, "note")


def test_asking_the_host_leaves_nothing_in_its_home(host: HostHome) -> None:
    before = sorted(host.home.rglob("*"))

    doctor(host, "--probe")

    assert sorted(host.home.rglob("*")) == before


# --- what keeps a running engine from its work ------------------------------------------------------------------------


def fill(number: int) -> dict[str, Any]:
    command = f"python3 -c \"for i in range(700): print('record {number}-%04d of the shipment list' % i)\""
    return {"text": f"Part {number}.", "calls": [{"name": "terminal", "arguments": {"command": command}}]}


def run_until_full(host: HostHome, model: ModelServer) -> HostRun:
    model.script = Steps([*(fill(number) for number in range(1, 9)), {"text": "Done."}])
    return host.chat("Go through the records.")


def test_compression_switched_off(host: HostHome, model: ModelServer) -> None:
    configure(host, compression={"enabled": False})

    run = run_until_full(host, model)
    rc, report = doctor(host)

    assert ACTIVE in run.log
    assert "hermes_jev: compacted" not in run.log
    assert (rc, codes(report)) == (1, {"compression_off"})


def test_with_compression_on_the_same_session_is_compacted(host: HostHome, model: ModelServer) -> None:
    run = run_until_full(host, model)
    rc, report = doctor(host)

    assert "hermes_jev: compacted" in run.log
    assert rc == 0
    assert any("hermes_jev: compacted" in finding["text"] for finding in report["findings"])


def test_an_auxiliary_model_that_is_too_small_ends_the_turn(host: HostHome, model: ModelServer) -> None:
    configure(host, auxiliary={"compression": {"context_length": 32_000}})

    run = run_until_full(host, model)
    rc, report = doctor(host)

    assert "hermes_jev: compacted" not in run.log
    assert "Auxiliary compression model" in run.stdout + run.stderr + run.log
    assert rc == 1
    assert codes(report) == {"auxiliary_small", "compaction_lost"}


def test_a_window_below_the_hosts_minimum(python: Path, tmp_path: Path, model: ModelServer) -> None:
    host = make_home(python, tmp_path, model.url, context_length=32_000)

    run = host.chat("Say something.")
    rc, report = doctor(host)

    assert run.rc != 0
    assert "Done." not in run.stdout
    assert rc == 1
    assert "window_small" in codes(report)


@pytest.mark.parametrize(
    "parts", [{"agent": {"disabled_toolsets": ["context_engine"]}}, {"platform_toolsets": {"cli": []}}]
)
def test_a_config_that_hides_the_tools(host: HostHome, model: ModelServer, parts: dict[str, Any]) -> None:
    configure(host, **parts)

    run = host.chat("Say something.", toolsets=None)
    rc, report = doctor(host)

    assert ACTIVE in run.log
    assert all("expand" not in talk.tools for talk in model.conversations())
    assert (rc, codes(report)) == (1, {"tools_hidden"})
    assert "tools_were_hidden" in codes(report, "note")


def test_a_command_line_that_hides_the_tools(host: HostHome, model: ModelServer) -> None:
    host.chat("Say something.", toolsets="terminal")
    rc, hidden = doctor(host)
    host.chat("Say something.", toolsets=TOOLSETS)
    _, offered = doctor(host)

    assert ["expand" in talk.tools for talk in model.conversations()] == [False, True]
    assert rc == 0
    assert "tools_were_hidden" in codes(hidden, "note")
    assert "tools_were_hidden" not in codes(offered, "note")
    assert "tools" in codes(offered, "ok")


# --- Hermes' own Python -----------------------------------------------------------------------------------------------


def test_yaml_is_read_by_hermes_own_python(host: HostHome) -> None:
    text = """
model: {default: m, provider: custom, base_url: "http://127.0.0.1:9/v1", api_key: sk-local-secret-value-0123456789}
context:
  engine: hermes_jev   # exactly so
plugins:
  enabled: [hermes_jev]
  entries:
    hermes_jev:
      settings: {trigger_percent: 0.7, endpoint: nowhere}
"""
    (host.home / "config.yaml").write_text(text, encoding="utf-8")
    (host.home / ".env").write_text("export HERMES_JEV_JUDGE='lexical'\n", encoding="utf-8")

    rc, report = doctor(host)

    assert codes(report) == {"refused"}
    assert rc == 1
    assert report["settings"]["trigger_percent"] == {"value": 0.7, "origin": "config.yaml"}
    assert report["settings"]["judge"] == {"value": "lexical", "origin": "environment"}
    assert "sk-local" not in json.dumps(report)

    (host.home / "config.yaml").write_text(text.replace("[hermes_jev]", "[hermes_jev"), encoding="utf-8")
    rc, report = doctor(host)
    assert (rc, codes(report)) == (1, {"config_unread"})
    assert "not YAML near line" in json.dumps(report)
    assert "sk-local" not in json.dumps(report)


def test_inside_hermes_own_python_it_needs_no_command(host: HostHome) -> None:
    done = subprocess.run(
        [str(host.python), "-m", "hermes_jev.cli", "doctor", "--json"],
        cwd=host.home / "plugins" / "hermes_jev",
        env={"PATH": "/usr/bin:/bin", "HOME": str(host.folder / "user"), "HERMES_HOME": str(host.home)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs" in codes(json.loads(done.stdout), "ok")
