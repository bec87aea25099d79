"""The command line: results on stdout, everything else on stderr, and exit codes to rely on."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from builders import GOAL, assistant, call, pair, result, session, text, user
from system_one_server import SystemOneServer

from hermes_jev import __version__, cli
from hermes_jev.inputs import read_document
from hermes_jev.store import Store

ROOT = Path(__file__).resolve().parent.parent
ALL = ("--set", "pin_last_calls=0", "--judge", "lexical")
CUT = (*ALL, "--set", "output_threshold=1", "--set", "call_threshold=1")
"""Flags with which every result over 1,500 characters is removed."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and nothing of this process' settings and keys."""
    for name in list(os.environ):
        if name.startswith(("HERMES_", "TYPESAFE_", "JEV_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def jev(
    *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "hermes_jev.cli", *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, **(env or {})},
        timeout=60,
        check=False,
    )


def test_processes_share_what_is_known_of_a_service(tmp_path: Path) -> None:
    """Three that found it down, and the fourth does not ask: the lexical judge answers."""
    with SystemOneServer(key="apikey_other") as server:
        env = {"TYPESAFE_API_KEY": "apikey_FAKE", "TYPESAFE_BASE_URL": server.url}
        runs = []
        for number in range(4):
            (tmp_path / "s.json").write_text(json.dumps(session(6, size=4_000 + number)))
            runs.append(jev("prune", "s.json", "--judge", "jev", "--store", "store", "--stats", "json", env=env))

    receipts = [json.loads(run.stderr.splitlines()[-1]) for run in runs]
    assert [receipt["outcome"] for receipt in receipts[:3]] == ["judge_failed"] * 3
    assert (len(server.requests), receipts[3]["judge"], receipts[3]["requests"]) == (3, "lexical", 0)
    assert "failed three passes in a row" in " ".join(receipts[3]["problems"])
    assert "apikey_FAKE" not in "".join(run.stderr.decode() + run.stdout.decode() for run in runs)


