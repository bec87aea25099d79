"""`jev eval`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError
from . import eval_handoff
from .common import NOTHING, OK, Commands, add_command, out, require_window, say, settings_from, tokens

_WIDE = 100
"""A terminal narrower than this gets its tables unfolded, since folded numbers cannot be read."""


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "eval",
        "Compare ways of cutting on transcripts, at equal size: what is removed, what that was still needed is lost.",
        "jev eval sessions/ --json all.json --picture loss.svg",
        _run_eval,
    )
    command.add_argument(
        "paths", nargs="+", metavar="PATH",
        help="transcripts: files, folders, or an export of Hermes; `handoff` before them compares what the writer of a "
        "handoff can be given",
    )  # fmt: skip
    command.add_argument("--policies", metavar="NAMES", help="with commas; keep-last-N, last-N-stubs, … (default: all)")
    command.add_argument(
        "--judge", metavar="NAMES", default="lexical",
        help="with commas: lexical, zero, oracle, oracle+0.3 (that share of it is chance), jev (asks the service)",
    )  # fmt: skip
    command.add_argument("--cuts", type=_shares, default=(0.4, 0.6, 0.8), help="where sessions are cut: .4,.6,.8")
    command.add_argument("--shares", type=_shares, default=(0.3, 0.5, 0.7, 0.8), help="sizes compared: .3,.5,.7,.8")
    command.add_argument("--thresholds", action="store_true", help="also the engine at thresholds from 0.05 to 0.9")
    command.add_argument("--cycles", action="store_true", help="also 40 passes over each growing session")
    command.add_argument("--cost", action="store_true", help="also a replay call by call with cache prices")
    command.add_argument("--window", type=tokens, default=100_000, metavar="TOKENS", help="window of the replay")
    command.add_argument("--prices", metavar="USD", help="per million: input,output,cached,written (3,15,.3,3.75)")
    command.add_argument("--min-chars", type=tokens, default=0, metavar="N", help="leave shorter prefixes out")
    command.add_argument("--generic", metavar="FILE", help="list of strings that show no need (default: beside PATH)")
    command.add_argument("--half", choices=("even", "odd"), help="sessions with such a hash alone, to tune or report")
    command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting, may be repeated")
    command.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    command.add_argument("--picture", type=Path, metavar="FILE.svg", help="write a picture of loss against size")
    command.add_argument("--markdown", action="store_true", help="the tables as Markdown")
    command.add_argument("--seed", type=int, default=7, help="of chance and of the intervals")
    command.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")


def _shares(text: str) -> tuple[float, ...]:
    """An argument type: shares between 0 and 1, with commas."""
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(0 < value < 1 for value in values):
        raise argparse.ArgumentTypeError(f"shares between 0 and 1 with commas are needed, not {text[:40]!r}")
    return values


def _run_eval(arguments: Any) -> int:
    if arguments.paths[0] == "handoff" and len(arguments.paths) > 1:
        return eval_handoff.run(arguments.paths[1:], arguments, _width())
    # A shell that only prunes need not load this.
    from ..evals.picture import picture
    from ..evals.report import markdown, tables, text, to_json
    from ..evals.run import evaluate

    plan = _plan(arguments)
    with _progress(arguments.paths, plan.half) as progress:
        found = evaluate(arguments.paths, plan, progress)
    for problem in found.skipped:
        say(f"passed over: {problem}")
    if not found.sessions:
        say("jev: no session could be read")
        return NOTHING
    shown = tables(found)
    if arguments.markdown:
        out("\n\n".join(f"## {table.title}\n\n{markdown(table)}" for table in shown) + "\n")
    else:
        out(text(shown, _width()))
    _write(arguments.json, lambda: json.dumps(to_json(found), ensure_ascii=False, indent=1) + "\n")
    _write(arguments.picture, lambda: picture(found))
    say(f"{found.sessions} sessions, {found.cases} cases")
    return OK if found.rows or found.passes else NOTHING


def _plan(arguments: Any) -> Any:
    """What to do. Raises InputError for names and numbers that cannot be used."""
    from ..evals import baselines
    from ..evals.judges import check_name
    from ..evals.options import ENGINE, Options
    from ..evals.prices import Prices, prices_from
    from ..evals.run import Plan

    require_window(arguments.window)
    if arguments.jobs < 1:
        raise InputError("--jobs: at least 1")
    policies = _names(arguments.policies) if arguments.policies else Options().policies
    for name in policies:
        if name != ENGINE:
            baselines.policy(name)
    judges = _names(arguments.judge)
    for name in judges:
        check_name(name)
    options = Options(
        cuts=arguments.cuts,
        shares=arguments.shares,
        policies=policies,
        judges=judges,
        thresholds=arguments.thresholds,
        seed=arguments.seed,
        least_chars=arguments.min_chars,
        settings=settings_from(arguments.set),
    )
    prices = prices_from(arguments.prices) if arguments.prices else Prices()
    return Plan(
        options=options,
        cycles=arguments.cycles,
        cost=arguments.cost,
        window=arguments.window,
        prices=prices,
        generic=arguments.generic,
        half=arguments.half,
        jobs=arguments.jobs,
    )


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise InputError("a list of names with commas is needed")
    return names


def _write(path: Path | None, content: Callable[[], str]) -> None:
    if path is None:
        return
    try:
        path.write_text(content(), encoding="utf-8", errors="surrogatepass")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _width() -> int | None:
    """Columns of the terminal; None where the output is no terminal, or a narrow one."""
    import shutil

    columns = shutil.get_terminal_size().columns
    return columns if sys.stdout.isatty() and columns >= _WIDE else None


@contextmanager
def _progress(paths: list[str], half: Any) -> Iterator[Callable[[str, int], None] | None]:
    """A bar on stderr when that is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    from ..evals.run import count_sessions

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("evaluating", total=count_sessions(paths, half))
        yield lambda name, done: bar.update(task, completed=done, description=name[:40])
