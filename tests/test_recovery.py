"""What was cut is found again on the public transcripts: a query of the words that a later step really used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
KIT = ROOT.parent / "shared" / "evaldata"
SCRIPT = ROOT / "benchmarks" / "recovery.py"


def test_a_query_of_a_later_steps_words_recovers_what_it_needs() -> None:
    if not (KIT / "needed.py").is_file():
        if os.environ.get("CI") == "true":
            pytest.fail("no evaluation data")
        pytest.skip("no evaluation data beside the checkout")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--cuts", ".6"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("| all |")]
    needs, plain_four, _, four, reply, expand = (float(cell.rstrip(" %")) for cell in row.split("|")[2:-1])
    assert needs >= 30
    assert four >= 90
    assert four > plain_four
    assert reply >= 70
    assert expand >= 90
