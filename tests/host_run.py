"""Start a real, installed Hermes with the plugin in a fresh home, and read back what it left.

The plugin is installed the way `hermes plugins install` leaves it: a copy of the checkout's loadable files under
`$HERMES_HOME/plugins/hermes_jev`. Nothing is pip-installed into the host, nothing of the caller's environment reaches
it, and all that is not loopback is sent to a closed port.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from hosts import ROOT

ENGINE = "hermes_jev"
CHECKOUT = ("__init__.py", "plugin.yaml", "skills", ENGINE)
TOOLSETS = "terminal,file,context_engine"
CLOSED = "http://127.0.0.1:9"
"""Loopback, discard port: nothing listens, a connection is refused at once."""

_SESSION = re.compile(r"^session_id: (\S+)$", re.MULTILINE)


class Row(NamedTuple):
    """One row of the host's `messages` table."""

    role: str
    content: str
    tool_call_id: str | None
    active: bool


@dataclass(frozen=True, slots=True)
class HostRun:
    """One finished host process; `log` is what this run added to agent.log."""

    rc: int
    stdout: str
    stderr: str
    log: str
    session_id: str


@dataclass(frozen=True, slots=True)
class HostHome:
    """A HERMES_HOME with the plugin in it, a working folder beside it, and the host that uses both."""

    python: Path
    folder: Path

    @property
    def home(self) -> Path:
        """HERMES_HOME."""
        return self.folder / "home"

    @property
    def work(self) -> Path:
        """The folder the agent works in."""
        return self.folder / "work"

    @property
    def state_db(self) -> Path:
        """The host's own store of messages."""
        return self.home / "state.db"

    def chat(
        self,
        query: str,
        *,
        env: Mapping[str, str] | None = None,
        resume: str | None = None,
        toolsets: str | None = TOOLSETS,
        timeout_s: float = 90.0,
    ) -> HostRun:
        """Run `hermes chat -q`, to the end or to a subprocess.TimeoutExpired. Without `toolsets` the host chooses."""
        command = ["chat"]
        command += ["--resume", resume] if resume else []
        command += ["-q", query, "-Q", "--yolo"]
        command += ["-t", toolsets] if toolsets else []
        run = self.hermes(*command, env=env, timeout_s=timeout_s)
        found = _SESSION.search(run.stderr)
        return replace(run, session_id=found[1] if found else "")

    def hermes(self, *arguments: str, env: Mapping[str, str] | None = None, timeout_s: float = 120.0) -> HostRun:
        """Run one of the host's commands with nobody at the keyboard."""
        before = len(self.log())
        done = subprocess.run(
            [str(self.python.with_name("hermes")), *arguments],
            cwd=self.work,
            env={**self.environment(), **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
        return HostRun(done.returncode, done.stdout, done.stderr, self.log()[before:], "")

    def log(self) -> str:
        """All of agent.log."""
        file = self.home / "logs" / "agent.log"
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def rows(self, session_id: str) -> list[Row]:
        """The rows the host stored for a session, archived ones included, in order."""
        connection = sqlite3.connect(f"file:{self.state_db}?mode=ro", uri=True)
        try:
            found = connection.execute(
                "SELECT role, content, tool_call_id, active FROM messages WHERE session_id = ? ORDER BY id",
                (session_id,),
            ).fetchall()
        finally:
            connection.close()
        return [Row(role, content or "", call_id, bool(active)) for role, content, call_id, active in found]

    def environment(self) -> dict[str, str]:
        """What a host process is given."""
        return {
            "PATH": os.pathsep.join([str(self.python.parent), "/usr/local/bin", "/usr/bin", "/bin"]),
            "HOME": str(self.folder / "user"),
            "HERMES_HOME": str(self.home),
            "LANG": "C.UTF-8",
            "HTTPS_PROXY": CLOSED,
            "NO_PROXY": "127.0.0.1,localhost",
        }


def make_home(
    python: Path,
    folder: Path,
    model_url: str,
    *,
    plugin: Path | None = ROOT,
    engine: str = ENGINE,
    context_length: int = 65_536,
    in_place: bool = True,
    settings: Mapping[str, Any] | None = None,
) -> HostHome:
    """Build a fresh home in `folder`; `plugin` is a checkout, or None for a host without plugins."""
    host = HostHome(python, folder)
    for part in (host.home, host.work, folder / "user"):
        part.mkdir(parents=True)
    if plugin is not None:
        install(plugin, host.home / "plugins" / engine)
    plugins = {"enabled": [engine], "entries": {engine: {"settings": dict(settings or {})}}}
    chosen = {"context": {"engine": engine}, "plugins": plugins} if plugin else {}
    config: dict[str, Any] = {
        "model": {
            "default": "scripted-model",
            "provider": "custom",
            "base_url": model_url,
            "api_key": "sk-local",
            "context_length": context_length,
        },
        "compression": {"enabled": True, "in_place": in_place},
        "security": {"tirith_enabled": False},
        **chosen,
    }
    # JSON is YAML, and needs no quoting rules of its own.
    (host.home / "config.yaml").write_text(json.dumps(config, indent=1), encoding="utf-8")
    return host


def install(checkout: Path, target: Path) -> None:
    """Copy what the host loads of a checkout."""
    target.mkdir(parents=True)
    skip = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in CHECKOUT:
        part = checkout / name
        if part.is_dir():
            shutil.copytree(part, target / name, ignore=skip)
        elif part.exists():
            shutil.copy2(part, target / name)
