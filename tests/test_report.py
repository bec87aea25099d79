"""The page about passes: whole in itself, without content, and in a real browser it decides again as `jev replay`."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from builders import ByOrdinal, session

from hermes_jev.cli import main
from hermes_jev.prune import prune
from hermes_jev.receipts import Receipt
from hermes_jev.replay import decide_again
from hermes_jev.report import page
from hermes_jev.settings import Settings
from hermes_jev.store import Store

CHROMIUM = shutil.which("chromium")


def a_pass(folder: Path, tool: str = "terminal") -> Receipt:
    judge = ByOrdinal({1: (1.0, 0.1), 2: (0.2, 0.2), 3: (1.0, 0.4), 4: (1.0, 0.6)}, (None, None))
    return prune(session(6, tool=tool), judge, Store(folder), Settings(pin_last_calls=0)).receipt


def test_the_page_needs_nothing_and_says_nothing_of_the_content(tmp_path: Path) -> None:
    shown = page([a_pass(tmp_path)])
    assert not re.search(r"(?:src|href)\s*=|url\(|@import|https?://", shown)
    assert "line 0" not in shown


def test_what_a_tool_is_called_cannot_leave_its_place(tmp_path: Path) -> None:
    shown = page([a_pass(tmp_path, tool="</script><script>alert(1)</script>")], title="<b>")
    assert "<script>alert" not in shown
    assert shown.count("</script>") == 2
    assert "<title>&lt;b&gt;</title>" in shown


def test_jev_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_pass(tmp_path / "store")
    file = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "store"), "--output", str(file)]) == 0
    assert file.read_text().startswith("<!doctype html>")
    assert main(["report", str(tmp_path / "store")]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")
    Store(tmp_path / "empty").verdicts([])
    (tmp_path / "none.jsonl").write_text("")
    assert main(["report", str(tmp_path / "none.jsonl")]) == 1


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("threshold", [None, 0.15, 0.5, 0.95])
def test_in_a_browser_the_slider_decides_as_replay_does(tmp_path: Path, threshold: float | None) -> None:
    receipt = a_pass(tmp_path / "store")
    shown = page([receipt])
    if threshold is not None:
        # What a hand on the slider does: move it, and let the page hear of it.
        move = f'slider.value = "{threshold}"; slider.dispatchEvent(new Event("input"));\n</script>\n</body>'
        shown = shown.replace("</script>\n</body>", move)
    file = tmp_path / "page.html"
    file.write_text(shown, encoding="utf-8")
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path}/profile",
            "--dump-dom",
            file.as_uri(),
        ],
        capture_output=True,
        timeout=60,
        check=True,
    )
    dom = html.unescape(done.stdout.decode())
    again = decide_again(receipt, receipt.output_threshold if threshold is None else threshold)
    said = re.search(r'<p id="sums"[^>]*>([^<]*)</p>', dom)
    assert said is not None
    assert said[1].startswith(
        f"{again.size_before:,} → {again.size_after:,} characters of tool output; {again.kept} kept, "
        f"{again.shortened} shortened, {again.removed} removed; {again.changed} decided otherwise than then."
    )
    assert dom.count("<tr") == 1 + len(receipt.decisions)
