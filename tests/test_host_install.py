"""The ways to install, each up to the running engine, in the installed hosts: a git clone by the host, a
copied folder, and pip with the entry point."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from host_run import CHECKOUT, ENGINE, HostHome, HostRun, install, make_home
from hosts import HOSTS, ROOT, host_python
from model_server import ModelServer, Steps
from test_host_e2e import FINAL, QUERY

pytestmark = pytest.mark.host

DOWNLOAD = "download"
"""Hosts from 0.22 on build a Python environment of their own before they publish or enable a plugin."""


def home(host: str, folder: Path, model: ModelServer) -> HostHome:
    """A home as a new user has it: a model, and nothing about plugins or engines."""
    return make_home(host_python(host), folder, model.url, plugin=None)


def clone(folder: Path) -> Path:
    """The project as `git clone` gives it, as it stands now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "as it stands"]):
        subprocess.run([*git, *command], cwd=folder, check=True, capture_output=True)
    return folder


def enable(host: str, made: HostHome, env: Mapping[str, str] | None = None) -> None:
    """As the README says."""
    if host == "0.19":
        done = made.hermes("plugins", "enable", ENGINE, "--no-allow-tool-override", env=env)
    else:
        done = made.hermes("config", "set", "plugins.enabled", f'["{ENGINE}"]', env=env)
    assert done.rc == 0, done.stdout + done.stderr


def runs(made: HostHome, env: Mapping[str, str] | None = None) -> HostRun:
    """Select the engine and talk: it runs, and says so once."""
    done = made.hermes("config", "set", "context.engine", ENGINE, env=env)
    assert done.rc == 0, done.stdout + done.stderr
    run = made.chat(QUERY, env=env)
    assert FINAL in run.stdout, run.stdout + run.stderr
    assert "falling back" not in run.log
    assert len(re.findall(r"hermes_jev: active; window 65,536 tokens, judge lexical", run.log)) == 1
    return run


@pytest.fixture
def model() -> ModelServer:
    return ModelServer(Steps([{"text": FINAL}]))


@pytest.mark.parametrize("host", list(HOSTS))
def test_a_copied_folder(host: str, model: ModelServer, tmp_path: Path) -> None:
    with model:
        made = home(host, tmp_path, model)
        install(ROOT, made.home / "plugins" / ENGINE)
        enable(host, made)
        runs(made)


@pytest.mark.parametrize("host", list(HOSTS))
def test_a_git_clone_by_the_hosts_own_command(host: str, model: ModelServer, tmp_path: Path) -> None:
    repository = clone(tmp_path / "repository")
    with model:
        made = home(host, tmp_path, model)
        done = made.hermes("plugins", "install", f"file://{repository}", "--no-enable")
        said = " ".join((done.stdout + done.stderr).split())
        assert "scan blocked" not in said, said[-2_000:]
        if not (made.home / "plugins" / ENGINE).is_dir():
            assert host != "0.19", said[-2_000:]
            assert DOWNLOAD in said, said[-2_000:]
            pytest.skip("this host downloads a Python before it publishes a plugin, and cannot here")
        enable(host, made)
        runs(made)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install` of the project puts beside the host's own packages, in a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"the project cannot be built here: {done.stderr.strip()[-200:]}")
    return target


@pytest.mark.parametrize("host", list(HOSTS))
def test_pip_with_the_entry_point(host: str, installed: Path, model: ModelServer, tmp_path: Path) -> None:
    env = {"PYTHONPATH": str(installed)}
    with model:
        made = home(host, tmp_path, model)
        enable(host, made, env)
        runs(made, env)
        assert not (made.home / "plugins" / ENGINE).exists()


@pytest.mark.parametrize("host", list(HOSTS))
@pytest.mark.parametrize("wrong", ["not enabled", "another case", "another engine first"])
def test_a_fallback_leaves_a_trace_in_the_log(host: str, wrong: str, model: ModelServer, tmp_path: Path) -> None:
    """The host goes on with its own engine and says so in the log; that is what the README tells to look for."""
    with model:
        made = make_home(host_python(host), tmp_path, model.url)
        if wrong == "not enabled":
            made.hermes("config", "set", "plugins.enabled", "[]")
        elif wrong == "another case":
            made.hermes("config", "set", "context.engine", "Hermes_Jev")
        else:
            other = made.home / "plugins" / "aaa_other"
            other.mkdir(parents=True)
            (other / "plugin.yaml").write_text("name: aaa_other\nkind: standalone\nversion: 0.1.0\n", encoding="utf-8")
            (other / "__init__.py").write_text(OTHER_ENGINE, encoding="utf-8")
            made.hermes("config", "set", "plugins.enabled", f'["aaa_other", "{ENGINE}"]')
        run = made.chat(QUERY)
    assert FINAL in run.stdout
    assert "falling back to built-in compressor" in run.log
    assert "hermes_jev: active" not in run.log


OTHER_ENGINE = """
from agent.context_engine import ContextEngine


class Other(ContextEngine):
    name = "other"

    def update_from_response(self, usage):
        pass

    def should_compress(self, prompt_tokens=None):
        return False

    def compress(self, messages, current_tokens=None, **more):
        return messages


def register(ctx):
    ctx.register_context_engine(Other())
"""


def test_what_is_copied_is_what_the_project_has() -> None:
    assert {name for name in CHECKOUT if (ROOT / name).exists()} >= {"__init__.py", "plugin.yaml", ENGINE}
