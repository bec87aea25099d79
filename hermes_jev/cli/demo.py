"""`jev demo`."""

from __future__ import annotations

from pathlib import Path

from .. import demo
from .common import Commands, add_command, out


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "demo",
        "Prune a bundled real session offline, show before and after, and read one original back.",
        "jev demo",
        lambda arguments: demo.run(arguments.store, out),
    )
    command.add_argument("--store", type=Path, metavar="DIR", help="keep the demo's store here")
