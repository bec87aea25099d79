"""The command line `jev`: results on stdout, everything else on stderr.

Exit codes: 0 done, 1 something is missing or could not be stored, 2 usage or input, 3 the judge failed and `--strict`.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from . import __version__, demo
from .errors import ConfigError, InputError, JevError, NotStored, StoreError
from .inputs import Document, read_document
from .policy import should_compact
from .prune import prune
from .receipts import Receipt
from .restore import cuts_in, restore
from .settings import Settings, Source, environment_source, resolve
from .stores import stores_to_read

OK, NOTHING, USAGE, JUDGE_FAILED = 0, 1, 2, 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        _out("")
    except (InputError, ConfigError) as error:
        return _complain(str(error), USAGE)
    except JevError as error:
        return _complain(str(error), NOTHING)
    except BrokenPipeError:
        _drop_output()
        return OK
    except OSError as error:
        _drop_output()
        return _complain(f"the output cannot be written: {error.strerror or type(error).__name__}", NOTHING)
    except KeyboardInterrupt:
        return 130
    return code


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="jev",
        description="Shorten old tool output in agent transcripts, keep every word, bring every byte back.",
    )
    parser.add_argument("--version", action="version", version=f"jev {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _prune_command(commands)
    _restore_command(commands)
    _expand_command(commands)
    _should_command(commands)
    _demo_command(commands)
    return parser


Commands = Any


def _add(commands: Commands, name: str, summary: str, example: str, run: Callable[[Any], int]) -> Any:
    command = commands.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=f"example: {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    return command


def _prune_command(commands: Commands) -> None:
    command = _add(
        commands,
        "prune",
        "Shorten or remove old tool results; every original is stored first.",
        "jev prune session.json > shorter.json",
        _run_prune,
    )
    _file(command)
    _store(command)
    command.add_argument("--judge", choices=("auto", "jev", "lexical"), default="auto", help="who decides")
    command.add_argument("--task", help="what the work is about; goes before the newest request")
    command.add_argument(
        "--context-length",
        type=_tokens,
        metavar="TOKENS",
        help="the model's window: a pass then stops early when there is room",
    )
    command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting, may be repeated")
    command.add_argument("--stats", choices=("text", "json"), default="text", help="the summary on stderr")
    command.add_argument("--strict", action="store_true", help="exit with 3 when the judge failed")


def _restore_command(commands: Commands) -> None:
    command = _add(
        commands,
        "restore",
        "Put every original back.",
        "jev restore shorter.json > again.json",
        _run_restore,
    )
    _file(command)
    _store(command)
    command.add_argument(
        "--keep-missing", action="store_true", help="leave what no store knows as it is, and exit with 1"
    )


def _expand_command(commands: Commands) -> None:
    command = _add(commands, "expand", "Print one original, exactly.", "jev expand r-abcdefghij", _run_expand)
    command.add_argument("id", help='the pointer that a notice names, like r-abcdefghij or expand(id="r-abcdefghij")')
    command.add_argument(
        "--part", choices=("result", "arguments"), default="result", help="what the call returned or was given"
    )
    _store(command)


def _should_command(commands: Commands) -> None:
    command = _add(
        commands,
        "should-compact",
        "Say whether a window is full enough for a pass: no, compact or urgent.",
        "jev should-compact 130000 200000",
        _run_should,
    )
    command.add_argument("used", type=_tokens, metavar="USED", help="tokens in the window")
    command.add_argument("window", type=_tokens, metavar="WINDOW", help="tokens of the window")


def _demo_command(commands: Commands) -> None:
    command = _add(
        commands,
        "demo",
        "Prune a bundled real session offline, show before and after, and read one original back.",
        "jev demo",
        lambda arguments: demo.run(arguments.store, _out),
    )
    command.add_argument("--store", type=Path, metavar="DIR", help="keep the demo's store here")


def _file(command: Any) -> None:
    command.add_argument("file", metavar="FILE", help="a transcript; - is stdin")


def _store(command: Any) -> None:
    command.add_argument(
        "--store",
        type=Path,
        metavar="DIR",
        help="folder of the store; without it $HERMES_HOME's, else the user's (reading also looks in ~/.hermes)",
    )


def _tokens(text: str) -> int:
    try:
        value = int(text.replace("_", "").replace(",", ""))
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"a whole number of tokens is needed, not {text[:40]!r}")
    return value


def _settings(pairs: Sequence[str] = ()) -> Settings:
    flags: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair}: NAME=VALUE is needed")
        flags[name.strip().replace("-", "_")] = _value(value)
    found = resolve([environment_source(os.environ), Source("--set", flags)], strict=True)
    for problem in found.problems:
        _say(f"warning: {problem}")
    return found.settings


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _run_prune(arguments: Any) -> int:
    _require_window(arguments.context_length)
    settings = _settings(arguments.set)
    document = _read(arguments.file)
    results = [
        prune(part, arguments.judge, arguments.store, settings, arguments.task, arguments.context_length)
        for part in document.parts
    ]
    _out(document.dump([result.messages for result in results]))
    failed = broken = False
    for result in results:
        _summarise(result.receipt, arguments.stats)
        failed = failed or result.receipt.outcome == "judge_failed" or result.receipt.partial
        broken = broken or result.receipt.outcome == "error"
    if broken:
        return NOTHING
    return JUDGE_FAILED if failed and arguments.strict else OK


def _summarise(receipt: Receipt, form: str) -> None:
    if form == "json":
        _say(receipt.to_json(decisions=False))
    else:
        _say(receipt.summary())


def _run_restore(arguments: Any) -> int:
    document = _read(arguments.file)
    missing: Literal["raise", "keep"] = "keep" if arguments.keep_missing else "raise"
    restored = [restore(part, arguments.store, missing) for part in document.parts]
    _out(document.dump(restored))
    count = sum(_changed(before, after) for before, after in zip(document.parts, restored, strict=True))
    left = sum(1 for part in restored for cut in cuts_in(part).values() if cut.notice.whole)
    _say(f"restored {count} results" + (f"; {left} are in no store that can be read" if left else ""))
    return NOTHING if left else OK


def _changed(before: Sequence[Any], after: Sequence[Any]) -> int:
    return sum(1 for old, new in zip(before, after, strict=True) if old is not new)


def _run_expand(arguments: Any) -> int:
    found = re.search(r"\br-[a-z2-7]{10,}", arguments.id)
    pointer = found[0] if found else arguments.id
    stores = stores_to_read(arguments.store, _settings())
    looked = ", ".join(str(store.folder) for store in stores)
    problems: list[StoreError] = [
        NotStored(f"nothing is stored under {pointer[:40]!r} (looked in {looked}); --store names another folder")
    ]
    for store in stores:
        try:
            original = store.get(pointer, None)
        except NotStored:
            continue
        except StoreError as error:
            problems.append(error)
            continue
        value = original.result if arguments.part == "result" else original.arguments
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        _out(text)
        return OK
    raise _worst(problems)


def _worst(problems: Sequence[StoreError]) -> StoreError:
    """What to tell when no store could help: a store that is damaged says more than one that holds nothing."""
    damaged = [problem for problem in problems if not isinstance(problem, NotStored)]
    return (damaged or list(problems))[0]


def _run_should(arguments: Any) -> int:
    _require_window(arguments.window)
    _out(should_compact(arguments.used, arguments.window, _settings()) + "\n")
    return OK


def _require_window(tokens: int | None) -> None:
    if tokens == 0:
        raise InputError(f"a window of {tokens} tokens holds nothing; name the model's")


def _read(name: str) -> Document:
    if name == "-":
        if sys.stdin is None:
            raise InputError("stdin: it is closed")
        return read_document(sys.stdin.buffer.read(), "stdin")
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    return read_document(data, name)


def _out(text: str) -> None:
    """Results are UTF-8 whatever the terminal speaks; an original may hold what UTF-8 proper has no form for."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "stdout is closed")
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
    sys.stdout.buffer.flush()


def _drop_output() -> None:
    """Nobody takes the results any more; what is left in the buffer must not raise again at exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")


def _complain(text: str, code: int) -> int:
    _say(f"jev: {text}")
    return code


def entry() -> NoReturn:
    """For `python -m hermes_jev.cli`."""
    sys.exit(main())


if __name__ == "__main__":
    entry()
