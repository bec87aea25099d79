"""Fit the weights of the embedded judge and say what they are worth on sessions they have not seen.

    python benchmarks/fit_lexical.py            fit, report, print the weights module
    python benchmarks/fit_lexical.py --check    fail if the shipped weights are not these
    python benchmarks/fit_lexical.py --write    write the weights module

Labels come from the evaluation kit (`--kit`, by default ../shared/evaldata): a result is needed when it is the newest
carrier of an exact string that a later step writes. A call matters when its result is needed, when a later step writes
an identifier, path or value of its arguments, when it changed something, or when it failed.

Sessions with an even hash are fitted, odd ones reported; concatenated tasks are left out, since nothing in one task
needs another. What a feature may see ends at the cut. The even sessions hold few needs and no long coding session, so
the fit is a maximum a posteriori one: a Gaussian prior per weight carries what is published about larger collections.
Sources differ in how often anything is needed at all, so each has a level of its own in the fit, which is left behind:
a source of next to no needs must not teach that age or size alone make a result worthless. Last, slope and level are
calibrated on what the engine asks about (over 1,500 characters, three or more calls old, settled by no rule), each
source with the same weight, so that a probability means what it says whatever the mix.

Standard library and this package only. Takes about fifteen seconds.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fitting import auc, mean, most_probable

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


from hermes_jev.goal import GOAL_CHARS, actions_of, goal_of, shorten  # noqa: E402 - a script finds its own package first
from hermes_jev.judge import lexical_weights as shipped  # noqa: E402
from hermes_jev.judge.lexical import probability  # noqa: E402
from hermes_jev.judge.lexical_features import FEATURES, call_of, kind_of, query_of, rows  # noqa: E402
from hermes_jev.judge.protocol import Subject  # noqa: E402
from hermes_jev.rank import key, standings, until, worths  # noqa: E402
from hermes_jev.rules import rulings  # noqa: E402
from hermes_jev.transcript import Transcript  # noqa: E402

CUTS = (0.4, 0.6, 0.8)
NAMES = ("bias", *FEATURES)
WINDOW = 33_000
REPLACED = ("trunc", 0)
"""How the kit's plans cut here: a short notice stands where the whole result was, the arguments stay."""
LEVEL_DEVIATION = 0.7
"""Standard deviation of the sources' levels in logits: seven published rates lie between 11 and 46 %."""

# (mean, standard deviation). Published for about 1,400 transcripts: 12.6 to 15.7 % of old results are needed; 17.4 % of
# fresh ones, 9.5 % once the file was edited, 5.1 % once it was read again, 0.4 % once the call was made again; alone,
# recency separates with AUC 0.73, words in common with 0.74, size with 0.68; together the logistic model reaches 0.845
# with age and rerun as its strongest weights, then size, length of the arguments, reading tools, earlier use.
# Odds that depend on each other are shared out among the features that say the same.
PRIOR_OUTPUT = {
    "bias": (-1.3, 0.3),
    "age": (-0.7, 0.2),
    "size": (0.2, 0.15),
    "inputs": (0.1, 0.15),
    "failed": (0.2, 0.3),
    "nearby": (1.5, 1.0),
    "on_goal": (0.5, 0.75),
    "newest": (0.3, 0.15),
    "only": (0.05, 0.15),
    "used": (0.25, 0.2),
    "inputs_used": (0.15, 0.15),
    "rerun": (-2.5, 0.7),
    "reread": (-0.8, 0.4),
    "edited": (-0.4, 0.4),
    "reads": (0.2, 0.4),
    "writes": (-0.3, 0.4),
    "shell": (0.0, 0.4),
    "other": (0.0, 1.0),
    "record": (0.0, 0.3),
    "old_record": (0.25, 0.2),
}
# A call is needed where its output is, and by definition after a change or a failure; its arguments say more than its
# result, and age says less.
PRIOR_CALL = {
    **PRIOR_OUTPUT,
    "bias": (-0.8, 0.5),
    "age": (-0.5, 0.2),
    "size": (0.1, 0.15),
    "inputs": (0.3, 0.3),
    "failed": (4.0, 0.5),
    "inputs_used": (0.6, 0.4),
    "rerun": (-1.5, 0.7),
    "writes": (4.0, 0.5),
}

ASKED = (1_500, 3)
"""What the engine asks about: results over so many characters, with at least so many completed calls after them."""
FLAT = 0.15
NOTICE = 60
"""Characters of the notice that the kit's plans leave."""
LEAST_ITEMS = 20
"""A source with fewer results does not calibrate."""
SLOPE, LEVEL = (1.0, 0.3), (0.0, 1.0)
"""Mean and standard deviation of the calibration's prior."""

