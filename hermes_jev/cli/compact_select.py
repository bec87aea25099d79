"""`jev compact-select`."""

from __future__ import annotations

import json
from typing import Any

from ..select import KEEP_LAST, LIMIT, select
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
    whole_number,
)


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "compact-select",
        "Say which turns to keep, which to summarize and which to drop, and write a digest.",
        "jev compact-select --digest session.json",
        _run,
    )
    file_argument(command, default="-")
    command.add_argument(
        "--keep-last", type=whole_number, default=KEEP_LAST, metavar="N", help="turns at the end that always stay"
    )
    command.add_argument(
        "--limit", type=whole_number, default=LIMIT, metavar="N", help="characters of the digest, at most"
    )
    command.add_argument("--digest", action="store_true", help="print the digest as text instead of the JSON")
    command.add_argument("--task", help="what the work is about")
    judge_argument(command)
    set_argument(command)
    strict_argument(command)


def _run(arguments: Any) -> int:
    messages = only_conversation(arguments.file)
    settings = settings_from(arguments.set)
    with progress_bar("selecting") as progress:
        selected = select(
            messages,
            arguments.judge,
            arguments.keep_last,
            arguments.limit,
            arguments.task,
            settings,
            progress=progress,
        )
    out((selected.digest if arguments.digest else json.dumps(selected.to_dict(), ensure_ascii=False)) + "\n")
    counts = ", ".join(f"{count} {fate}" for fate, count in selected.counts.items())
    line = f"{selected.status}: {counts}; judge {selected.judge}, {selected.jev_calls} requests"
    say(line + (f" ({', '.join(selected.errors)})" if selected.errors else ""))
    if selected.status == "fail_open":
        say("nobody judged: use the plain transcript")
    return JUDGE_FAILED if arguments.strict and selected.status != "ok" else OK
