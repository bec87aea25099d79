"""Fit the weights of the line picker and say what they are worth on sessions they have not seen.

    python benchmarks/fit_facts.py            fit, report, print the weights module
    python benchmarks/fit_facts.py --check    fail if the shipped weights are not these
    python benchmarks/fit_facts.py --write    write the weights module

A line of an old result is needed when it holds an exact string that a later step writes and that no kept text has; the
evaluation kit (`--kit`, by default ../shared/evaldata) finds those strings. Sessions with an even hash are fitted, odd
ones reported. The even ones hold few needs and no long coding session, so the fit is a maximum a posteriori one: a
Gaussian prior per weight says what is expected of a line before any was seen, and how surely. Lines of one result are
compared with each other, never with lines of another kind of session; a transcript with very many needed lines does not
count more than five.

Standard library and this package only. Takes about half a minute.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fitting import mean, solve

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


from hermes_jev import facts_weights as shipped  # noqa: E402 - a script finds its own package first
from hermes_jev.facts import FEATURES, rows  # noqa: E402
from hermes_jev.policy import Action, Cuts  # noqa: E402
from hermes_jev.scene import Scene  # noqa: E402
from hermes_jev.settings import Settings  # noqa: E402
from hermes_jev.signals import report, signal_of, template  # noqa: E402
from hermes_jev.transcript import Transcript  # noqa: E402
from hermes_jev.wrapping import unwrap  # noqa: E402

CUTS = (0.4, 0.6, 0.8)
SHARES = (0.5, 0.7, 0.8)
NAMES = ("bias", *FEATURES)
POINTER = "r-aaaaaaaaaa"
FITTED_ON = Settings(pin_max_chars=600, pin_last_calls=1, excerpt_chars=100)
"""Results of 600 characters teach too; the engine itself leaves those of up to 1,500 alone."""
EVERY = 5
"""Of the lines that are not needed every fifth is fitted, and counts five times."""

# (mean, standard deviation), in logits. Strings are needed that stand nowhere else and belong to what is being done;
# of lines that differ only in numbers one is as good as another; what a line defines is used more often than what it
# does. Per character, long lines are dearer, which the picker sees to; very short ones hold little.
PRIOR = {
    "bias": (-6.0, 0.5),
    "length": (0.0, 0.3),
    "short": (-1.0, 0.5),
    "fresh": (1.2, 0.4),
    "only": (0.3, 0.3),
    "reused": (0.8, 0.4),
    "goal": (2.5, 0.3),
    "recent": (1.2, 0.6),
    "path": (0.4, 0.3),
    "defines": (0.5, 0.3),
    "early": (0.0, 0.4),
    "repeats": (-0.4, 0.2),
}


class Item(NamedTuple):
    """One line: its features, whether it is needed, how much it counts in the fit."""

    row: tuple[float, ...]
    needed: bool
    counts: float


@dataclass(frozen=True)
class Case:
    """One transcript cut at one place: what the kit says of it, and what the engine sees before the cut."""

    kit: Any
    transcript: Transcript

    @property
    def source(self) -> str:
        return str(self.kit.t["source"])[:28]

    def at_risk(self, result_at: int) -> list[str]:
        """Needed strings that stand in this result and in no arguments, which always stay."""
        return [
            span["s"]
            for span in self.kit.spans
            if any(place == result_at and kept is None for place, kept in span["car"])
            and not any(kept for _, kept in span["car"])
        ]


class Kit:
    """The evaluation kit's modules and the cases made of its transcripts."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder))
        self.policies: Any = importlib.import_module("policies")
        self.needed: Any = importlib.import_module("needed")
        loader: Any = importlib.import_module("loader")
        self._generic = self.needed.load_generic()
        self._transcripts = list(loader.load())

    def cases(self, *, even: bool) -> list[Case]:
        """Every cut of every session whose hash is even, or odd. Independent tasks in a row count as one session."""
        found = []
        for transcript in self._transcripts:
            session = self.needed.session_of(transcript)
            if (int(hashlib.sha1(session.encode()).hexdigest()[:8], 16) % 2 == 0) != even:
                continue
            for cut in CUTS:
                case = self.policies.Case(transcript, cut, self._generic)
                if case.spans and len(case.P) >= 5 and case.tool >= 4_000:
                    found.append(Case(case, Transcript.parse(case.m[: case.cut])))
        return found


# ------------------------------------------------------------------------------------------------------------- fitting


