"""Every way a session lives, in each installed host, by its own classes; the scenarios are in lives_script.py."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from host_run import CLOSED, make_home
from hosts import HOSTS, host_python

SCRIPT = Path(__file__).with_name("lives_script.py")
HELPERS = ("resumed", "resumed_elsewhere")
SOURCE = SCRIPT.read_text(encoding="utf-8").partition("# --- scenarios")[2]
SCENARIOS = [name for name in re.findall(r"^def (\w+)\(\) -> None:", SOURCE, re.MULTILINE) if name not in HELPERS]


@pytest.mark.host
@pytest.mark.parametrize("host", sorted(HOSTS))
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_life(host: str, scenario: str, tmp_path: Path) -> None:
    """Each scenario ends without a traceback."""
    python = host_python(host)
    home = make_home(python, tmp_path, CLOSED + "/v1")
    file = home.home / "config.yaml"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["auxiliary"] = {"compression": {"context_length": 131_072}}
    file.write_text(json.dumps(config), encoding="utf-8")
    done = subprocess.run(
        [str(python), str(SCRIPT), scenario],
        cwd=home.work,
        env={
            "HERMES_HOME": str(home.home),
            "HOME": str(tmp_path / "user"),
            "PATH": "/usr/bin:/bin",
            "HTTPS_PROXY": CLOSED,
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1_000:] + done.stderr[-3_000:]