class Run:
    """What a command in this process did."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


class Here:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Run:
        self._capsys.readouterr()
        try:
            code = cli.main(list(arguments))
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        out, err = self._capsys.readouterr()
        return Run(code, out, err)


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def write(messages: Any, name: str = "session.json") -> str:
    Path(name).write_text(messages if isinstance(messages, str) else json.dumps(messages), encoding="utf-8")
    return name


def refused(run: Run, *words: str, code: int = 2) -> None:
    """One line on stderr that says what is wrong, nothing on stdout."""
    assert run.code == code, run.err
    assert run.out == ""
    assert run.err.count("\n") == 1, run.err
    assert run.err.startswith("jev: ")
    for word in words:
        assert word in run.err


# --- prune and restore --------------------------------------------------------------------------------------------


def test_prune_and_restore_from_files(home: Path) -> None:
    messages = session(6)
    name = write(messages)

    pruned = jev("prune", name, "--store", "s", *CUT)

    assert pruned.returncode == 0
    shorter = json.loads(pruned.stdout)
    assert [m["role"] for m in shorter] == [m["role"] for m in messages]
    assert sum(m["content"].startswith("[hermes_jev: ") for m in shorter if m["role"] == "tool") == 6
    assert pruned.stderr.decode().startswith("compacted: 0 shortened, 6 removed")
    assert pruned.stderr.count(b"\n") == 1
    Path("shorter.json").write_bytes(pruned.stdout)
    restored = jev("restore", "shorter.json", "--store", "s")
    assert (restored.returncode, restored.stderr) == (0, b"restored 6 originals\n")
    assert json.loads(restored.stdout) == messages
    assert not home.exists()


def test_prune_and_restore_from_stdin() -> None:
    messages = session(4)

    pruned = jev("prune", "-", "--store", "s", *CUT, stdin=json.dumps(messages).encode())
    restored = jev("restore", "-", "--store", "s", stdin=pruned.stdout)

    assert pruned.stdout != json.dumps(messages).encode()
    assert json.loads(restored.stdout) == messages


@pytest.mark.parametrize("shape", ["array", "object", "lines", "sessions"])
def test_the_output_has_the_form_of_the_input(here: Here, shape: str) -> None:
    messages = session(4)
    data = {
        "array": json.dumps(messages),
        "object": json.dumps({"id": 7, "messages": messages}),
        "lines": "\n".join(map(json.dumps, messages)),
        "sessions": "\n".join(json.dumps({"id": n, "messages": messages}) for n in (1, 2)),
    }[shape]

    pruned = here("prune", write(data), "--store", "s", *CUT)
    restored = here("restore", write(pruned.out, "shorter"), "--store", "s")

    assert read_document(pruned.out.encode(), "out").shape == shape
    assert read_document(restored.out.encode(), "out") == read_document(data.encode(), "in")
    assert len(pruned.err.splitlines()) == (2 if shape == "sessions" else 1)


def test_the_default_store_is_found_again(here: Here, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = write(session(4))
    shorter = write(here("prune", name, *CUT).out, "shorter")
    assert json.loads(here("restore", shorter).out) == session(4)

    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    assert here("restore", shorter).code == 1
    shorter = write(here("prune", name, *CUT).out, "shorter")
    assert (tmp_path / "hermes" / "hermes_jev" / "truth.sqlite3").exists()
    assert json.loads(here("restore", shorter).out) == session(4)


def test_what_hermes_cut_is_found_in_its_usual_home(here: Here, home: Path) -> None:
    folder = home / ".hermes" / "hermes_jev"
    shorter = write(here("prune", write(session(4)), "--store", str(folder), *CUT).out, "shorter")

    assert json.loads(here("restore", shorter).out) == session(4)
    pointer = re.findall(r"r-[a-z2-7]{10}", Path(shorter).read_text())[0]
    assert here("expand", pointer).code == 0


def test_restore_from_another_store_says_what_is_missing(here: Here) -> None:
    shorter = write(here("prune", write(session(4)), "--store", "s", *CUT).out, "shorter")

    refused(here("restore", shorter, "--store", "other"), "message 3", "r-", "store", code=1)


def test_a_first_store_that_is_damaged_does_not_hide_the_second(here: Here, home: Path, tmp_path: Path) -> None:
    """A person's pointers may be in this process' own store or in Hermes' usual one."""
    usual = home / ".hermes" / "hermes_jev"
    shorter = write(here("prune", write(session(4)), "--store", str(usual), *CUT).out, "shorter")
    here("prune", write(session(2)), *CUT)
    (own,) = [path for path in home.rglob("truth.sqlite3") if usual not in path.parents]
    own.write_bytes(b"garbage " * 5_000)

    assert json.loads(here("restore", shorter).out or "null") == session(4)


@pytest.mark.parametrize("command", ["restore", "expand"])
def test_a_store_that_is_damaged_is_not_taken_for_one_that_never_held_it(here: Here, home: Path, command: str) -> None:
    """Both usual stores are looked into: that the second knows nothing must not hide what is wrong with the first."""
    shorter = write(here("prune", write(session(4)), *CUT).out, "shorter")
    (own,) = home.rglob("truth.sqlite3")
    own.write_bytes(b"garbage " * 5_000)
    pointer = re.findall(r"r-[a-z2-7]{10}", Path(shorter).read_text())[0]

    refused(here(command, {"restore": shorter, "expand": pointer}[command]), "damaged", code=1)


@pytest.mark.parametrize("command", ["prune", "restore"])
def test_nothing_to_do_gives_the_same_messages(here: Here, command: str) -> None:
    messages = [user("hi"), *pair(1, "short")]

    run = here(command, write(messages), "--store", "s")

    assert run.code == 0
    assert json.loads(run.out) == messages


def test_the_summary_as_json(here: Here) -> None:
    run = here("prune", write(session(4)), "--store", "s", "--stats", "json", *CUT)

    stats = json.loads(run.err)
    assert (stats["outcome"], stats["calls"], stats["judge"]) == ("compacted", 4, "lexical")
    assert "decisions" not in stats


