"""`jev score`: what each message is worth, and what a budget would do with it."""

from __future__ import annotations

import json
from typing import Any

from ..compact import compact
from .common import (
    JUDGE_FAILED,
    OK,
    Commands,
    add_command,
    file_argument,
    judge_argument,
    only_conversation,
    out,
    progress_bar,
    say,
    set_argument,
    settings_from,
    strict_argument,
)
from .compact import chosen_options, options


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "score",
        "Print what each message is worth, why it is pinned, and what a byte budget would do with it.",
        "jev score session.json --target-bytes 65536",
        _run,
    )
    file_argument(command, default="-")
    command.add_argument("--json", action="store_true", help="one JSON object a message")
    options(command)
    judge_argument(command)
    set_argument(command)
    strict_argument(command)


def _run(arguments: Any) -> int:
    settings = settings_from(arguments.set)
    messages = only_conversation(arguments.file)
    wanted = {**chosen_options(arguments), "receipt_path": None}
    with progress_bar("scoring") as progress:
        result = compact(messages, arguments.judge, settings=settings, progress=progress, always=True, **wanted)
    if arguments.json:
        out("".join(json.dumps(record.model_dump()) + "\n" for record in result.receipts))
    else:
        out(f"{'#':>5} {'role':<9} {'bytes':>9} {'value':>5} {'conf':>5} {'does':<4}  why\n")
        for record in result.receipts:
            out(_row(record) + "\n")
    stats = result.stats
    say(f"judge {stats['judge']}, {stats['requests']} requests, {stats['unscored']} messages not judged")
    return JUDGE_FAILED if arguments.strict and stats["degraded"] else OK


def _row(record: Any) -> str:
    value = "" if record.value is None else f"{record.value:.2f}"
    confidence = "" if record.confidence is None else f"{record.confidence:.2f}"
    why = record.reason if len(record.reason) <= 34 else record.reason[:33] + "…"
    return (
        f"{record.index:>5} {record.role[:9]:<9} {record.size:>9,} {value:>5} {confidence:>5} {record.action:<4}  {why}"
    )
