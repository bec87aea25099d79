"""What commands share: exit codes, arguments, reading inputs, writing results."""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from ..effective import outside
from ..errors import ConfigError, InputError
from ..inputs import Document, read_document
from ..judge.replay import Recorded
from ..settings import Resolved, Settings, Source

OK, NOTHING, USAGE, JUDGE_FAILED = 0, 1, 2, 3
"""Done; something is missing, unhealthy or could not be stored; usage or input; the judge failed and `--strict`."""

_PART = 1 << 20
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


def file_argument(command: Any, default: str | None = None) -> None:
    """The transcript to read; with a default it may be left out."""
    more: dict[str, Any] = {"nargs": "?", "default": default} if default else {}
    command.add_argument("file", metavar="FILE", help="a transcript; - is stdin", **more)


def judge_argument(command: Any) -> None:
    """Who judges."""
    command.add_argument("--judge", choices=("auto", "jev", "lexical"), default="auto", help="who decides")


def scores_argument(command: Any) -> None:
    """Who judges: somebody, or the record of earlier scores."""
    group = command.add_mutually_exclusive_group()
    judge_argument(group)
    group.add_argument(
        "--scores", metavar="PATH", help="decide by recorded scores instead: receipts, or the folder of a store"
    )


def chosen_judge(arguments: Any) -> str | Recorded:
    """The judge that the arguments of `scores_argument` name. Raises InputError for a record that cannot be read."""
    if arguments.scores is None:
        return str(arguments.judge)
    # Only these runs need it.
    from ..replay import read_scores

    scores = read_scores(arguments.scores)
    if not scores:
        raise InputError(f"{arguments.scores}: no scores are on record there")
    return Recorded(scores)


def say_missing(judge: str | Recorded) -> None:
    """Say how much was asked of the record and is not in it: it is not made up."""
    if isinstance(judge, Recorded) and judge.missing:
        say(f"{len(judge.missing)} have no score on record and are treated as not judged")


def strict_argument(command: Any) -> None:
    """Whether a judge that failed is a failure of the command."""
    command.add_argument("--strict", action="store_true", help="exit with 3 when the judge failed")


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
    return _counted(text, "a whole number of tokens")


def whole_number(text: str) -> int:
    """An argument type: a whole number from 0 on."""
    return _counted(text, "a whole number from 0 on")


def _counted(text: str, what: str) -> int:
    try:
        value = int(text.replace("_", "").replace(",", ""))
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{what} is needed, not {text[:40]!r}")
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


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A function for (done, of) that draws a bar on stderr; None when that is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    # Only a terminal needs it.
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def require_window(tokens: int | None) -> None:
    """Raises InputError for a window of no tokens."""
    if tokens == 0:
        raise InputError(f"a window of {tokens} tokens holds nothing; name the model's")


def read(name: str) -> Document:
    """The document in a file, or on stdin for `-`. Raises InputError."""
    if name == "-":
        if sys.stdin is None:
            raise InputError("stdin: it is closed")
        # In parts: a Ctrl-C between two reads of one long call would be noticed only with the next one.
        stream = cast("io.BufferedIOBase", sys.stdin.buffer)
        return read_document(b"".join(iter(lambda: stream.read1(_PART), b"")), "stdin")
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    return read_document(data, name)


def only_conversation(name: str) -> list[Any]:
    """The messages of a document that holds one conversation. Raises InputError when it holds several."""
    document = read(name)
    if len(document.parts) != 1:
        raise InputError(f"{name}: it holds {len(document.parts)} sessions; one is needed")
    return document.parts[0]


def write_file(name: str, text: str) -> None:
    """Write a file whole or not at all. Raises InputError that says why it cannot be written."""
    file = Path(name)
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(text.encode("utf-8", "surrogatepass"))
        beside.replace(file)
    except OSError as error:
        raise InputError(f"{name}: cannot be written: {error.strerror}") from None
    finally:
        beside.unlink(missing_ok=True)


def out(text: str) -> None:
    """Results are UTF-8 whatever the terminal speaks; an original may hold what UTF-8 proper has no form for."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "stdout is closed")
    data = text.encode("utf-8", "surrogatepass")
    with _uninterrupted():
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Into a file a result is written whole or not at all: Ctrl-C waits for it. A pipe may block, and so does not."""
    if sys.platform == "win32" or not _is_file(sys.stdout):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_file(stream: Any) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


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
