"""`jev receipts`: what passes and runs did, from their records."""

from __future__ import annotations

import json
from typing import Any

from ..receipts import Receipt
from ..replay import AnyReceipt, read_receipts
from .common import NOTHING, OK, Commands, add_command, out, say


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "receipts",
        "Summarise receipts: one line a pass or run, and the sums.",
        "jev receipts ~/.hermes/hermes_jev",
        _run,
    )
    command.add_argument("path", metavar="PATH", help="a file of JSON lines, or the folder of a store")
    command.add_argument("--json", action="store_true", help="the sums as JSON")
    command.add_argument("--lines", action="store_true", help="the receipts themselves, one line of JSON each")


def _run(arguments: Any) -> int:
    receipts = read_receipts(arguments.path)
    if arguments.lines:
        out("".join(_json(receipt) + "\n" for receipt in receipts))
        return OK
    if not receipts:
        say(f"{arguments.path}: no receipts")
        return NOTHING
    sums = _sums(receipts)
    if arguments.json:
        out(json.dumps(sums, indent=1) + "\n")
        return OK
    for number, receipt in enumerate(receipts, 1):
        out(f"{number:>4} {_line(receipt)}\n")
    out("".join(f"{name.replace('_', ' '):<18} {_shown(value)}\n" for name, value in sums.items()))
    return OK


def _json(receipt: AnyReceipt) -> str:
    return receipt.to_json() if isinstance(receipt, Receipt) else receipt.model_dump_json()


def _line(receipt: AnyReceipt) -> str:
    if isinstance(receipt, Receipt):
        return f"prune    {receipt.summary()}"
    stats = receipt.stats
    sizes = f"{stats.get('bytes_before', 0):,} → {stats.get('bytes_after', 0):,} bytes"
    fates = f"{stats.get('kept', 0)} kept, {stats.get('dropped', 0)} left out"
    degraded = "; degraded" if stats.get("degraded") else ""
    return f"compact  {sizes}; {fates}; judge {receipt.judge or 'none'}{degraded}"


def _sums(receipts: list[AnyReceipt]) -> dict[str, float]:
    passes = [receipt for receipt in receipts if isinstance(receipt, Receipt)]
    runs = [receipt for receipt in receipts if not isinstance(receipt, Receipt)]
    return {
        "passes": len(passes),
        "shortened": sum(receipt.count("truncate") for receipt in passes),
        "removed": sum(receipt.count("remove") for receipt in passes),
        "kept": sum(receipt.count("keep") for receipt in passes),
        "characters_freed": sum(receipt.chars_before - receipt.chars_after for receipt in passes),
        "budget_runs": len(runs),
        "messages_left_out": sum(1 for run in runs for record in run.decisions if record.action == "drop"),
        "requests": sum(receipt.requests for receipt in passes) + sum(_number(run, "requests") for run in runs),
        "input_tokens": sum(receipt.input_tokens for receipt in passes)
        + sum(_number(run, "input_tokens") for run in runs),
        "cost_usd": round(sum(receipt.cost for receipt in passes) + sum(_number(run, "cost_usd") for run in runs), 8),
    }


def _number(run: Any, name: str) -> float:
    value = run.stats.get(name, 0)
    return value if isinstance(value, int | float) else 0


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
