"""What a tool call does, by its name and arguments: look up, change, run a command; which file, which part, where.

Tools are named and built differently everywhere, so this reads words of the name and common argument names, and says
nothing where they say nothing.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

Kind = Literal["reads", "writes", "shell", "other"]

_PARSED_CHARS = 200_000
_COMMAND_CHARS = 4_000
_WRITES = frozenset(
    "write edit patch create update insert replace delete remove modify cancel book send apply append move rename save "
    "set enable disable exchange return submit multiedit add post put upload".split()
)
_READS = frozenset("read view open cat get fetch find search grep glob list ls show query lookup extract load".split())
_SHELL = frozenset("bash shell terminal command console exec powershell process".split())
_PATH_KEYS = ("path", "file_path", "filePath", "filename", "file", "notebook_path", "absolute_path")
_COMMAND_KEYS = ("command", "cmd", "code", "script")
_PART_KEYS = ("view_range", "start_line", "end_line", "start", "end", "offset", "limit", "page", "pages", "lines")
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SHOWS = re.compile(r"(?:cd \S+ && )?(?:cat|head|tail|less|nl|open|sed -n \S+)\s+(?:-\S+ )*([\w./~-]+)\s*")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)
_REDIRECTED = re.compile(r"(?<![<>&\d-])>(?!>|&)\s*([\w./~-]+)|\btee\s+([\w./~-]+)")
_IN_PLACE = re.compile(r"\b(?:sed|perl) (?:-\S+ )*-\w*i\b[^|;&\n]*\s([\w./~-]+)\s*(?=$|[|;&\n])")
_CHANGES_PLACE = re.compile(r"(?:^|&&|;|\n)\s*(?:cd|pushd)(?:[ \t]+([^\s;&|]+))?")


class Lines(NamedTuple):
    """A range of lines, first and last; `last` is infinite where the end is not said."""

    first: float
    last: float


def kind_of(tool: str) -> Kind:
    """What a tool does, by the words of its name: `read_file` reads, `mcp__db__update_row` writes."""
    pieces = name_pieces(tool)
    if pieces & _SHELL:
        return "shell"
    if pieces & _WRITES:
        return "writes"
    return "reads" if pieces & _READS else "other"


def name_pieces(tool: str) -> frozenset[str]:
    """The words of a tool's name, lower case: `getUserStatus` is get, user, status."""
    return frozenset(piece.lower() for piece in _PIECES.findall(tool))


def fields_of(arguments: str) -> Mapping[str, Any]:
    """The arguments as an object; empty where they are none, or too long to look into."""
    if len(arguments) > _PARSED_CHARS:
        return {}
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def path_of(fields: Mapping[str, Any]) -> str:
    """The file a call is about as it names it, also where a command only shows one; empty for none."""
    for key in _PATH_KEYS:
        if isinstance(value := fields.get(key), str) and value:
            return value
    command = command_of(fields)
    shown = _SHOWS.fullmatch(command.strip()) if len(command) < 400 else None
    return shown[1] if shown else ""


def command_of(fields: Mapping[str, Any]) -> str:
    """The command or program a call runs, empty for none."""
    return next((value for key in _COMMAND_KEYS if isinstance(value := fields.get(key), str)), "")


def part_of(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Which part of a file a call asks for, as written; () is the whole."""
    return tuple(f"{name}={fields[name]}" for name in _PART_KEYS if fields.get(name) is not None)


def lines_of(fields: Mapping[str, Any]) -> Lines | None:
    """The lines a call asks for; all of them where it names none, None where it names a part in another way."""
    named = {name for name in _PART_KEYS if fields.get(name) is not None}
    if not named:
        return Lines(1, math.inf)
    match fields.get("view_range"):
        case [int() as first, int() as last] if named == {"view_range"}:
            return Lines(first, last if last > 0 else math.inf)
    for low, high in (("start_line", "end_line"), ("start", "end"), ("offset", "limit")):
        if not named <= {low, high}:
            continue
        start, end = _number(fields.get(low), 1), _number(fields.get(high), math.inf)
        if start is None or end is None:
            return None
        start = max(start, 1)
        return Lines(start, start + end - 1 if high == "limit" else end)
    return None


def _number(value: Any, otherwise: float) -> float | None:
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def written_by(kind: Kind, fields: Mapping[str, Any]) -> frozenset[str]:
    """The files a call changes, as it names them."""
    command = command_of(fields)[:_COMMAND_CHARS]
    if command:
        found = [one or two for one, two in _REDIRECTED.findall(command)] + _IN_PLACE.findall(command)
        return frozenset(name for name in found if name != "/dev/null")
    if kind != "writes":
        return frozenset()
    named = {path} if (path := path_of(fields)) else set()
    texts: Sequence[Any] = [fields.get("patch"), fields.get("input")]
    return frozenset(named.union(*(_PATCHED.findall(text) for text in texts if isinstance(text, str))))


def absolute(path: str, place: str) -> str:
    """A path as seen from the folder `place`, so that two names of one file are equal."""
    return posixpath.normpath(posixpath.join(place, path.replace("\\", "/")))


def place_after(place: str, command: str) -> str:
    """The folder after a command that may change it. A target that cannot be followed (a variable, `-`) leads to a
    place that no other command shares."""
    for target in _CHANGES_PLACE.findall(command[:_COMMAND_CHARS]):
        name = target.strip("'\"")
        if not name or name == "~":
            place = "~"
        elif name == "-" or "$" in name or "`" in name:
            place = f"{place}/?{len(command)}"
        else:
            place = absolute(name, place) if name[0] not in "~" else posixpath.normpath(name)
    return place
