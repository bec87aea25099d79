"""Every example in the README, in the skill and in the help of the commands runs, on a recorded session."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_jev.cli.main import ALIAS, build_parser, main
from hermes_jev.job import Job
from hermes_jev.judge import Lexical
from hermes_jev.prune import run
from hermes_jev.settings import Settings
from hermes_jev.store import Store

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", "skills/jev-compaction/SKILL.md")
FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

ELSEWHERE = {
    "make demo": "a target of make, run by hand and by the continuous checks",
    "make test": "a target of make that runs these tests",
    "mkdir -p ~/.hermes/plugins/": "installs into Hermes; the tests of hosts install the same files",
    "hermes ": "needs Hermes; the tests of hosts run what it runs",
    "npx skills add": "needs the network",
    "jev serve": "runs until it is stopped; test_serve.py runs it",
    "export TYPESAFE_BASE_URL": "sets a variable of the shell",
    "jev prune s.json --set endpoint=custom": "needs the service of the line before; test_serve.py runs it",
    "/path/of/the/hosts/python": "installs into Hermes; the tests of hosts install the same package",
}
"""Examples that are not run here, by how they begin, and why."""


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


def documented(language: str) -> Iterator[tuple[str, str]]:
    """(where, block) of one language, with the languages of all blocks checked."""
    for name in DOCUMENTS:
        for found in FENCED.finditer((ROOT / name).read_text(encoding="utf-8")):
            assert found[1] in ("sh", "python", "text", "yaml"), f"{name}: {found[1]}"
            if found[1] == language:
                yield name, found[2]


def in_help() -> Iterator[tuple[str, str]]:
    for parser in (*parsers(build_parser()), *parsers(build_parser("jev-compact", ALIAS))):
        for line in re.findall(r"^(?:example: |         )(jev.*)$", parser.epilog or "", re.MULTILINE):
            yield parser.prog, line


def shell_lines() -> list[Any]:
    lines = [(where, line.strip()) for where, block in documented("sh") for line in block.splitlines() if line.strip()]
    return [pytest.param(line, id=f"{where}: {line[:60]}") for where, line in dict.fromkeys([*lines, *in_help()])]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a session, what a pass made of it, a folder of sessions, and a store with originals of session ID."""
    session = json.loads((ROOT / "hermes_jev" / "data" / "demo_session.json").read_text(encoding="utf-8"))
    home = tmp_path_factory.mktemp("examples") / "home"
    (home / "sessions").mkdir(parents=True)
    settings = Settings(output_threshold=1.0, call_threshold=1.0)
    job = Job(settings, Lexical(), Store(home / ".hermes" / "hermes_jev"), session="ID")
    shorter = run(session["messages"], job).messages
    for name, messages in (("session", session["messages"]), ("sessions/a", session["messages"]), ("shorter", shorter)):
        (home / f"{name}.json").write_text(json.dumps({"messages": messages}), encoding="utf-8")
    return home


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that home, as the place to be in."""
    home = Path(shutil.copytree(made, tmp_path / "home"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HERMES_HOME", str(home / ".hermes"))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "HERMES_JEV_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home)
    return home


def pointer_in(home: Path) -> str:
    found = re.search(r"r-[a-z2-7]{10}", (home / "shorter.json").read_text(encoding="utf-8"))
    assert found
    return found[0]


@pytest.mark.parametrize("line", shell_lines())
def test_the_example_runs(line: str, here: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    if any(line.startswith(start) for start in ELSEWHERE):
        pytest.skip("listed in ELSEWHERE with its reason")
    words = shlex.split(re.sub(r"r-[a-z2-7]{10}", pointer_in(here), line), comments=True)
    words = [str(Path(word).expanduser()) if word.startswith("~") else word for word in words]
    target = None
    if ">" in words:
        at = words.index(">")
        words, target = words[:at], words[at + 1]
    program, *arguments = words
    assert program in ("jev", "jev-compact")
    code = main(arguments, build_parser("jev-compact", ALIAS) if program == "jev-compact" else None)
    out, err = capfdbinary.readouterr()
    assert code == 0, err.decode()
    assert b"Traceback" not in err
    if target:
        (here / target).write_bytes(out)
    assert out or arguments[:2] in (["report", arguments[1]], ["store", "gc"], ["store", "purge"], ["store", "rebuild"])


def test_what_is_not_run_is_there() -> None:
    lines = [line.values[0] for line in shell_lines()]
    for start in ELSEWHERE:
        assert any(str(line).startswith(start) for line in lines), f"no example begins with {start}"


def test_the_python_examples_run(here: Path) -> None:
    import hermes_jev

    names: dict[str, Any] = {
        "hermes_jev": hermes_jev,
        "messages": json.loads(Path("session.json").read_text())["messages"],
    }
    for where, block in documented("python"):
        exec(compile(block, where, "exec"), names)
    assert names["back"] == names["messages"]
    assert names["chosen"].digest
    assert names["small"].messages


def test_every_command_has_an_example() -> None:
    for parser in parsers(build_parser()):
        assert "example: jev" in (parser.epilog or ""), parser.prog
