"""`jev prune`."""

from __future__ import annotations

from typing import Any

from ..prune import prune
from ..receipts import Receipt
from .common import (
    JUDGE_FAILED,
    NOTHING,
    OK,
    Commands,
    add_command,
    chosen_judge,
    file_argument,
    out,
    progress,
    read,
    require_window,
    say,
    say_missing,
    scores_argument,
    set_argument,
    settings_from,
    store_argument,
    strict_argument,
    tokens,
)


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "prune",
        "Shorten or remove old tool results; every original is stored first.",
        "jev prune session.json > shorter.json",
        _run_prune,
    )
    file_argument(command)
    store_argument(command)
    scores_argument(command)
    command.add_argument("--task", help="what the work is about; goes before the newest request")
    command.add_argument(
        "--context-length",
        type=tokens,
        metavar="TOKENS",
        help="the model's window: a pass then stops early when there is room",
    )
    set_argument(command)
    command.add_argument("--stats", choices=("text", "json"), default="text", help="the summary on stderr")
    strict_argument(command)


def _run_prune(arguments: Any) -> int:
    require_window(arguments.context_length)
    settings = settings_from(arguments.set)
    judge = chosen_judge(arguments)
    document = read(arguments.file)
    results = [
        prune(part, judge, arguments.store, settings, arguments.task, arguments.context_length)
        for part in progress(document.parts, "pruning")
    ]
    out(document.dump([result.messages for result in results]))
    failed = broken = False
    for result in results:
        _summarise(result.receipt, arguments.stats)
        failed = failed or result.receipt.outcome == "judge_failed" or result.receipt.partial
        broken = broken or result.receipt.outcome == "error"
    say_missing(judge)
    if broken:
        return NOTHING
    return JUDGE_FAILED if failed and arguments.strict else OK


def _summarise(receipt: Receipt, form: str) -> None:
    if form == "json":
        say(receipt.to_json(decisions=False))
    else:
        say(receipt.summary())
