"""Context compaction that keeps every word, shortens old tool output, and brings every byte back.

`prune` shortens old tool output and `restore` puts every original back; `select` weighs each turn for a digest;
`compact` fits a transcript into a number of bytes. Inside Hermes `register` adds the context engine `hermes_jev`.
"""

from __future__ import annotations

from typing import Any

from .compact import Compacted, acompact, compact
from .prune import Pruned, aprune, prune
from .restore import restore
from .select import Selected, aselect, select
from .settings import Settings

__all__ = [
    "Compacted",
    "Pruned",
    "Selected",
    "Settings",
    "acompact",
    "aprune",
    "aselect",
    "compact",
    "prune",
    "register",
    "restore",
    "select",
]
__version__ = "0.1.0"


def register(ctx: Any) -> None:
    """The plugin's entry: Hermes calls it with its plugin context."""
    from .engine import register as register_engine

    register_engine(ctx)
