"""`jev restore`."""

from __future__ import annotations

from typing import Any

from ..restore import Missing, put_back
from .common import NOTHING, OK, Commands, add_command, file_argument, out, read, say, store_argument


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "restore",
        "Put every original back.",
        "jev restore shorter.json > again.json",
        _run_restore,
    )
    file_argument(command)
    store_argument(command)
    command.add_argument(
        "--keep-missing", action="store_true", help="leave what no store knows as it is, and exit with 1"
    )


def _run_restore(arguments: Any) -> int:
    document = read(arguments.file)
    missing: Missing = "keep" if arguments.keep_missing else "raise"
    restored = [put_back(part, arguments.store, missing) for part in document.parts]
    out(document.dump([one.messages for one in restored]))
    count, left = sum(one.originals for one in restored), sum(one.left for one in restored)
    say(f"restored {count} originals" + (f"; {left} are in no store that can be read" if left else ""))
    return NOTHING if left else OK
