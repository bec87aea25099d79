"""The engine against each host's own classes; the checks are in engine_script.py."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hosts import HOSTS, host_python

SCRIPT = Path(__file__).with_name("engine_script.py")
CHECKS = re.findall(r"^def (\w+)\(\) -> None:", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.host
@pytest.mark.parametrize("host", sorted(HOSTS))
@pytest.mark.parametrize("check", CHECKS)
def test_engine(host: str, check: str, tmp_path: Path) -> None:
    """Each check ends without a traceback."""
    environment = {"HERMES_HOME": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    command = [str(host_python(host)), str(SCRIPT), check]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