def test_a_judge_that_is_down_is_an_error_only_when_it_is_asked_for(here: Here) -> None:
    name = write(session(4))
    down = ("prune", name, "--store", "s", "--judge", "jev", "--set", "pin_last_calls=0")

    plain, strict = here(*down), here(*down, "--strict")

    assert (plain.code, strict.code) == (0, 3)
    assert json.loads(plain.out) == json.loads(strict.out) == session(4)
    assert "judge_failed" in plain.err
    assert "TYPESAFE_API_KEY" in plain.err


def test_a_store_that_cannot_be_written_cuts_nothing_and_says_so(here: Here) -> None:
    Path("s").write_text("a file where the folder should be")

    run = here("prune", write(session(4)), "--store", "s", *CUT)

    assert run.code == 1
    assert json.loads(run.out) == session(4)
    assert "not stored" in run.err


@pytest.mark.parametrize(("window", "said"), [("1_000_000", "the window has room"), ("9,000", "compacted")])
def test_the_window(here: Here, window: str, said: str) -> None:
    assert said in here("prune", write(session(8)), "--store", "s", "--context-length", window, *CUT).err


def test_a_task_is_part_of_the_question(here: Here) -> None:
    name = write(session(4))
    runs = [here("prune", name, "--store", "s", "--stats", "json", "--task", task, *CUT) for task in ("one", "two")]

    assert len({json.loads(run.err)["goal_hash"] for run in runs}) == 2


# --- settings -----------------------------------------------------------------------------------------------------


def test_flags_come_after_the_environment(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_JEV_PIN_LAST_CALLS", "1")
    name = write(session(5))

    assert "4 removed" in here("prune", name, "--store", "s", *CUT[2:]).err
    assert "3 removed" in here("prune", name, "--store", "t", *CUT[2:], "--set", "pin-last-calls=2").err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--set", "trigger_percent=60%"), ("trigger_percent (--set)", "'60%'")),
        (("--set", "pin_last_calls=-1"), ("pin_last_calls (--set)", "-1")),
        (("--set", "colour=red"), ("colour (--set)", "unknown setting")),
        (("--set", "pin_last_calls"), ("--set pin_last_calls", "NAME=VALUE")),
        (("--set", "=5"), ("--set", "unknown setting")),
        (("--set", "excerpt_chars=1400"), ("excerpt_chars", "pin_max_chars")),
        (("--set", "base_url=http://example.com/v1", "--judge", "jev"), ("base_url", "https")),
        (("--set", "base_url=https://a:b@example.com", "--judge", "jev"), ("base_url",)),
    ],
)
def test_a_setting_that_cannot_be_used_stops(here: Here, flags: tuple[str, ...], words: tuple[str, ...]) -> None:
    run = here("prune", write(session(2)), "--store", "s", *flags)

    refused(run, *words)
    assert "a:b" not in run.err
    assert not Path("s").exists()


def test_a_variable_that_cannot_be_used_stops_and_one_that_is_unknown_is_said(here: Here, monkeypatch: Any) -> None:
    name = write([user("hi")])
    monkeypatch.setenv("HERMES_JEV_COLOUR", "red")
    warned = here("prune", name, "--store", "s")
    assert warned.code == 0
    assert "warning: HERMES_JEV_COLOUR (environment): unknown setting" in warned.err

    monkeypatch.delenv("HERMES_JEV_COLOUR")
    monkeypatch.setenv("HERMES_JEV_MODE", "passive")
    refused(here("prune", name, "--store", "s"), "HERMES_JEV_MODE", "'passive'")


# --- expand -------------------------------------------------------------------------------------------------------

ODD = "\ufeffBOM\r\nCRLF\x00NUL \ud800 漢字\n" + "x" * 3_000


@pytest.mark.parametrize("original", [ODD, "no end of line" * 200], ids=["odd", "plain"])
def test_expand_prints_the_exact_bytes(original: str) -> None:
    pruned = jev(
        "prune", "-", "--store", "s", *CUT, stdin=json.dumps([user(GOAL), *pair(1, original), assistant("x")]).encode()
    )
    pointer = re.findall(rb"r-[a-z2-7]{10}", pruned.stdout)[0].decode()

    run = jev("expand", pointer, "--store", "s")

    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout == original.encode("utf-8", "surrogatepass")


