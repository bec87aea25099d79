"""Fit the weights of the line picker and say what they are worth on sessions they have not seen.

    python benchmarks/fit_facts.py            fit, report, print the weights module
    python benchmarks/fit_facts.py --check    fail if the shipped weights are not these
    python benchmarks/fit_facts.py --write    write the weights module

A line of an old result is needed when it holds an exact string that a later step writes and that nothing else before
it has (`hermes_jev/evals/needed.py`); transcripts are those of `--kit`, by default ../shared/evaldata. The weights that
ship are fitted on all sessions; what is reported of a session comes from weights fitted without it, and without what
else belongs to it. The fit is a maximum a posteriori one: a Gaussian prior per weight says what is expected of a line
before any was seen, and how surely. Lines of one result are compared with each other, and a transcript with very many
needed lines does not count more than five.

Standard library and this package only. Takes a minute or two.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fitting import auc, mean, most_probable

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


from hermes_jev import facts  # noqa: E402 - a script finds its own package first
from hermes_jev import facts_weights as shipped  # noqa: E402
from hermes_jev.evals import engine_policy, rankers  # noqa: E402
from hermes_jev.evals.case import Case, case_of  # noqa: E402
from hermes_jev.evals.corpus import sessions  # noqa: E402
from hermes_jev.evals.generic import FILE_NAME, load  # noqa: E402
from hermes_jev.evals.plans import carry_out  # noqa: E402
from hermes_jev.evals.score import loss_of  # noqa: E402
from hermes_jev.facts import FEATURES, rows  # noqa: E402
from hermes_jev.judge import Lexical  # noqa: E402
from hermes_jev.policy import Action, Cuts  # noqa: E402
from hermes_jev.scene import Line, Scene  # noqa: E402
from hermes_jev.settings import Settings  # noqa: E402
from hermes_jev.signals import report, signal_of, template  # noqa: E402
from hermes_jev.store import Store  # noqa: E402
from hermes_jev.store.values import ANY_POINTER  # noqa: E402
from hermes_jev.transcript import Exchange, Transcript  # noqa: E402
from hermes_jev.wrapping import unwrap  # noqa: E402

CUTS = (0.4, 0.6, 0.8)
SHARES = (0.5, 0.7, 0.8)
NAMES = ("bias", *FEATURES)
FITTED_ON = Settings(pin_max_chars=600, pin_last_calls=1, excerpt_chars=100)
"""Results of 600 characters teach too; the engine itself leaves those of up to 1,500 alone."""
EVERY = 5
"""Of the lines that are not needed every fifth is fitted, and counts five times."""
MOST_NEEDED = 5

Weights = tuple[float, ...]
"""The bias, then one weight for each feature."""

# (mean, standard deviation), in logits. Strings are needed that stand nowhere else and belong to what is being done;
# of lines that differ only in numbers one is as good as another; what a line defines is used more often than what it
# does, and what stands at the margin more often than what stands deep inside. Per character, long lines are dearer,
# which the picker sees to; very short ones hold little. The deviations are wide, so that the transcripts decide, but
# for two: few transcripts hold lists of open tasks, and that the next ones will be worked on needs no proof; and what
# the task names must stay even where nothing else speaks for it.
PRIOR = {
    "bias": (-6.0, 1.5),
    "length": (0.0, 0.9),
    "short": (-1.0, 1.5),
    "fresh": (1.2, 1.2),
    "only": (0.3, 0.9),
    "reused": (0.8, 1.2),
    "goal": (2.5, 0.3),
    "recent": (1.2, 1.8),
    "path": (0.4, 0.9),
    "defines": (0.5, 0.9),
    "early": (0.0, 1.2),
    "repeats": (-0.4, 0.6),
    "depth": (0.0, 0.9),
    "open": (3.0, 0.5),
}


class Item(NamedTuple):
    """One line: its features, whether it is needed, how much it counts in the fit."""

    row: tuple[float, ...]
    needed: bool
    counts: float


def cases_in(kit: Path) -> list[Case]:
    """Every cut of every session in which losses can be measured."""
    generic = load(kit / FILE_NAME)
    cut = (case_of(session, share, generic, Settings()) for session in sessions([str(kit)]) for share in CUTS)
    return [case for case in cut if case is not None and case.measures_loss]


def at_risk(case: Case, exchange: Exchange) -> list[str]:
    """Needed strings that stand in this result and in no arguments, which always stay."""
    return [
        need.text
        for need in case.needs
        if exchange.result_at in need.results and all(carrier.slot is None for carrier in need.carriers)
    ]


# ------------------------------------------------------------------------------------------------------------- fitting


def labelled(case: Case, settings: Settings) -> list[list[tuple[tuple[float, ...], bool]]]:
    """Features and label of the weighed lines of each large result."""
    transcript = Transcript.parse(case.prefix)
    scene = Scene.of(transcript, settings, None)
    found = []
    for exchange in transcript.completed:
        if exchange.ordinal not in scene.lines or exchange.result_at is None:
            continue
        lines = scene.lines[exchange.ordinal]
        risk = at_risk(case, exchange)
        found.append(
            [
                (row, any(text in line.text for text in risk))
                for line, row in zip(lines, rows(lines, exchange.result_at, scene), strict=True)
                if row is not None and line.start >= settings.excerpt_chars
            ]
        )
    return found


def items_of(case: Case) -> list[Item]:
    """What is fitted of a case: every needed line and every fifth of the others."""
    lines = [pair for result in labelled(case, FITTED_ON) for pair in result]
    needed = sum(label for _, label in lines)
    count = 1 / len(CUTS)
    found = [Item(row, True, count * min(1.0, MOST_NEEDED / needed)) for row, label in lines if label]
    others = [row for row, label in lines if not label]
    return found + [Item(row, False, count * EVERY) for row in others[::EVERY]]


def fit(items: Sequence[Item], start: Weights | None = None) -> Weights:
    """The most probable weights under the prior; `start` is where the search begins."""
    design = [((1.0, *item.row), item.needed, item.counts) for item in items]
    return tuple(round(b, 3) for b in most_probable(design, [PRIOR[name] for name in NAMES], start))


def fitted_without_each(items: Mapping[str, Sequence[Item]], all_of_them: Weights) -> dict[str, Weights]:
    """For each session the weights fitted on the others."""
    return {
        group: fit([item for other, own in items.items() if other != group for item in own], all_of_them)
        for group in items
    }


@contextlib.contextmanager
def in_use(weights: Weights) -> Iterator[None]:
    """The picker with these weights in place of those that ship."""
    before = facts.BIAS, facts.WEIGHTS
    facts.BIAS, facts.WEIGHTS = weights[0], weights[1:]
    try:
        yield
    finally:
        facts.BIAS, facts.WEIGHTS = before


# ----------------------------------------------------------------------------------------------------------- reporting


def report_lines(cases: Sequence[Case], held_out: Mapping[str, Weights]) -> None:
    """Line-level AUC within each result that has a needed line, mean over results."""
    by_source: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    fresh = FEATURES.index("fresh")
    for case in cases:
        weights = held_out[case.session.group][1:]
        for result in labelled(case, Settings()):
            scored = [(sum(w * v for w, v in zip(weights, row, strict=True)), label) for row, label in result]
            ours = auc(scored)
            if not math.isnan(ours):
                head = auc([(-float(place), label) for place, (_, label) in enumerate(result)])
                marks = auc([(row[fresh], label) for row, label in result])
                for name in (case.session.source[:28], "all"):
                    by_source[name].append((ours, marks, head))
    print("\nline-level AUC within a result, behind the first 300 characters, weights fitted without the session")
    print(f"  {'source':28} {'results':>8} {'picker':>8} {'names':>8} {'place':>8}")
    for name, found in sorted(by_source.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"  {name:28} {len(found):8} " + " ".join(f"{mean(column):8.3f}" for column in zip(*found, strict=True)))


class Way(NamedTuple):
    """A picker under test: how it is set up for a case."""

    name: str
    settings: Settings
    setting_up: Callable[[Case], contextlib.AbstractContextManager[None]]


def ways(held_out: Mapping[str, Weights]) -> tuple[Way, ...]:
    """The pickers that are compared."""
    return (
        Way("no facts", Settings(fact_chars=0), lambda _: contextlib.nullcontext()),
        Way("facts, held out", Settings(), lambda case: in_use(held_out[case.session.group])),
        Way("facts as shipped", Settings(), lambda _: contextlib.nullcontext()),
        Way("best lines", Settings(), _hindsight),
    )


@contextlib.contextmanager
def _hindsight(case: Case) -> Iterator[None]:
    """The picker as it would be if it knew what is needed: the most needed strings per character."""
    before = facts.scored
    needed = [need.text for need in case.needs]

    def known(lines: Sequence[Line], result_at: int, scene: Scene) -> list[tuple[Line, float, str]]:
        held = [(line, sum(text in line.text for text in needed)) for line in lines]
        found = [(line, min(0.99, count / 4), "needed") for line, count in held if count]
        return sorted(found, key=lambda item: -item[1] / (item[0].end - item[0].start + 3))

    facts.scored = known
    try:
        yield
    finally:
        facts.scored = before


def report_lost(cases: Sequence[Case], held_out: Mapping[str, Weights]) -> None:
    """Needed strings lost at equal size in the engine's order, with the lexical judge, and recency at that size."""
    print("\nneeded strings lost, %, at equal size in the engine's order; in brackets recency at the size reached")
    compared = ways(held_out)
    print(f"  {'removed':8} {'kind':18} {'cases':>5} " + " ".join(f"{way.name:>18}" for way in compared))
    table: dict[tuple[float, str], list[list[tuple[float, float]]]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="hermes_jev_fit_") as scratch:
        store = Store(Path(scratch))
        for case in cases:
            found = [_lost(case, way, store) for way in compared]
            for share in SHARES:
                if all(way[share] is not None for way in found):
                    row = [pair for way in found if (pair := way[share]) is not None]
                    table[share, case.session.kind].append(row)
                    table[share, "~all"].append(row)
    for (share, kind), lines in sorted(table.items()):
        cells = [(mean(a for a, _ in column), mean(b for _, b in column)) for column in zip(*lines, strict=True)]
        shown = " ".join(f"{f'{lost:.1f} ({recency:.1f})':>18}" for lost, recency in cells)
        print(f"  {share:<8.0%} {kind.strip('~'):18} {len(lines):5} {shown}")


