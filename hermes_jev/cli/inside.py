"""The command line under `hermes jev`: the same commands, with Hermes' home and settings."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from ..effective import hermes_entry
from ..surroundings import Surroundings
from .main import add_commands, finish


def describe(parser: Any) -> None:
    """Add every command to the parser that Hermes made for `hermes jev`."""
    add_commands(parser)


def run(arguments: Any, around: Surroundings) -> NoReturn:
    """Run one command, and exit with its code."""
    os.environ["HERMES_HOME"] = str(around.home())
    hermes_entry.set(around.config())
    sys.exit(finish(arguments))
