"""`jev report`: a page about passes, to look at in a browser."""

from __future__ import annotations

from typing import Any

from ..receipts import Receipt
from ..replay import read_receipts
from ..report import page
from .common import NOTHING, OK, Commands, add_command, out, say, write_file


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "report",
        "Write one HTML page: what was cut and why, with a slider over the threshold. It holds no content.",
        "jev report ~/.hermes/hermes_jev --output report.html",
        _run,
    )
    command.add_argument("path", metavar="PATH", help="a file of JSON lines, or the folder of a store")
    command.add_argument("--output", metavar="FILE", help="write there instead of stdout, whole or not at all")


def _run(arguments: Any) -> int:
    passes = [receipt for receipt in read_receipts(arguments.path) if isinstance(receipt, Receipt)]
    if not passes:
        say(f"{arguments.path}: no passes on record")
        return NOTHING
    if arguments.output:
        write_file(arguments.output, page(passes))
        say(f"{arguments.output}: {len(passes)} passes")
    else:
        out(page(passes))
    return OK
