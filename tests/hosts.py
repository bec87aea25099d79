"""Where the installed Hermes hosts are.

Each host lives in a venv of its own, because its pins differ from the project's. A test that needs one asks for it by
its release line; without the venv it is skipped, and fails where CI promises to have built it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

_VARIABLES = {"0.19": "HERMES_JEV_HOST_019", "0.22": "HERMES_JEV_HOST_022"}


def _python(name: str) -> Path:
    named = os.environ.get(_VARIABLES[name])
    return Path(named) if named else ROOT / f".venv-host-{name}" / "bin" / "python"


HOSTS: dict[str, Path] = {name: _python(name) for name in _VARIABLES}
"""Release line of the host → the python of its venv, whether or not that is there."""


def host_python(name: str) -> Path:
    """The python of a host's venv. Skips the test when it is missing; fails it under CI."""
    python = HOSTS[name]
    if python.exists():
        return python
    message = f"no Hermes {name} host: set {_VARIABLES[name]} or run `make test`"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)