def _lost(case: Case, way: Way, store: Store) -> dict[float, tuple[float, float] | None]:
    """By share: lost here and by recency at the same size, in percent; None where the pins let less go."""
    found: dict[float, tuple[float, float] | None] = {}
    with way.setting_up(case):
        ranked = engine_policy.rank(case.prefix, Lexical(), way.settings, store)
        for share in SHARES:
            loss = loss_of(case, engine_policy.cut_to(ranked, share))
            removed = case.chars - loss.chars
            newest = carry_out(case, rankers.plan_to(case, rankers.recency(case), removed))
            pair = tuple(100 * len(one.lost) / len(case.needs) for one in (loss, loss_of(case, newest)))
            found[share] = (pair[0], pair[1]) if removed >= share * case.tool_chars - 1 else None
    return found


FORMS: tuple[tuple[Action, int], ...] = (
    ("truncate", 0),
    ("truncate", Settings().fact_chars),
    ("remove", 0),
    ("remove", Settings().fact_chars),
)


def texts_left(case: Case, action: Action, fact_chars: int) -> dict[int, str]:
    """What each result that may be cut becomes, by position."""
    settings, transcript = Settings(fact_chars=fact_chars), Transcript.parse(case.prefix)
    cuts = Cuts(settings, transcript)
    return {
        exchange.result_at: cuts.render(exchange, action, ANY_POINTER)
        for exchange in transcript.completed[: -settings.pin_last_calls]
        if exchange.size > settings.pin_max_chars
        and exchange.result_at is not None
        and cuts.gain(exchange, action) is not None
    }