def labelled(case: Case, settings: Settings) -> list[list[tuple[tuple[float, ...], bool]]]:
    """Features and label of the weighed lines of each large result."""
    scene = Scene.of(case.transcript, settings, None)
    found = []
    for exchange in case.transcript.completed:
        if exchange.ordinal not in scene.lines or exchange.result_at is None:
            continue
        lines = scene.lines[exchange.ordinal]
        risk = case.at_risk(exchange.result_at)
        found.append(
            [
                (row, any(text in line.text for text in risk))
                for line, row in zip(lines, rows(lines, exchange.result_at, scene), strict=True)
                if row is not None and line.start >= settings.excerpt_chars
            ]
        )
    return found


def items_of(cases: Iterable[Case]) -> list[Item]:
    """What is fitted: every needed line and every fifth of the others."""
    found = []
    for case in cases:
        lines = [pair for result in labelled(case, FITTED_ON) for pair in result]
        needed = sum(label for _, label in lines)
        count = 1 / len(CUTS)
        found += [Item(row, True, count * min(1.0, 5 / needed)) for row, label in lines if label]
        others = [row for row, label in lines if not label]
        found += [Item(row, False, count * EVERY) for row in others[::EVERY]]
    return found


def fit(items: Sequence[Item]) -> tuple[float, ...]:
    """The most probable weights under the prior, by Newton's method; the bias first."""
    middle = [PRIOR[name][0] for name in NAMES]
    deviation = [PRIOR[name][1] for name in NAMES]
    design = [((1.0, *item.row), item.needed, item.counts) for item in items]
    beta = list(middle)
    for _ in range(30):
        gradient = [(m - b) / d**2 for b, m, d in zip(beta, middle, deviation, strict=True)]
        hessian = [[d**-2 if i == j else 0.0 for j in range(len(beta))] for i, d in enumerate(deviation)]
        for x, label, counts in design:
            p = 1 / (1 + math.exp(-min(30.0, max(-30.0, sum([b * v for b, v in zip(beta, x, strict=True)])))))
            filled = [i for i, value in enumerate(x) if value]
            curve = counts * p * (1 - p)
            for i in filled:
                gradient[i] += counts * (label - p) * x[i]
                for j in filled:
                    hessian[i][j] += curve * x[i] * x[j]
        step = solve(hessian, gradient)
        beta = [b + s for b, s in zip(beta, step, strict=True)]
        if max(map(abs, step)) < 1e-7:
            break
    return tuple(round(b, 3) for b in beta)


# ----------------------------------------------------------------------------------------------------------- reporting


def auc(pairs: Sequence[tuple[float, bool]]) -> float:
    """Chance that a needed line scores above another one, ties half; NaN without both kinds."""
    yes = [score for score, label in pairs if label]
    no = [score for score, label in pairs if not label]
    if not yes or not no:
        return math.nan
    return sum((a > b) + 0.5 * (a == b) for a in yes for b in no) / (len(yes) * len(no))


def report_lines(cases: Sequence[Case], weights: Sequence[float]) -> None:
    """Line-level AUC within each result that has a needed line, mean over results."""
    by_source: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    fresh = FEATURES.index("fresh")
    for case in cases:
        for result in labelled(case, Settings()):
            scored = [(sum(w * v for w, v in zip(weights[1:], row, strict=True)), label) for row, label in result]
            ours = auc(scored)
            if not math.isnan(ours):
                head = auc([(-float(place), label) for place, (_, label) in enumerate(result)])
                marks = auc([(row[fresh], label) for row, label in result])
                for name in (case.source, "all"):
                    by_source[name].append((ours, marks, head))
    print("\nline-level AUC within a result, behind the first 300 characters")
    print(f"  {'source':28} {'results':>8} {'picker':>8} {'names':>8} {'place':>8}")
    for name, found in sorted(by_source.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"  {name:28} {len(found):8} " + " ".join(f"{mean(column):8.3f}" for column in zip(*found, strict=True)))


FORMS: tuple[tuple[str, Action, int], ...] = (
    ("first 300", "truncate", 0),
    ("+ facts", "truncate", Settings().fact_chars),
    ("notice", "remove", 0),
    ("facts alone", "remove", Settings().fact_chars),
)


def texts_left(case: Case, action: Action, fact_chars: int) -> dict[int, str]:
    """What each result that may be cut becomes, by position."""
    settings = Settings(fact_chars=fact_chars)
    cuts = Cuts(settings, case.transcript)
    completed = case.transcript.completed
    old = completed[: -settings.pin_last_calls]
    return {
        exchange.result_at: cuts.render(exchange, action, POINTER)
        for exchange in old
        if exchange.size > settings.pin_max_chars
        and exchange.result_at is not None
        and cuts.gain(exchange, action) is not None
    }


