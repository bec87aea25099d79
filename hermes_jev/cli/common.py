"""What commands share: exit codes, arguments, reading inputs, writing results."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ..effective import outside
from ..errors import ConfigError, InputError
from ..inputs import Document, read_document
from ..settings import Resolved, Settings, Source

OK, NOTHING, USAGE, JUDGE_FAILED = 0, 1, 2, 3
"""Done; something is missing, unhealthy or could not be stored; usage or input; the judge failed and `--strict`."""

T = TypeVar("T")
Commands = Any
"""What `argparse.ArgumentParser.add_subparsers` returns."""


def add_command(commands: Commands, name: str, summary: str, example: str, run: Callable[[Any], int]) -> Any:
    """A command whose arguments are then handed to `run`, which returns the exit code."""
    command = commands.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=f"example: {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    return command


def file_argument(command: Any) -> None:
    """The transcript to read."""
    command.add_argument("file", metavar="FILE", help="a transcript; - is stdin")


def store_argument(command: Any) -> None:
    """Where the store is."""
    command.add_argument(
        "--store",
        type=Path,
        metavar="DIR",
        help="folder of the store; without it $HERMES_HOME's, else the user's (reading also looks in ~/.hermes)",
    )


def tokens(text: str) -> int:
    """An argument type: a whole number of tokens."""
    try:
        value = int(text.replace("_", "").replace(",", ""))
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"a whole number of tokens is needed, not {text[:40]!r}")
    return value


def settings_from(pairs: Sequence[str] = ()) -> Settings:
    """The settings in force. Raises ConfigError for what cannot be used."""
    return resolved_from(pairs).settings


def resolved_from(pairs: Sequence[str] = ()) -> Resolved:
    """The settings in force and where each came from: the user's file, the environment, then `--set NAME=VALUE`."""
    flags: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair}: NAME=VALUE is needed")
        flags[name.strip().replace("-", "_")] = _value(value)
    found = outside(os.environ, Source("--set", flags))
    for problem in found.problems:
        say(f"warning: {problem}")
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def set_argument(command: Any) -> None:
    """Settings for this run alone."""
    command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting, may be repeated")


def progress(items: Sequence[T], what: str) -> Iterator[T]:
    """The items one by one, with a bar on stderr when that is a terminal and there is more than one."""
    if sys.stderr is None or not sys.stderr.isatty() or len(items) < 2:
        yield from items
        return
    # Only a terminal needs it.
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description=what, console=Console(stderr=True), transient=True)


def require_window(tokens: int | None) -> None:
    """Raises InputError for a window of no tokens."""
    if tokens == 0:
        raise InputError(f"a window of {tokens} tokens holds nothing; name the model's")


def read(name: str) -> Document:
    """The document in a file, or on stdin for `-`. Raises InputError."""
    if name == "-":
        if sys.stdin is None:
            raise InputError("stdin: it is closed")
        return read_document(sys.stdin.buffer.read(), "stdin")
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    return read_document(data, name)


def out(text: str) -> None:
    """Results are UTF-8 whatever the terminal speaks; an original may hold what UTF-8 proper has no form for."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "stdout is closed")
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
    sys.stdout.buffer.flush()


def drop_output() -> None:
    """Nobody takes the results any more; what is left in the buffer must not raise again at exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """One line on stderr."""
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")


def complain(text: str, code: int) -> int:
    """Say what went wrong; returns the code."""
    say(f"jev: {text}")
    return code
