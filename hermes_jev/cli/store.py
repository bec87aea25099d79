"""`jev store`: look after a store."""

from __future__ import annotations

import sys
from typing import Any

from ..settings import Settings
from ..store.index import Index
from ..stores import stores_to_read
from .common import NOTHING, OK, Commands, add_command, say, settings_from, store_argument


def add(commands: Commands) -> None:
    """Describe the command and those under it."""
    parser = commands.add_parser("store", help="Look after a store.", description="Look after a store.")
    inner = parser.add_subparsers(dest="store_command", required=True, metavar="COMMAND")
    rebuild = add_command(
        inner, "rebuild", "Make the search index anew from the stored originals.", "jev store rebuild", _run_rebuild
    )
    store_argument(rebuild)


def _run_rebuild(arguments: Any) -> int:
    settings: Settings = settings_from()
    found = [store for store in stores_to_read(arguments.store, settings) if store.path.exists()]
    for store in found:
        count = Index(store).rebuild(_progress if sys.stderr is not None and sys.stderr.isatty() else None)
        say(f"{store.folder}: {count} outputs can be searched")
    if not found:
        say("there is no store yet")
    return OK if found else NOTHING


def _progress(done: int, total: int) -> None:
    sys.stderr.write(f"\r{done:,} of {total:,}" + ("\n" if done == total else ""))
    sys.stderr.flush()
