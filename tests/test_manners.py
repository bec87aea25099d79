"""The command line among other programs: pipes that end, Ctrl-C, terminals, other encodings, large inputs."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

JEV = [sys.executable, "-m", "hermes_jev.cli"]
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """What a shell starts in the background ignores it, and hands that down."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HERMES", "TYPESAFE", "JEV"))}
    return {**kept, "HOME": str(home), "HERMES_HOME": str(home / "hermes"), "HERMES_JEV_JUDGE": "lexical", **more}


def talk(count: int, chars: int = 300) -> list[dict[str, Any]]:
    return [
        {"role": "user" if at % 3 else "assistant", "content": f"turn {at} ".ljust(chars, "ä")} for at in range(count)
    ]


def saved(folder: Path, messages: list[Any]) -> Path:
    file = folder / "session.json"
    file.write_text(json.dumps(messages), encoding="utf-8")
    return file


def test_a_pipe_that_ends_is_quiet(tmp_path: Path) -> None:
    file = saved(tmp_path, talk(2_000))
    with subprocess.Popen(
        [*JEV, "compact", str(file)], env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        err = run.stderr.read().decode()
    assert run.returncode == 0
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


def test_twenty_megabytes_on_stdin_and_any_locale(tmp_path: Path) -> None:
    messages = talk(5_000, 2_100)
    data = json.dumps(messages, ensure_ascii=False).encode()
    assert len(data) >= 20_000_000
    done = subprocess.run(
        [*JEV, "compact-select", "--digest", "--limit", "5000"],
        env=environment(tmp_path, LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
        input=data,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    digest = done.stdout.decode("utf-8")
    assert 0 < len(digest) <= 5_001
    assert "ää" in digest
    assert b"\x1b" not in done.stderr, "no bar where there is no terminal"


def shown_until(terminal: int, wanted: bytes) -> bytes:
    """What a program writes to its terminal until these bytes come, or it ends."""
    seen = b""
    while wanted not in seen:
        assert select.select([terminal], [], [], PATIENCE_S)[0], seen
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # the other side closed its end
            break
        if not part:
            break
        seen += part
    return seen


@pytest.fixture
def large(tmp_path: Path) -> Path:
    return saved(tmp_path, talk(12_000, 600))


@pytest.mark.parametrize("target", ["--output", ">"])
def test_a_bar_on_a_terminal_and_ctrl_c_leaves_nothing_half_written(target: str, large: Path, tmp_path: Path) -> None:
    """The bar is seen, then comes Ctrl-C."""
    ours, theirs = pty.openpty()
    out = tmp_path / "smaller.json"
    command = [*JEV, "compact", str(large), "--target-bytes", "100000"]
    with (tmp_path / "stdout").open("wb") as stdout:
        run = subprocess.Popen(
            [*command, "--output", str(out)] if target == "--output" else command,
            env=environment(tmp_path, TERM="xterm"),
            stdout=stdout,
            stderr=theirs,
        )
        os.close(theirs)
        seen = shown_until(ours, b"scoring")
        assert b"scoring" in seen
        run.send_signal(signal.SIGINT)
        seen += shown_until(ours, b"\0 the end, never written")
        code = run.wait(PATIENCE_S)
    os.close(ours)
    assert code == 130
    assert b"Traceback" not in seen
    assert (tmp_path / "stdout").read_bytes() == b""
    assert not out.exists()
    assert not list(tmp_path.glob(".*.part"))


def test_ctrl_c_while_it_waits_for_its_input_is_quiet(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*JEV, "compact", "-"],
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stderr is not None
        # More than a pipe holds: written to the end only once somebody reads.
        run.stdin.write(b"[" + b" " * 1_000_000)
        run.stdin.flush()
        for _ in range(20):
            run.send_signal(signal.SIGINT)
            if select.select([run.stdout], [], [], 3.0)[0]:
                break
        out, err = run.stdout.read(), run.stderr.read()
        assert run.wait(PATIENCE_S) == 130
    assert (out, err) == (b"", b"")


def test_a_finished_run_shows_its_result_and_one_line(tmp_path: Path) -> None:
    file = saved(tmp_path, talk(50))
    done = subprocess.run(
        [*JEV, "compact", str(file), "--target-bytes", "8000"],
        env=environment(tmp_path),
        capture_output=True,
        check=True,
    )
    assert isinstance(json.loads(done.stdout), list)
    assert done.stderr.count(b"\n") == 1
