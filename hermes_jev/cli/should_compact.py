"""`jev should-compact`."""

from __future__ import annotations

from typing import Any

from ..policy import should_compact
from .common import OK, Commands, add_command, out, require_window, settings_from, tokens


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "should-compact",
        "Say whether a window is full enough for a pass: no, compact or urgent.",
        "jev should-compact 130000 200000",
        _run_should,
    )
    command.add_argument("used", type=tokens, metavar="USED", help="tokens in the window")
    command.add_argument("window", type=tokens, metavar="WINDOW", help="tokens of the window")


def _run_should(arguments: Any) -> int:
    require_window(arguments.window)
    out(should_compact(arguments.used, arguments.window, settings_from()) + "\n")
    return OK
