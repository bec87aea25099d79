"""`jev restore`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ..restore import cuts_in, restore
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
    missing: Literal["raise", "keep"] = "keep" if arguments.keep_missing else "raise"
    restored = [restore(part, arguments.store, missing) for part in document.parts]
    out(document.dump(restored))
    count = sum(_changed(before, after) for before, after in zip(document.parts, restored, strict=True))
    left = sum(1 for part in restored for cut in cuts_in(part).values() if cut.notice.whole)
    say(f"restored {count} results" + (f"; {left} are in no store that can be read" if left else ""))
    return NOTHING if left else OK


def _changed(before: Sequence[Any], after: Sequence[Any]) -> int:
    return sum(1 for old, new in zip(before, after, strict=True) if old is not new)