def test_expand_prints_the_input_and_what_is_no_text_as_json(here: Here) -> None:
    content = {"output": text(3_000), "exit_code": 0}
    messages = [user(GOAL), assistant(None, call("a", "terminal", '{"b": 1}')), result("a", content), assistant("x")]
    pointer = re.findall(r"r-[a-z2-7]{10}", here("prune", write(messages), "--store", "s", *CUT).out)[0]

    assert json.loads(here("expand", pointer, "--store", "s").out) == content
    assert here("expand", pointer, "--store", "s", "--part", "arguments").out == '{"b": 1}'


@pytest.mark.parametrize("pointer", ["r-abcdefghij", "", "nonsense", "../../etc/passwd", "r-" + "x" * 9_000, "\n"])
def test_a_pointer_that_is_none(here: Here, pointer: str) -> None:
    refused(here("expand", pointer, "--store", "s"), "nothing is stored", code=1)
    assert not Path("s").exists()


# --- should-compact -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "window", "expected"),
    [
        ("59999", "100000", "no"),
        ("60000", "100000", "compact"),
        ("130_000", "200,000", "compact"),
        ("85", "100", "urgent"),
    ],
)
def test_should_compact(here: Here, used: str, window: str, expected: str) -> None:
    run = here("should-compact", used, window)

    assert (run.code, run.out, run.err) == (0, f"{expected}\n", "")


def test_should_compact_without_a_window(here: Here) -> None:
    refused(here("should-compact", "5", "0"), "window")


# --- usage --------------------------------------------------------------------------------------------------------

COMMANDS = ["prune", "restore", "expand", "should-compact", "demo"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["unknown"],
        ["prune"],
        ["prune", "a", "b"],
        ["prune", "a", "--judge", "oracle"],
        ["prune", "a", "--context-length", "many"],
        ["prune", "a", "--context-length", "-5"],
        ["prune", "a", "--context-length", "1.5"],
        ["expand"],
        ["expand", "r-abcdefghij", "--part", "output"],
        ["should-compact", "5"],
        ["should-compact", "x", "5"],
        ["should-compact", "5", "nan"],
        ["--nonsense"],
    ],
    ids=" ".join,
)
def test_wrong_usage(here: Here, arguments: list[str]) -> None:
    run = here(*arguments)

    assert (run.code, run.out) == (2, "")
    assert "usage: " in run.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(here: Here, command: str) -> None:
    run = here(command, "--help")

    assert run.code == 0
    assert f"example: jev {command}" in run.out
    assert run.err == ""


def test_help_lists_the_commands_and_version_is_the_packages(here: Here) -> None:
    assert all(command in here("--help").out for command in COMMANDS)
    assert here("--version").out == f"jev {__version__}\n"


# --- bad input ----------------------------------------------------------------------------------------------------

HI = '{"role": "user", "content": "hi"}'


BAD = {
    "empty": (b"", ("empty",)),
    "words": (b"not json", ("line 1", "not JSON")),
    "torn": (b"[1, 2", ("line 1", "not JSON")),
    "no object": (b'[\n{"role": "user"},\n7]', ("line 3", "message 2", "a number")),
    "unknown role": (b'[{"role": "robot"}]', ("line 1", "message 1", "unknown role 'robot'")),
    "a line that is none": (f"{HI}\n{HI}\nnot json".encode(), ("line 3", "not JSON")),
    "no UTF-8": (b'[{"role": "user", "content": "\xff"}]', ("line 1", "not UTF-8")),
    "nested": (b"[" * 200_000, ("line 1", "nested too deeply")),
    "no messages": (b"{}", ("line 1", "messages")),
    "NaN": (b'[{"role": "user", "content": "x", "n": NaN}]', ("line 1", "NaN")),
    "infinite": (b'[{"role": "user", "content": "x", "n": 1e999}]', ("line 1",)),
    "a long number": (b'[{"role": "user", "n": ' + b"9" * 9_000 + b"}]", ("line 1", "not JSON")),
    "control characters": (b"\x00\x01\x02", ("line 1", "not JSON")),
    "another kind of file": (b"PK\x03\x04\xff\xfe", ("line 1", "not UTF-8")),
}
"""What is in the file, and words of the one line that says what is wrong with it."""


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("command", ["prune", "restore"])
def test_bad_input_is_one_line_and_nothing_on_stdout(here: Here, command: str, kind: str) -> None:
    data, words = BAD[kind]
    Path("bad.json").write_bytes(data)

    refused(here(command, "bad.json", "--store", "s"), "bad.json: ", *words)