def report_errors(cases: Sequence[Case]) -> None:
    """Distinct errors and failed tests of results that may be cut, and how many of them what is left still tells."""
    print(
        "\nerrors and failed tests of results that may be cut that are still told: of distinct kinds (numbers, quoted"
    )
    print("names and paths do not count), and of all that differ in more than numbers")
    for action, chars in FORMS:
        seen: set[str] = set()
        told = every = kinds_told = kinds = 0
        for case in cases:
            left = texts_left(case, action, chars)
            for exchange in case.results.values():
                if exchange.result_at in left and exchange.text not in seen:
                    seen.add(exchange.text)
                    found = errors_in(unwrap(exchange.text).payload)
                    shown = errors_in(left[exchange.result_at])
                    every += len(found)
                    told += len(found & shown)
                    kinds += len(of_kind := {template(line) for line in found})
                    kinds_told += len(of_kind & {template(line) for line in shown})
        shares = f"{kinds_told / max(1, kinds):6.1%} of {kinds} kinds, {told / max(1, every):6.1%} of {every}"
        print(f"  {f'{action}, fact_chars {chars}':26} {len(seen)} results; {shares}")


def errors_in(text: str) -> set[str]:
    """The distinct errors and failed tests among the lines of a text that are short enough to be shown whole."""
    found = ((line, signal_of(line)) for line in text.split("\n") if len(line) <= 200)
    return {report(line, signal) for line, signal in found if signal in ("error", "failed test")}


