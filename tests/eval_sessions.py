"""Sessions for the tests of the evaluation, and the evaluation kit itself where it is."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from builders import GOAL, Message, assistant, call, pair, result, text, user

from hermes_jev.evals.case import Case, case_of
from hermes_jev.evals.corpus import Session
from hermes_jev.evals.generic import Generic
from hermes_jev.evals.texts import size_of
from hermes_jev.settings import Settings

KIT = Path(__file__).resolve().parent.parent.parent / "shared" / "evaldata"


def kit(name: str) -> ModuleType:
    """A module of the evaluation kit. Skips the test where the kit is missing; fails it under CI."""
    if not (KIT / f"{name}.py").is_file():
        message = f"no evaluation data in {KIT.name}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(KIT))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(KIT))
        sys.dont_write_bytecode = before


def secret_of(number: int) -> str:
    """The distinctive string that the result of call `number` holds in its middle."""
    return f"handle_{number:02d}_of_station_{number * 7919 % 9973}"


def output(number: int, size: int = 3_000) -> str:
    """A result of `size` characters with its distinctive string in the middle."""
    filler = text(size, f"out{number}")
    return f"{filler[: size // 2]}\n{secret_of(number)}\n{filler[size // 2 :]}"


def messages(calls: int = 12, used: tuple[int, ...] = (2, 5, 9, 10), size: int = 3_000) -> list[Message]:
    """`calls` calls, then one more step for each of `used`, which writes the string that call's result held."""
    found = [user(GOAL)]
    for number in range(1, calls + 1):
        found += pair(number, output(number, size), words=f"Step {number}.")
    for number in used:
        given = {"command": f"open {secret_of(number)}"}
        found += [assistant("On.", call(f"u{number}", "terminal", given)), result(f"u{number}", "done")]
    return [*found, assistant("That is all."), user("Thanks."), assistant("Bye.")]


def session(name: str = "one", kind: str = "coding", **more: Any) -> Session:
    """One such session."""
    return Session(name, kind, "made", name, False, messages(**more))


def share_of(made: Session, calls: int) -> float:
    """Where to cut it so that exactly its first `calls` calls lie before."""
    return size_of(made.messages[: 1 + 2 * calls]) / size_of(made.messages) - 1e-9


def case(calls: int = 20, used: tuple[int, ...] = (2, 5, 9, 18), name: str = "one") -> Case:
    """A session cut right after its `calls` calls, before what was in them is used."""
    made = session(name, calls=calls, used=used)
    found = case_of(made, share_of(made, calls), Generic(), Settings())
    assert found is not None
    return found


CUT = "0.9"
"""Where the sessions of `write` are cut: three or four calls before their results are used."""


def write(folder: Path, count: int = 6, kind: str = "coding") -> Path:
    """A file of `count` such sessions, one a line, of 20 calls each."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "sessions.jsonl"
    rows = [
        {"id": f"made-{n}", "kind": kind, "messages": messages(20, (1 + n, 4 + n, 8 + n, 13 + n % 3))}
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
