"""Parse, run one command, and turn what went wrong into a sentence and an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .. import __version__
from ..errors import ConfigError, InputError, JevError
from . import (
    compact,
    compact_select,
    config,
    demo,
    doctor,
    eval,
    expand,
    handoff,
    prune,
    receipts,
    replay,
    report,
    restore,
    score,
    search,
    serve,
    should_compact,
    stats,
    store,
)
from .common import NOTHING, OK, USAGE, complain, drop_output, out

COMMANDS = (
    prune,
    compact_select,
    compact,
    score,
    expand,
    search,
    restore,
    should_compact,
    receipts,
    replay,
    report,
    stats,
    store,
    eval,
    handoff,
    config,
    doctor,
    serve,
    demo,
)
"""One module a command, in the order of `jev --help`; each has `add(commands)`."""

ALIAS = (compact, score, receipts, doctor)
"""Those of `jev-compact`."""

_FIRST = {"prune": "prune session.json > shorter.json", "compact": "compact session.json > smaller.json"}


def main(argv: Sequence[str] | None = None, parser: argparse.ArgumentParser | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = parser or build_parser()
    return finish(parser.parse_args(argv))


def finish(arguments: Any) -> int:
    """Run what was parsed; returns the exit code."""
    try:
        code: int = arguments.run(arguments)
        out("")
    except (InputError, ConfigError) as error:
        return complain(str(error), USAGE)
    except JevError as error:
        return complain(str(error), NOTHING)
    except BrokenPipeError:
        drop_output()
        return OK
    except OSError as error:
        drop_output()
        return complain(f"the output cannot be written: {error.strerror or type(error).__name__}", NOTHING)
    except KeyboardInterrupt:
        return 130
    return code


def compact_main(argv: Sequence[str] | None = None) -> int:
    """`jev-compact`: the commands about a byte budget under the name of their own tool."""
    return main(argv, build_parser("jev-compact", ALIAS))


def build_parser(name: str = "jev", modules: Sequence[Any] = COMMANDS) -> argparse.ArgumentParser:
    """The whole command line, or a part of it under another name."""
    parser = argparse.ArgumentParser(
        prog=name,
        description="Shorten old tool output in agent transcripts, keep every word, bring every byte back.",
        epilog=f"example: {name} {_FIRST[modules[0].__name__.rsplit('.', 1)[-1]]}\n"
        f"`{name} COMMAND --help` has one for each command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{name} {__version__}")
    add_commands(parser, modules)
    return parser


def add_commands(parser: argparse.ArgumentParser, modules: Sequence[Any] = COMMANDS) -> None:
    """Add the commands to a parser; which one was given is then `run` of the parsed arguments."""
    # Named so that it takes nothing from a program that this parser is a part of.
    commands = parser.add_subparsers(dest="jev_command", required=True, metavar="COMMAND")
    for command in modules:
        command.add(commands)


def entry() -> NoReturn:
    """Run and exit: for `python -m hermes_jev`."""
    sys.exit(main())