Rank = dict[int, float]


class Item(NamedTuple):
    """One old call: its features, its two labels, where its result stands, its age and size, and whether a free rule
    settles it."""

    row: tuple[float, ...]
    needed: bool
    matters: bool
    at: int
    age: int
    size: int
    ruled: bool


@dataclass(frozen=True)
class Weights:
    """One logistic model, by `NAMES`."""

    values: tuple[float, ...]

    def __call__(self, item: Item) -> float:
        return probability(dict(zip(NAMES, self.values, strict=True)), item.row)


class Kit:
    """The evaluation kit's modules and the cases made of its transcripts."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder))
        self.policies: Any = importlib.import_module("policies")
        self.needed: Any = importlib.import_module("needed")
        loader: Any = importlib.import_module("loader")
        self.generic = self.needed.load_generic()
        self._transcripts = [
            transcript
            for transcript in loader.load()
            if not transcript["composed"] or transcript["id"].startswith("lineage")
        ]

    def cases(self, *, even: bool) -> list[Any]:
        """Every cut of every session whose hash is even, or odd."""
        return [
            self.policies.Case(transcript, cut, self.generic)
            for transcript in self._transcripts
            if (self._hash(transcript) % 2 == 0) == even
            for cut in CUTS
        ]

    def _hash(self, transcript: Any) -> int:
        return int(hashlib.sha1(self.needed.session_of(transcript).encode()).hexdigest()[:8], 16)

    def items(self, case: Any, over_chars: int, min_age: int) -> list[Item]:
        """What a judge sees of this case: results over `over_chars` with at least `min_age` completed calls after."""
        transcript = Transcript.parse(case.m[: case.cut])
        completed = transcript.completed
        asked = [
            (exchange, len(completed) - 1 - place)
            for place, exchange in enumerate(completed)
            if exchange.size > over_chars and len(completed) - 1 - place >= min_age
        ]
        subjects = [Subject(e.ordinal, e.tool, e.arguments, e.text, e.size, age, e.outcome.status) for e, age in asked]
        query = query_of(shorten(goal_of(transcript), GOAL_CHARS), actions_of(transcript))
        found = rows([call_of(subject, WINDOW) for subject in subjects], query)
        used = self._arguments_used(case)
        ruled = rulings(transcript)
        out = []
        for (exchange, age), row in zip(asked, found, strict=True):
            at = exchange.result_at
            needed = case.res[at]["needed"] > 0
            changed = kind_of(exchange.tool) == "writes" or exchange.outcome.status == "failed"
            matters = needed or changed or at in used
            out.append(Item(row, needed, matters, at or 0, age, exchange.size, exchange.ordinal in ruled))
        return out

    def _arguments_used(self, case: Any) -> set[int]:
        """Results whose call has a distinctive string in its arguments that a later step writes again."""
        later = "\n".join(self.needed.out_text(m) for m in case.m[case.cut :] if m["role"] == "assistant")
        kept = "\n".join(self.needed.text(m) for m in case.m[: case.cut] if m["role"] != "tool")
        own = f"{self._hash(case.t):08x}"
        used = set()
        for at, pair in case.P.items():
            given = self.needed.candidates(self.needed.arg_text({"function": {"arguments": pair["args"]}}))
            if any(
                kind != "line" and text in later and text not in kept and not self._is_generic(text, own)
                for text, kind in given.items()
            ):
                used.add(at)
        return used

    def _is_generic(self, text: str, own: str) -> bool:
        owners: list[str] = self.generic.get(text, [])
        return sum(owner != own for owner in owners) >= 2


def source_of(case: Any) -> str:
    return str(case.t["source"])[:28]


# ------------------------------------------------------------------------------------------------------------- fitting


def fit(
    items: Sequence[Item], labels: Sequence[bool], sources: Sequence[str], prior: dict[str, tuple[float, float]]
) -> Weights:
    """The most probable weights under `prior`. A transcript counts once, not once per cut."""
    levels = sorted(set(sources))
    design = [
        ((1.0, *item.row, *(float(level == source) for level in levels)), label, 1 / len(CUTS))
        for item, label, source in zip(items, labels, sources, strict=True)
    ]
    beta = most_probable(design, [*(prior[name] for name in NAMES), *((0.0, LEVEL_DEVIATION) for _ in levels)])
    return Weights(tuple(round(b, 4) for b in beta[: len(NAMES)]))


def calibrated(weights: Weights, items: Sequence[Item], labels: Sequence[bool], sources: Sequence[str]) -> Weights:
    """The same model with slope and level such that what it says of `items` comes true; sources weigh the same."""
    count = Counter(sources)
    known = [source for source in count if count[source] >= LEAST_ITEMS]
    scored = [
        ((math.log(p / (1 - p)), 1.0), label, len(items) / (len(CUTS) * len(known) * count[source]))
        for item, label, source in zip(items, labels, sources, strict=True)
        if source in known and 0 < (p := weights(item)) < 1
    ]
    slope, level = most_probable(scored, (SLOPE, LEVEL))
    bias, *rest = weights.values
    return Weights((round(slope * bias + level, 4), *(round(slope * value, 4) for value in rest)))


def fit_even(kit: Kit) -> tuple[Weights, Weights]:
    """The output model and the call model."""
    items: list[Item] = []
    sources: list[str] = []
    for case in kit.cases(even=True):
        found = kit.items(case, 300, 1)
        items += found
        sources += [source_of(case)] * len(found)
    asked = [at for at, item in enumerate(items) if item.size > ASKED[0] and item.age >= ASKED[1] and not item.ruled]
    needed = [item.needed for item in items]
    matters = [item.matters for item in items]
    print(f"fit: {len(items)} results, {len(set(sources))} sources, {sum(needed)} needed, {sum(matters)} calls matter")

    def fitted(labels: list[bool], prior: dict[str, tuple[float, float]]) -> Weights:
        model = fit(items, labels, sources, prior)
        return calibrated(model, *([column[at] for at in asked] for column in (items, labels, sources)))  # type: ignore[arg-type]

    return fitted(needed, PRIOR_OUTPUT), fitted(matters, PRIOR_CALL)


# ----------------------------------------------------------------------------------------------------------- reporting


def report_ranking(kit: Kit, cases: Sequence[Any], model: Weights, label: Callable[[Item], bool], title: str) -> None:
    """Mean AUC per case beside recency's, then reliability, of all results and of those that the engine asks about."""
    for over, least in ((300, 1), ASKED):
        by_source: dict[str, list[tuple[float, float]]] = defaultdict(list)
        pooled: list[tuple[float, bool]] = []
        for case in cases:
            items = [item for item in kit.items(case, over, least) if (over, least) != ASKED or not item.ruled]
            labels = [label(item) for item in items]
            scores = [model(item) for item in items]
            pooled += zip(scores, labels, strict=True)
            ours = auc(zip(scores, labels, strict=True))
            recency = auc(zip((-float(item.age) for item in items), labels, strict=True))
            if not math.isnan(ours):
                by_source[source_of(case)].append((ours, recency))
        settled = ", settled by no rule" if (over, least) == ASKED else ""
        print(f"\n{title}, results over {over} characters with {least} or more calls after them{settled}")
        print(f"  {'source':28} {'cases':>5} {'AUC':>6} {'recency':>8}")
        everything = [pair for pairs in by_source.values() for pair in pairs]
        for source, pairs in [*sorted(by_source.items()), ("all", everything)]:
            print(f"  {source:28} {len(pairs):5} {mean(a for a, _ in pairs):6.3f} {mean(b for _, b in pairs):8.3f}")
        report_reliability(pooled)


