"""`jev replay`: recorded passes and runs decided again, at no cost."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from ..receipts import Receipt
from ..replay import AnyReceipt, Replayed, decide_again, read_receipts, spend_again
from .common import NOTHING, OK, Commands, add_command, out, say, whole_number


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "replay",
        "Decide recorded passes and runs again with another threshold or budget; nobody is asked.",
        "jev replay ~/.hermes/hermes_jev --threshold 0.3",
        _run,
    )
    command.add_argument("path", metavar="PATH", help="a file of JSON lines, or the folder of a store")
    command.add_argument("--threshold", type=_share, metavar="X", help="of both questions; for passes (prune)")
    command.add_argument("--target-bytes", type=whole_number, metavar="N", help="the budget; for runs (compact)")
    command.add_argument("--min-confidence", type=_share, metavar="Y", help="the gate; for runs (compact)")
    command.add_argument("--json", action="store_true", help="one JSON object a receipt")


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"a number from 0 to 1 is needed, not {text[:40]!r}")
    return value


def _run(arguments: Any) -> int:
    replayed = [found for receipt in read_receipts(arguments.path) if (found := _again(receipt, arguments)) is not None]
    if not replayed:
        say(f"{arguments.path}: no receipts that these options concern")
        return NOTHING
    for way, result in replayed:
        out((json.dumps({"way": way, **asdict(result)}) if arguments.json else _line(way, result)) + "\n")
    missing = sum(result.missing for _, result in replayed)
    if missing:
        say(f"{missing} decisions have no score on record and keep their fate")
    if any(result.estimated for _, result in replayed):
        say("sizes of cuts that were not made then are estimated: receipts hold no content")
    return OK


def _again(receipt: AnyReceipt, arguments: Any) -> tuple[str, Replayed] | None:
    if isinstance(receipt, Receipt):
        if arguments.threshold is None and (arguments.target_bytes is not None or arguments.min_confidence is not None):
            return None
        # Without a threshold of its own a pass is decided by the one it had.
        return "prune", decide_again(
            receipt, receipt.output_threshold if arguments.threshold is None else arguments.threshold
        )
    if arguments.threshold is not None and arguments.target_bytes is None and arguments.min_confidence is None:
        return None
    return "compact", spend_again(receipt, arguments.target_bytes, arguments.min_confidence)


def _line(way: str, result: Replayed) -> str:
    unit = "characters" if way == "prune" else "bytes"
    cuts = f"{result.shortened} shortened, {result.removed} removed" if way == "prune" else f"{result.removed} left out"
    return (
        f"{way:<8} {result.size_before:,} → {result.size_after:,} {unit}; {result.kept} kept, {cuts}; "
        f"{result.changed} decided otherwise than then"
    )