@pytest.mark.parametrize("kind", ["words", "infinite", "nested"])
def test_bad_input_on_stdin_is_called_stdin(kind: str) -> None:
    data, words = BAD[kind]

    run = jev("prune", "-", stdin=data)

    refused(Run(run.returncode, run.stdout.decode(), run.stderr.decode()), "stdin: ", *words)


@pytest.mark.parametrize(("name", "words"), [("missing.json", "No such file"), (".", "directory"), ("", "directory")])
def test_a_file_that_cannot_be_read(here: Here, name: str, words: str) -> None:
    refused(here("prune", name, "--store", "s"), "cannot be read", words)


BIG = text(4_000)


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([*pair(1, BIG), *pair(1, BIG + "x"), assistant("x")], id="ids repeated"),
        pytest.param([assistant(None, call("a"), call("a")), result("a", BIG), result("a", BIG)], id="one id twice"),
        pytest.param(
            [{"role": "assistant", "tool_calls": [{"function": {"name": "t"}}]}, {"role": "tool", "content": BIG}],
            id="ids missing",
        ),
        pytest.param(
            [user([{"type": "text", "text": "hi"}]), *pair(1, [{"type": "text", "text": BIG}])], id="list content"
        ),
        pytest.param([user(None), assistant(None), *pair(1, None), {"role": "tool"}], id="null content"),
        pytest.param([user("\ud800"), *pair(1, BIG + "\udfff"), assistant("\udc00\ud800")], id="lone surrogates"),
        pytest.param([user("\x00"), *pair(1, "\x00" + BIG, "t\x00l"), assistant("\x00")], id="NUL"),
        pytest.param([user("x"), *pair(1, BIG, "t\ud800l"), assistant("x")], id="lone surrogate in a name"),
        pytest.param([user("x"), *pair(1, text(5_000_000)), assistant("x")], id="5 MB result"),
        pytest.param(
            [m for n in range(3_400) for m in [user("x"), *pair(n, "y" * (1_600 if n < 99 else 9))]],
            id="10,000 messages",
        ),
        pytest.param([result("a", BIG), {"role": "function", "name": "f", "content": BIG}], id="orphans"),
        pytest.param(
            [user("x"), *pair(1, {"output": BIG, "n": 2**70, "f": 1e308}), assistant("x")], id="object content"
        ),
    ],
)
def test_odd_input_gives_valid_output_that_comes_back(here: Here, messages: list[Any]) -> None:
    data = json.dumps(messages)

    pruned = here("prune", write(data), "--store", "s", *CUT)
    restored = here("restore", write(pruned.out, "shorter"), "--store", "s")

    assert (pruned.code, restored.code) == (0, 0), (pruned.err + restored.err)[-500:]
    assert len(json.loads(pruned.out)) == len(messages)
    assert json.loads(restored.out) == json.loads(data)
    assert len(pruned.out.strip()) <= len(data)


@pytest.mark.parametrize("place", ["content", "arguments", "extra"])
def test_values_nested_as_deep_as_json_can_be_read(here: Here, place: str) -> None:
    """Python's reader gives up at some depth; right under it everything else must still work, or be refused."""
    for depth in [*range(100, 900, 200), *range(900, 1_001)]:
        nested = '{"a":' * depth + "1" + "}" * depth
        parts = {"content": '"y"', "arguments": '"{}"', "extra": "1"} | {place: nested}
        data = (
            '[{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "t", "arguments": '
            f'{parts["arguments"]}}}}}]}}, {{"role": "tool", "tool_call_id": "a", "content": {parts["content"]}, '
            f'"extra": {parts["extra"]}}}]'
        )
        run = here("prune", write(data), "--store", "s")
        if run.code:
            refused(run, "nested too deeply")
        else:
            assert json.loads(run.out) == json.loads(data)


# --- streams ------------------------------------------------------------------------------------------------------


