"""The case files: where they are, and what a loaded one holds.

A case is an ASCII JSON file that says: this transcript, this scorer, these steps, and afterwards these checks hold. To
stay small the files use macros, expanded here:

    {"$repeat": [text, n]}          text n times
    {"$fill": [tag, n]}             n characters of numbered lines that carry the tag
    {"$concat": [a, b, …]}          the parts joined
    {"$json": value}                the value as JSON text (call arguments)
    {"$repeat_messages": {"times": n, "messages": […]}}   the messages n times, "$n" replaced by 0 … n-1
    "$NaN", "$Infinity"             those floats

`HERMES_JEV_CASES` names another folder of such files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "cases"
_FLOATS = {"$NaN": float("nan"), "$Infinity": float("inf"), "$-Infinity": float("-inf")}
_EXPANDED = ("messages", "config", "fake_jev", "action")


@dataclass(frozen=True)
class Case:
    """One case file, macros expanded."""

    id: str
    slug: str
    level: str
    group: str
    config: Mapping[str, Any]
    fake_jev: Mapping[str, Any]
    messages: list[Any]
    action: Mapping[str, Any]
    expect: list[Mapping[str, Any]]

    @property
    def name(self) -> str:
        return f"{self.id}-{self.slug}"

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        """The steps of the action: those of a sequence, or the action itself."""
        return list(self.action["steps"]) if self.action["op"] == "sequence" else [self.action]


def folder() -> Path | None:
    """The folder of cases: `HERMES_JEV_CASES`, else the shared one, else None."""
    if named := os.environ.get("HERMES_JEV_CASES"):
        return Path(named)
    return SHARED if SHARED.is_dir() else None


def load_folder(path: Path) -> list[Case]:
    """All cases of a folder, in the order of their names."""
    return [load(file) for file in sorted(path.glob("[0-9]*.json"))]


def load(file: Path) -> Case:
    return from_json(json.loads(file.read_text(encoding="ascii")))


def from_json(raw: Mapping[str, Any]) -> Case:
    """A case from the parsed JSON of its file."""
    fields = {**raw, **{name: expand(raw[name]) for name in _EXPANDED}}
    names = ("id", "slug", "level", "config", "fake_jev", "messages", "action", "expect")
    return Case(group=fields["class"], **{name: fields[name] for name in names})


def fill(tag: str, size: int) -> str:
    """`size` characters of numbered lines that carry the tag."""
    lines: list[str] = []
    written = 0
    while written < size:
        line = f"{tag} line {len(lines):05d}: value={(len(lines) * 7919) % 100003}\n"
        lines.append(line)
        written += len(line)
    return "".join(lines)[:size]


def expand(value: Any) -> Any:
    """The value with every macro in it expanded."""
    if isinstance(value, str):
        return _FLOATS.get(value, value)
    if isinstance(value, list):
        return [item for part in value for item in _items(part)]
    if isinstance(value, dict):
        if len(value) == 1:
            (name, argument), *_ = value.items()
            if name in _TEXT_MACROS:
                return _text(name, argument)
        return {key: expand(item) for key, item in value.items()}
    return value


_TEXT_MACROS = ("$repeat", "$fill", "$concat", "$json")


def _text(name: str, argument: Any) -> str:
    if name == "$repeat":
        text, times = argument
        return str(text) * int(times)
    if name == "$fill":
        tag, size = argument
        return fill(tag, size)
    if name == "$concat":
        return "".join(expand(part) for part in argument)
    return json.dumps(expand(argument), ensure_ascii=False)


def _items(part: Any) -> Iterator[Any]:
    if not (isinstance(part, dict) and part.keys() == {"$repeat_messages"}):
        yield expand(part)
        return
    repeated = part["$repeat_messages"]
    for number in range(repeated["times"]):
        for message in repeated["messages"]:
            yield expand(_numbered(message, str(number)))


def _numbered(value: Any, number: str) -> Any:
    if isinstance(value, str):
        return value.replace("$n", number)
    if isinstance(value, list):
        return [_numbered(item, number) for item in value]
    if isinstance(value, dict):
        return {key: _numbered(item, number) for key, item in value.items()}
    return value