def report_reliability(pooled: list[tuple[float, bool]]) -> None:
    pooled.sort()
    print(f"  pooled AUC {auc(pooled):.3f}; said and seen by decile of {len(pooled)}:")
    for tenth in range(10):
        part = pooled[tenth * len(pooled) // 10 : (tenth + 1) * len(pooled) // 10]
        print(f"    {tenth + 1:2}  {mean(s for s, _ in part):.3f}  {mean(float(y) for _, y in part):.3f}")


LOST = ("p", "p per char", "rank", "rank, flat", "recency", "random", "best")


def report_lost(kit: Kit, cases: Sequence[Any], model: Weights) -> None:
    """Needed strings lost when results over 300 characters go, lowest first, until a share of them is gone."""
    print(
        "\nneeded strings lost, %, at equal size (mean over cases with at least 3). p: the output's probability; rank:"
    )
    print("rules and the engine's order, with this judge and with one that always says the same; recency and best: at")
    print("the size that rank reaches")
    print(f"  {'removed':8} {'source':28} {'cases':>5} " + " ".join(f"{name:>10}" for name in LOST))
    for share in (0.3, 0.5, 0.7, 0.8):
        by_source: dict[str, list[list[float]]] = defaultdict(list)
        for case in cases:
            if len(case.spans) >= 3 and len(case.P) >= 5 and case.tool >= 4_000:
                by_source[source_of(case)].append(_losses(kit, case, model, share))
        everything = [row for found in by_source.values() for row in found]
        for source, found in [*sorted(by_source.items()), ("all", everything)]:
            cells = " ".join(f"{mean(row[at] for row in found):10.1f}" for at in range(len(LOST)))
            print(f"  {share:<8.0%} {source:28} {len(found):5} {cells}")


def _losses(kit: Kit, case: Any, model: Weights, share: float) -> list[float]:
    said = {item.at: model(item) for item in kit.items(case, 300, 0)}
    chars = {at: pair["cr"] for at, pair in case.P.items()}

    def lost(plan: Mapping[int, Any]) -> float:
        found = case.fast(plan)
        return float(100 * found["lost"] / found["spans"])

    def plan(rank: Rank, target: float = share * case.tool) -> dict[int, Any]:
        only_large = {at: value if at in said else math.inf for at, value in rank.items()}
        return dict(kit.policies.plan_to_target(case, only_large, target, REPLACED))

    ours = _ranked(case, said, share)
    size = case.fast(ours)["saved"]
    return [
        lost(plan({at: said.get(at, 1.0) for at in case.P})),
        lost(plan({at: said.get(at, 1.0) / max(1, chars[at]) for at in case.P})),
        lost(ours),
        lost(_ranked(case, dict.fromkeys(said, FLAT), share)),
        lost(plan(kit.policies.r_recency(case), size)),
        mean(lost(plan(kit.policies.r_random(seed)(case), size)) for seed in range(10)),
        lost(plan(kit.policies.r_oracle(REPLACED)(case), size)),
    ]


def _ranked(case: Any, said: Mapping[int, float], share: float) -> dict[int, Any]:
    """The plan of the engine's own order, without its pins."""
    transcript = Transcript.parse(case.m[: case.cut])
    large = [exchange for exchange in transcript.completed if exchange.result_at in said]
    outputs = {e.ordinal: said[e.result_at] for e in large if e.result_at is not None}
    worth = worths(large, outputs, rulings(transcript), standings(transcript))
    large.sort(key=lambda e: key(worth[e.ordinal], e.size, e.ordinal))
    chosen = until(large, share * case.tool, lambda e: e.size - NOTICE, lambda e: worth[e.ordinal])
    return {e.result_at: REPLACED for e in chosen if e.result_at is not None}


def agrees(fitted: Weights, table: Mapping[str, float]) -> bool:
    """Whether two sets of weights are one; another processor's last digits do not count."""
    return set(table) == set(NAMES) and all(
        math.isclose(table[name], value, abs_tol=0.0005) for name, value in zip(NAMES, fitted.values, strict=True)
    )


def module_text(output: Weights, call: Weights) -> str:
    """The source of `hermes_jev/judge/lexical_weights.py`."""

    def table(name: str, weights: Weights) -> str:
        lines = "".join(f'    "{key}": {value!r},\n' for key, value in zip(NAMES, weights.values, strict=True))
        return f"{name}: Mapping[str, float] = {{\n{lines}}}\n"

    return (
        '"""Weights of the embedded judge\'s two logistic models; `benchmarks/fit_lexical.py` prints this file.\n\n'
        "A key is a feature of `lexical_features.FEATURES`, or the bias. Other weights need another version: verdicts\n"
        'are kept under it.\n"""\n\n'
        "from collections.abc import Mapping\n\n"
        f'VERSION = "{shipped.VERSION}"\n\n' + table("OUTPUT", output) + "\n" + table("CALL", call)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kit", type=Path, default=ROOT.parent / "shared" / "evaldata")
    parser.add_argument("--check", action="store_true", help="only compare the shipped weights with the fit")
    parser.add_argument("--write", action="store_true", help="write the weights module instead of printing it")
    options = parser.parse_args()
    kit = Kit(options.kit)
    output, call = fit_even(kit)
    if options.check:
        same = agrees(output, shipped.OUTPUT) and agrees(call, shipped.CALL)
        print("the shipped weights are these" if same else "the shipped weights are others")
        return 0 if same else 1
    held_out = kit.cases(even=False)
    report_ranking(kit, held_out, output, lambda item: item.needed, "output needed")
    report_ranking(kit, held_out, call, lambda item: item.matters, "call matters")
    report_lost(kit, held_out, output)
    if options.write:
        Path(shipped.__file__).write_text(module_text(output, call), encoding="utf-8")
    else:
        print("\n" + module_text(output, call))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