def test_a_reader_that_leaves_early_is_no_error() -> None:
    write([user(text(3_000_000))])
    process = subprocess.Popen(
        [sys.executable, "-m", "hermes_jev.cli", "prune", "session.json", "--store", "s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()

    assert process.returncode == 0
    assert b"Traceback" not in said
    assert b"Exception ignored" not in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", ["prune", "should-compact"])
def test_an_output_that_cannot_be_written_is_told_in_one_line(command: str) -> None:
    arguments = {"prune": [write(session(2)), "--store", "s"], "should-compact": ["5", "10"]}[command]
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run(
            [sys.executable, "-m", "hermes_jev.cli", command, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )

    assert run.returncode == 1
    assert run.stderr.count(b"\n") == 1
    assert os.strerror(errno.ENOSPC).encode() in run.stderr


@pytest.mark.parametrize("closed", [">&-", "<&-"], ids=["output", "input"])
def test_a_stream_that_is_closed_is_told_in_one_line(closed: str) -> None:
    command = shlex.join([sys.executable, "-m", "hermes_jev.cli", "prune", "-", "--store", "s"])

    run = subprocess.run(
        ["sh", "-c", f"exec {command} {closed}"], input=b"[]", capture_output=True, timeout=60, check=False
    )

    assert run.returncode in (1, 2)
    assert run.stdout == b""
    assert run.stderr.startswith(b"jev: ")
    assert run.stderr.count(b"\n") == 1


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_the_output_can_be_read_back_whatever_the_terminal_speaks(encoding: str) -> None:
    messages = [user("漢字 and é"), assistant("👩‍👧")]

    run = jev("prune", "-", "--store", "s", stdin=json.dumps(messages).encode(), env={"PYTHONIOENCODING": encoding})

    assert (run.returncode, b"Traceback" in run.stderr) == (0, False), run.stderr[-300:]
    assert json.loads(run.stdout) == messages


def test_the_output_does_not_depend_on_the_locale() -> None:
    messages = [user("漢字"), *pair(1, "é" * 3_000), assistant("x")]
    data = json.dumps(messages).encode()

    outputs = {
        jev("prune", "-", "--store", "s", *CUT, stdin=data, env={"LC_ALL": name}).stdout for name in ("C", "C.UTF-8")
    }

    assert len(outputs) == 1
    assert "漢字".encode() in outputs.pop()


# --- demo ---------------------------------------------------------------------------------------------------------


def test_the_demo_does_the_main_job_offline(here: Here) -> None:
    run = here("demo", "--store", "demo-store")

    assert (run.code, run.err) == (0, "")
    assert "lexical judge" in run.out
    assert max(map(len, run.out.splitlines())) < 80
    assert "byte for byte the original" in run.out
    assert "the whole session is back as it was" in run.out
    assert Store(Path("demo-store")).receipts()


def test_the_demo_leaves_nothing_behind(here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))

    assert jev("demo").returncode == 0
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_pasted_notice_names_its_pointer_and_an_unknown_one_says_where_was_looked(here: Here) -> None:
    messages = [user(GOAL), *pair(1, text(4_000)), assistant("x")]
    pointer = re.findall(r"r-[a-z2-7]{10}", here("prune", write(messages), "--store", "s", *CUT).out)[0]

    assert here("expand", f'expand(id="{pointer}")', "--store", "s").out == text(4_000)
    missing = here("expand", "r-aaaaaaaaaa", "--store", "s")
    assert (missing.code, missing.out) == (1, "")
    assert "r-aaaaaaaaaa" in missing.err
    assert "looked in s" in missing.err


def test_switched_off_nothing_is_cut(here: Here) -> None:
    messages = [user(GOAL), *pair(1, text(4_000)), assistant("x")]

    run = here("prune", write(messages), "--store", "s", "--set", "enabled=false", *CUT)

    assert json.loads(run.out) == messages
    assert "switched off" in run.err


def test_what_could_not_be_stored_is_an_exit_code(here: Here, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")

    run = here(
        "prune", write([user(GOAL), *pair(1, text(4_000)), assistant("x")]), "--store", str(tmp_path / "taken"), *CUT
    )

    assert run.code == 1
    assert "not stored" in run.err