def module_text(weights: Sequence[float]) -> str:
    """The source of `hermes_jev/facts_weights.py`."""
    lines = "".join(f"    {weight!r},  # {name}\n" for name, weight in zip(FEATURES, weights[1:], strict=True))
    return (
        '"""Weights of the line picker; `benchmarks/fit_facts.py` writes this file.\n\n'
        "Logits, in the order of `facts.FEATURES`. A line whose odds are below `LEAST` never stays.\n"
        '"""\n\n'
        f"LEAST = {shipped.LEAST!r}\nBIAS = {weights[0]!r}\nWEIGHTS: tuple[float, ...] = (\n{lines})\n"
    )


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kit", type=Path, default=ROOT.parent / "shared" / "evaldata")
    parser.add_argument("--check", action="store_true", help="only compare the shipped weights with the fit")
    parser.add_argument("--write", action="store_true", help="write the weights module instead of printing it")
    options = parser.parse_args(None if arguments is None else list(arguments))
    cases = cases_in(options.kit)
    items: dict[str, list[Item]] = defaultdict(list)
    for case in cases:
        items[case.session.group] += items_of(case)
    every = [item for own in items.values() for item in own]
    print(f"fit: {len(every)} lines, {sum(item.needed for item in every)} needed, {len(items)} sessions")
    weights = fit(every)
    known = (shipped.BIAS, *shipped.WEIGHTS)
    same = len(known) == len(weights) and all(
        math.isclose(a, b, abs_tol=0.002) for a, b in zip(weights, known, strict=False)
    )
    if options.write:
        Path(shipped.__file__).write_text(module_text(weights), encoding="utf-8")
        print("written; run again for the report")
        return 0
    print("the shipped weights are these" if same else "the shipped weights are others")
    if options.check:
        return 0 if same else 1
    held_out = fitted_without_each(items, weights)
    report_lines(cases, held_out)
    report_lost(cases, held_out)
    report_errors(cases)
    print("\n" + module_text(weights))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