def lost(case: Case, order: Sequence[int], left: Mapping[int, str], share: float) -> tuple[float, int] | None:
    """Share of the needed strings lost, and characters saved, when results are cut in that order until `share` of the
    tool characters is gone; None where the pins do not allow so much."""
    saved, cut = 0, set[int]()
    for at in order:
        if saved >= share * case.kit.tool:
            break
        saved += case.kit.P[at]["cr"] - len(left[at])
        cut.add(at)
    if saved < share * case.kit.tool:
        return None
    gone = sum(
        not any(kept or at not in cut or span["s"] in left[at] for at, kept in span["car"]) for span in case.kit.spans
    )
    return gone / len(case.kit.spans), saved


def lines_oracle(case: Case, left: Mapping[int, str]) -> dict[int, str]:
    """What hindsight would show instead: the needed strings within the same budget, shortest first."""
    out = {}
    for at, text in left.items():
        shown, room = text, max(60, int(0.06 * case.kit.P[at]["cr"]))
        for needed in sorted(case.at_risk(at), key=len):
            if needed not in shown and len(needed) + 3 <= room:
                shown += "\n" + needed
                room -= len(needed) + 3
        out[at] = shown
    return out


def report_lost(kit: Kit, cases: Sequence[Case]) -> None:
    """Needed strings lost at equal size, oldest results first, in cases where every form reaches the size."""
    policies = kit.policies
    names = ("recency", *(name for name, _, _ in FORMS), "best lines")
    print("\nneeded strings lost, %, at equal size, oldest results cut first (mean over cases with at least 3)")
    print(f"  {'removed':8} {'source':28} {'cases':>5} " + " ".join(f"{name:>12}" for name in names))
    forms = [[texts_left(case, action, chars) for _, action, chars in FORMS] for case in cases]
    for share in SHARES:
        by_source: dict[str, list[list[float]]] = defaultdict(list)
        for case, left in zip(cases, forms, strict=True):
            if len(case.kit.spans) < 3:
                continue
            every = [*left, lines_oracle(case, left[0])]
            found = [lost(case, sorted(texts), texts, share) for texts in every]
            if any(value is None for value in found):
                continue
            saved = max(value[1] for value in found if value is not None)
            plan = policies.plan_to_target(case.kit, policies.r_recency(case.kit), saved, "stub")
            recency = case.kit.fast(plan)
            row = [recency["lost"] / recency["spans"], *(value[0] for value in found if value is not None)]
            for name in (case.source, "all"):
                by_source[name].append(row)
        for name, table in sorted(by_source.items(), key=lambda item: (item[0] == "all", item[0])):
            cells = " ".join(f"{100 * mean(column):12.1f}" for column in zip(*table, strict=True))
            print(f"  {share:<8.0%} {name:28} {len(table):5} {cells}")


def report_errors(cases: Sequence[Case]) -> None:
    """Distinct errors and failed tests of results that may be cut, and how many of them what is left still tells."""
    print(
        "\nerrors and failed tests of results that may be cut that are still told: of distinct kinds (numbers, quoted"
    )
    print("names and paths do not count), and of all that differ in more than numbers")
    for _, action, chars in FORMS:
        seen: set[str] = set()
        told = every = kinds_told = kinds = 0
        for case in cases:
            left = texts_left(case, action, chars)
            for exchange in case.transcript.completed:
                if exchange.result_at in left and exchange.text not in seen:
                    seen.add(exchange.text)
                    found = errors_in(unwrap(exchange.text).payload)
                    shown = errors_in(left[exchange.result_at])
                    every += len(found)
                    told += len(found & shown)
                    kinds += len(of_kind := {template(line) for line in found})
                    kinds_told += len(of_kind & {template(line) for line in shown})
        shares = f"{kinds_told / kinds:6.1%} of {kinds} kinds, {told / every:6.1%} of {every}"
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
        f"LEAST = {shipped.LEAST!r}\nBIAS = {weights[0]!r}\nWEIGHTS = (\n{lines})\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kit", type=Path, default=ROOT.parent / "shared" / "evaldata")
    parser.add_argument("--check", action="store_true", help="only compare the shipped weights with the fit")
    parser.add_argument("--write", action="store_true", help="write the weights module instead of printing it")
    options = parser.parse_args()
    kit = Kit(options.kit)
    items = items_of(kit.cases(even=True))
    print(f"fit: {len(items)} lines, {sum(item.needed for item in items)} needed")
    weights = fit(items)
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
    held_out = kit.cases(even=False)
    report_lines(held_out, weights)
    report_lost(kit, held_out)
    report_errors(held_out)
    print("\n" + module_text(weights))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
