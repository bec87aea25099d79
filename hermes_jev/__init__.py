"""Context compaction that keeps every word, shortens old tool output, and brings every byte back.

`prune` shortens a transcript, `restore` puts every original back. Inside Hermes `register` adds the context engine
`hermes_jev`.
"""

from __future__ import annotations

from typing import Any

from .prune import Pruned, aprune, prune
from .restore import restore
from .settings import Settings

__all__ = ["Pruned", "Settings", "aprune", "prune", "register", "restore"]
__version__ = "0.1.0"


def register(ctx: Any) -> None:
    """The plugin's entry: Hermes calls it with its plugin context."""
    from .engine import register as register_engine

    register_engine(ctx)
