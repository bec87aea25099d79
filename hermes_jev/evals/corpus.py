"""Transcripts for an evaluation: files and folders of any number of sessions, read one session at a time."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..errors import InputError
from ..inputs import read_document

SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
UNNAMED = "sessions"


@dataclass(frozen=True)
class Session:
    """One transcript. `kind` and `source` are what its file says of it. `composed` marks independent tasks strung
    together: good for size, but nothing in one task needs another. `group` names the session that it is a part of:
    intervals are over groups."""

    id: str
    kind: str
    source: str
    group: str
    composed: bool
    messages: list[Any]


def files(paths: Sequence[str], generic_name: str = "generic.json.gz") -> list[tuple[Path, bool]]:
    """The files to read, each with whether it was named itself; those of a folder are sorted by name. Raises InputError
    for a path that is not there or a folder without transcripts."""
    found: list[tuple[Path, bool]] = []
    for name in paths:
        path = Path(name)
        if path.is_dir():
            inside = [p for p in sorted(path.rglob("*")) if p.name.endswith(SUFFIXES) and p.name != generic_name]
            if not inside:
                raise InputError(f"{name}: no transcripts in this folder (*.json, *.jsonl, either with .gz)")
            found += [(p, False) for p in inside if p.is_file()]
        elif path.exists():
            found.append((path, True))
        else:
            raise InputError(f"{name}: no such file or folder")
    asked = {path.resolve() for path, named in found if named}
    return [(path, resolved in asked) for resolved, path in {p.resolve(): p for p, _ in found}.items()]


def sessions(paths: Sequence[str], skipped: list[str] | None = None) -> Iterator[Session]:
    """Every session of the files and folders, in order. A file of a folder that holds no transcript is passed over and
    noted in `skipped`; a file that was named raises InputError."""
    for path, named in files(paths):
        try:
            yield from _of_file(path)
        except InputError as error:
            if named:
                raise
            if skipped is not None:
                skipped.append(str(error))


def _of_file(path: Path) -> Iterator[Session]:
    try:
        with _open(path) as stream:
            first = stream.readline()
            if _is_session(first) and stream.read(1):
                stream.seek(0)
                for number, line in enumerate(stream, 1):
                    if line.strip():
                        yield from _of_bytes(line, f"{path}: line {number}", path, number)
                return
            stream.seek(0)
            data = stream.read()
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: cannot be read: {type(error).__name__}") from None
    yield from _of_bytes(data, str(path), path, 1)


def _open(path: Path) -> BinaryIO:
    # A gzip file reads like any other.
    return cast("BinaryIO", gzip.open(path, "rb")) if path.name.endswith(".gz") else path.open("rb")


def _is_session(line: bytes) -> bool:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and isinstance(row.get("messages"), list)


def _of_bytes(data: bytes, name: str, path: Path, number: int) -> Iterator[Session]:
    document = read_document(data, name)
    stem = path.name.split(".")[0]
    for at, messages in enumerate(document.parts):
        frame: Mapping[str, Any] = document.frames[at] if at < len(document.frames) else {}
        own = frame.get("id") or frame.get("session_id")
        ident = str(own) if own else stem if len(document.parts) == 1 and number == 1 else f"{stem}:{number + at}"
        yield Session(
            id=ident,
            kind=str(frame.get("kind") or UNNAMED),
            source=str(frame.get("source") or stem),
            group=group_of(ident),
            composed=bool(frame.get("composed")) and not _rejoined(frame),
            messages=messages,
        )


def _rejoined(frame: Mapping[str, Any]) -> bool:
    """Whether this is one real session put together again from its parts."""
    meta = frame.get("meta")
    return isinstance(meta, Mapping) and meta.get("join") == "lineage"


def group_of(ident: str) -> str:
    """The session that a part (`…-s3`) or a rejoined session (`lineage-…`) comes from."""
    return re.sub(r"-s\d+$", "", ident.removeprefix("lineage-"))
