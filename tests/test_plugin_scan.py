"""The repository passes the scan with which newer hosts look at a plugin before they install it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hosts import host_python

ROOT = Path(__file__).resolve().parent.parent

SCAN = """
import sys
from pathlib import Path
from tools.plugin_guard import format_scan_report, scan_plugin, should_allow_plugin_install
found = scan_plugin(Path(sys.argv[1]))
allowed, why = should_allow_plugin_install(found)
print(format_scan_report(found))
sys.exit(0 if allowed is True else 1)
"""


@pytest.mark.host
def test_the_scan_before_an_installation_asks_nothing(tmp_path: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("no git here, so what would be cloned is not known")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / "plugin" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "plugin" / name)
    command = [str(host_python("0.22")), "-c", SCAN, str(tmp_path / "plugin")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[:3_000] + done.stderr[-3_000:]
    assert "SAFE" in done.stdout
