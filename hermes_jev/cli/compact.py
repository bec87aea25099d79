"""`jev compact`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..compact import CompactOptions, compact
from ..inputs import Document
from .common import (
    JUDGE_FAILED,
    OK,
    Commands,
    add_command,
    chosen_judge,
    file_argument,
    out,
    progress_bar,
    read,
    say,
    say_missing,
    scores_argument,
    set_argument,
    settings_from,
    strict_argument,
    whole_number,
    write_file,
)

_DEFAULTS = CompactOptions().model_dump()


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "compact",
        "Fit a transcript into a number of bytes: the most valuable messages whole, one digest for the rest.",
        "jev compact --target-bytes 65536 session.json > smaller.json",
        _run,
    )
    file_argument(command, default="-")
    command.add_argument("--output", metavar="FILE", help="write there instead of stdout, whole or not at all")
    command.add_argument("--stats", choices=("text", "json"), default="text", help="the summary on stderr")
    options(command)
    scores_argument(command)
    set_argument(command)
    strict_argument(command)


def options(command: Any) -> None:
    """Every option of a budget, as a flag."""
    _number(command, "target_bytes", whole_number)
    _number(command, "keep_recent", whole_number)
    _number(command, "batch_size", whole_number)
    _number(command, "min_confidence", float)
    _number(command, "summary_bytes", whole_number)
    command.add_argument(
        "--summary-role", choices=("system", "developer", "user", "assistant"), help=_help("summary_role")
    )
    _number(command, "state_message_bytes", whole_number)
    command.add_argument(
        "--pin-pattern", action="append", metavar="REGEX", help=f"{_help('pin_patterns')} (may be repeated)"
    )
    command.add_argument("--no-pinning", action="store_true", help="let patterns protect nothing")
    command.add_argument("--pin-flags", metavar="FLAGS", help=_help("pin_flags"))
    command.add_argument("--endpoint", metavar="URL", help=_help("endpoint"))
    command.add_argument("--timeout", type=float, metavar="SECONDS", help=_help("timeout_s"))
    command.add_argument("--levels", metavar="A,B,…", help=_help("levels"))
    _number(command, "price_per_million_tokens", float)
    command.add_argument("--receipt-path", metavar="FILE", help=_help("receipt_path"))
    command.add_argument("--task", help=_help("task"))
    command.add_argument("--run-id", metavar="NAME", help=_help("run_id"))


def chosen_options(arguments: Any) -> dict[str, Any]:
    """What the flags say; what they leave out keeps its default."""
    given = {
        name: vars(arguments)[name]
        for name in (*_NUMBERS, "summary_role", "pin_flags", "endpoint", "receipt_path", "task", "run_id")
    }
    given["timeout_s"] = arguments.timeout
    given["pin_patterns"] = tuple(arguments.pin_pattern or ())
    given["levels"] = tuple(part.strip() for part in arguments.levels.split(",")) if arguments.levels else None
    given["enable_pinning"] = False if arguments.no_pinning else None
    return {name: value for name, value in given.items() if value is not None}


_NUMBERS = (
    "target_bytes",
    "keep_recent",
    "batch_size",
    "min_confidence",
    "summary_bytes",
    "state_message_bytes",
    "price_per_million_tokens",
)


def _number(command: Any, name: str, kind: Any) -> None:
    command.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="N", help=_help(name))


def _help(name: str) -> str:
    sentence = (CompactOptions.model_fields[name].description or "").rstrip(".")
    default = _DEFAULTS[name]
    shown = ", ".join(default) if isinstance(default, tuple) else default
    return f"{sentence} ({shown})".replace("%", "%%") if shown not in (None, "", ()) else sentence


def _run(arguments: Any) -> int:
    settings = settings_from(arguments.set)
    wanted = chosen_options(arguments)
    judge = chosen_judge(arguments)
    document = read(arguments.file)
    results = []
    for part in document.parts:
        with progress_bar("scoring") as progress:
            results.append(compact(part, judge, settings=settings, progress=progress, **wanted))
    _write(document, [result.messages for result in results], arguments)
    degraded = False
    for result in results:
        stats = result.stats
        degraded = degraded or stats["degraded"]
        say(json.dumps(stats) if arguments.stats == "json" else _line(stats))
    say_missing(judge)
    return JUDGE_FAILED if arguments.strict and degraded else OK


def _write(document: Document, parts: list[list[Any]], arguments: argparse.Namespace) -> None:
    text = document.dump(parts)
    if arguments.output:
        write_file(arguments.output, text)
    else:
        out(text)


def _line(stats: dict[str, Any]) -> str:
    line = (
        f"{stats['bytes_before']:,} → {stats['bytes_after']:,} bytes; {stats['kept']} messages kept, "
        f"{stats['dropped']} left out"
    )
    if stats["judge"]:
        line += f"; judge {stats['judge']}, {stats['requests']} requests"
    notes = []
    if stats["over_budget_bytes"]:
        notes.append(f"what is protected is {stats['over_budget_bytes']:,} bytes over the budget")
    if stats["degraded"]:
        notes.append(f"degraded: {stats['unscored']} messages were not judged and ranked by recency")
    if stats["receipt_error"]:
        notes.append(f"receipt not written: {stats['receipt_error']}")
    notes.extend(stats["errors"])
    return line + (f" ({'; '.join(notes)})" if notes else "")
