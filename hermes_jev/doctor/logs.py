"""What Hermes' own log says of the last session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..redact import redact
from .findings import Finding, note, ok, problem

_READ = 400_000
"""Bytes of the end of the log that are read."""
_SHOWN = 3
_LINE_CHARS = 240

_ACTIVE = re.compile(r"hermes_jev: active;.*")
_FELL_BACK = re.compile(r"Context engine '[^']*' .*falling back to built-in compressor.*")
_STARTED = re.compile(r"(?:Preflight|Pre-API) compression: |context compression started: ")
_OURS = re.compile(r"^\S+ \S+ (?:.*? )?(?P<said>hermes_jev: .*)")
_PASS = re.compile(r"hermes_jev: (?:compacted|nothing_to_prune|judge_failed|capacity|error)\b")
_HIDDEN = "its tools are not offered"


def check(home: Path, runs: bool) -> list[Finding]:
    """What the newest lines show. `runs` says that a session started now would run the engine: then what went wrong
    before is history."""
    lines = _tail(home / "logs" / "agent.log")
    if lines is None:
        return [note("hermes", "no_log", f"{home / 'logs' / 'agent.log'}: there is none yet")]
    return [*_state(lines, runs), *_lost(lines), *_last(lines)]


def _tail(file: Path) -> list[str] | None:
    try:
        with file.open("rb") as log:
            log.seek(max(0, file.stat().st_size - _READ))
            return log.read(_READ).decode("utf-8", "replace").splitlines()
    except OSError:
        return None


def _state(lines: list[str], runs: bool) -> Iterator[Finding]:
    active, fell_back = _newest(_ACTIVE, lines), _newest(_FELL_BACK, lines)
    if fell_back > active:
        said = f"the last session fell back: {_shown(lines[fell_back])}"
        yield (
            note("hermes", "fell_back", f"{said} (the next will not)") if runs else problem("hermes", "fell_back", said)
        )
    elif active >= 0:
        yield ok("hermes", "ran", f"the engine ran last: {_shown(lines[active])}")
        if _HIDDEN in lines[active]:
            text = "that session had no expand: with an explicit -t write -t …,context_engine"
            yield note("hermes", "tools_were_hidden", text)
    else:
        yield note("hermes", "never_ran", "no session in the log has run the engine")


def _lost(lines: list[str]) -> Iterator[Finding]:
    """A compaction of a session of the engine that never came to the engine. Hermes writes no reason."""
    started = _newest(_STARTED, lines)
    if started > _newest(_PASS, lines) and started > _newest(_ACTIVE, lines) > _newest(_FELL_BACK, lines):
        text = f"a compaction began and never came to the engine: {_shown(lines[started])}"
        why = "most likely Hermes' auxiliary model was found too small; set auxiliary.compression.context_length"
        yield problem("hermes", "compaction_lost", f"{text}; {why}")


def _last(lines: list[str]) -> Iterator[Finding]:
    ours = [found["said"] for line in lines if (found := _OURS.search(line)) and not _ACTIVE.search(line)]
    for said in ours[-_SHOWN:]:
        yield note("hermes", "log", redact(said)[:_LINE_CHARS])


def _newest(pattern: re.Pattern[str], lines: list[str]) -> int:
    return next((at for at in reversed(range(len(lines))) if pattern.search(lines[at])), -1)


def _shown(line: str) -> str:
    return redact(line.strip())[:_LINE_CHARS]
