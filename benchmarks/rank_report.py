"""What free rules and calibrations are worth, on the evaluation kit.

    python benchmarks/rank_report.py            both tables

Rules: of the results over 1,500 characters that each rule settles, how many are the newest carrier of a string that a
later step writes, how many the only one, and the share of a session's needed strings that only they carry, per million
characters: what no rule settles is the row to compare with. All sessions: no number of a rule was fitted.

Calibrations: with the embedded judge and the defaults, no window: what is removed, what is lost, and what remains of
the gain when every result with a lost string is fetched again once. `learned` learns from the even sessions, where each
cut result with a lost string counts as fetched again; all three are reported on the odd ones.

Standard library and this package only. Takes about a minute.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fit_lexical import ROOT, Kit, mean

from hermes_jev.calibration import Tally, band_of
from hermes_jev.egress import Gate
from hermes_jev.goal import actions_of, goal_of
from hermes_jev.judge import Lexical
from hermes_jev.judged import Bench, judged
from hermes_jev.policy import Cuts, Decision, Known, Pressure, Verdict, decide
from hermes_jev.rules import rulings
from hermes_jev.settings import Settings
from hermes_jev.store import Store
from hermes_jev.survey import Survey, survey
from hermes_jev.transcript import Transcript

POINTER = "r-" + "a" * 10
LARGE = 1_500


def report_rules(cases: Iterable[Any]) -> None:
    rows: dict[str, list[float]] = defaultdict(lambda: [0.0] * 5)
    for case in cases:
        transcript = Transcript.parse(case.m[: case.cut])
        settled = rulings(transcript)
        only: Counter[int] = Counter()
        for span in case.spans:
            carriers = {at for at, arguments in span["car"] if at is not None and not arguments}
            if len(carriers) == 1 and not any(arguments or at is None for at, arguments in span["car"]):
                only[carriers.pop()] += 1
        for exchange in transcript.completed:
            if exchange.size <= LARGE or exchange.result_at is None:
                continue
            ruling = settled.get(exchange.ordinal)
            label = case.res[exchange.result_at]
            row = rows[ruling.rule if ruling else "no rule"]
            alone = only[exchange.result_at] / max(1, len(case.spans))
            for at, value in enumerate((1, label["needed"] > 0, label["unique"] > 0, exchange.size, alone)):
                row[at] += value
    print(f"{'rule':16} {'results':>8} {'needed %':>9} {'only one %':>11} {'characters':>11} {'lost per million':>17}")
    for name, (count, needed, unique, chars, alone) in sorted(rows.items()):
        shares = f"{100 * needed / count:9.1f} {100 * unique / count:11.1f}"
        print(f"{name:16} {count:8.0f} {shares} {chars:11,.0f} {1e6 * alone / chars:17.2f}")


class Judged(NamedTuple):
    """A case with what the embedded judge says of it."""

    case: Any
    transcript: Transcript
    cuts: Cuts
    found: Survey
    known: Known
    verdicts: dict[int, Verdict]


def judge_all(cases: Iterable[Any], settings: Settings) -> list[Judged]:
    out = []
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        for case in cases:
            transcript = Transcript.parse(case.m[: case.cut])
            cuts = Cuts(settings, transcript)
            found, known = survey(transcript, settings, cuts), Known.of(transcript)
            asked = [exchange for exchange in found.candidates if exchange.ordinal not in known.rulings]
            bench = Bench(Lexical(), store, settings, Gate(), goal_of(transcript), "", actions_of(transcript))
            verdicts = dict(judged(transcript, asked, found.contents, bench, urgent=False).verdicts)
            out.append(Judged(case, transcript, cuts, found, known, verdicts))
    return out


def decided(one: Judged, settings: Settings, tallies: Sequence[Tally]) -> list[Decision]:
    known = one.known.with_calibration(one.verdicts.values(), settings, tallies)
    pressure = Pressure.of(one.transcript, None, settings)
    return decide(one.found.candidates, one.verdicts, pressure, one.cuts, known)


class Loss(NamedTuple):
    """Characters of results, removed and of results to be fetched again; strings needed and lost."""

    tool: int
    removed: int
    again: int
    needed: int
    lost: int
    regretted: frozenset[int]


def loss(one: Judged, decisions: Sequence[Decision]) -> Loss:
    texts = {
        d.exchange.result_at: one.cuts.render(d.exchange, d.action, POINTER) for d in decisions if d.action != "keep"
    }
    lost = [
        span
        for span in one.case.spans
        if all(not arguments and at in texts and span["s"] not in texts[at] for at, arguments in span["car"])
    ]
    again = frozenset(max(at for at, _ in span["car"]) for span in lost)
    size = {e.result_at: e.size for e in one.transcript.completed if e.result_at is not None}
    return Loss(
        sum(size.values()),
        sum(size[at] - len(text) for at, text in texts.items() if at is not None),
        sum(size[at] for at in again),
        len(one.case.spans),
        len(lost),
        again,
    )


def tallies_of(cases: Iterable[Judged]) -> list[Tally]:
    cuts: Counter[tuple[str, int]] = Counter()
    regrets: Counter[tuple[str, int]] = Counter()
    for one in cases:
        decisions = decided(one, Settings(), ())
        regretted = loss(one, decisions).regretted
        for decision in decisions:
            if decision.action != "keep" and decision.verdict is not None and decision.verdict.output is not None:
                cell = decision.exchange.tool, band_of(decision.verdict.output)
                cuts[cell] += 1
                regrets[cell] += decision.exchange.result_at in regretted
    return [Tally(tool, band, count, regrets[tool, band]) for (tool, band), count in sorted(cuts.items())]


def report_calibration(even: Sequence[Judged], odd: Sequence[Judged]) -> None:
    tallies = tallies_of(even)
    print(f"\n{'calibration':12} {'cases':>6} {'removed %':>10} {'cases, needs':>13} {'lost %':>7} {'net %':>6}")
    for name in ("fixed", "session", "learned"):
        settings = Settings(calibration=name)
        found = [loss(one, decided(one, settings, tallies)) for one in odd]
        tool = sum(one.tool for one in found)
        needing = [one for one in found if one.needed >= 3]
        removed = 100 * sum(one.removed for one in found) / tool
        net = removed - 100 * sum(one.again for one in found) / tool
        lost = mean(100 * one.lost / one.needed for one in needing)
        print(f"{name:12} {len(found):6} {removed:10.1f} {len(needing):13} {lost:7.1f} {net:6.1f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kit", type=Path, default=ROOT.parent / "shared" / "evaldata")
    kit = Kit(parser.parse_args().kit)
    even, odd = kit.cases(even=True), kit.cases(even=False)
    report_rules([*even, *odd])
    report_calibration(judge_all(even, Settings()), judge_all(odd, Settings()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
