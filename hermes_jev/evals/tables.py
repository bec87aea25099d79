"""The tables of an evaluation, as text: what was measured, said so that it can be read off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from .options import ENGINE
from .rows import Row
from .run import Evaluation
from .statistics import Estimate, estimate

LEAST_OF_A_KIND = 10
"""Cases from which a kind of session is judged by itself."""

TOOL_HEAVY = 0.7
"""A session is tool-heavy from this share of its characters in tool results on."""

_BESIDE_KINDS = ("last-3-stubs", "protect-10k-tokens", "stock-prune")
"""The policies that stand beside the engine kind by kind, where all of them would hide it."""


class Table(NamedTuple):
    """Cells are text; the first column is names. `notes` say what the columns mean and what is not defined."""

    name: str
    title: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


Value = Callable[[Row], float | None]


def comparison_tables(evaluation: Evaluation) -> list[Table]:
    """Policies as they are on prefixes and on whole sessions, matched comparisons, equal size, kinds, thresholds,
    recovery and promises."""
    rows, seed = evaluation.rows, evaluation.plan.options.seed
    tables = [
        _sizes(_of(rows, "policy"), seed),
        _whole(_of(rows, "whole")),
        _losses(_of(rows, "policy"), seed),
        *_equal(_of(rows, "equal"), seed),
        _kinds(_of(rows, "policy"), seed),
        _thresholds(_of(rows, "threshold"), seed),
        _recovery(_of(rows, "policy")),
        _promises(evaluation),
    ]
    return [table for table in tables if table.cells]


def _of(rows: Iterable[Row], group: str) -> list[Row]:
    return [row for row in rows if row.group == group]


def _by_policy(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.policy].append(row)
    return found


def _mean(rows: Sequence[Row], value: Value, seed: int) -> Estimate:
    return estimate([(row.session, value(row)) for row in rows], seed)


def _short(found: Estimate) -> str:
    return "-" if found.mean is None else f"{found.mean:.1f}"


def _sizes(rows: Sequence[Row], seed: int) -> Table:
    cells = []
    for name, own in _by_policy(rows).items():
        chars, tool = sum(r.chars for r in own), sum(r.tool_chars for r in own)
        removed, bound = sum(r.tool_removed for r in own), sum(r.bound for r in own)
        net = sum(max(0, r.removed - r.again) for r in own)
        cells.append(
            (
                name,
                str(len(own)),
                _percent(sum(r.removed for r in own), chars),
                _percent(removed, tool),
                _mean(own, lambda r: r.tool_share, seed).text(),
                _percent(removed, bound),
                _percent(net, chars),
            )
        )
    columns = (
        "policy", "cases", "of all characters", "of tool characters", "of tool characters, mean of cases",
        "of what the pins allow", "net of fetching again",
    )  # fmt: skip
    notes = (
        "Removed, in percent, over all cases together; only the mean of cases has each case count the same. Over 100 % "
        "of what the pins allow means that a policy cuts what this engine pins. Net: every result with a lost string "
        "is fetched again once.",
    )
    return Table("sizes", "What each policy removes", columns, tuple(cells), notes)


def _whole(rows: Sequence[Row]) -> Table:
    """Sizes over whole sessions: by kind, of the tool-heavy ones, and of all."""
    groups = [(kind, [row for row in rows if row.kind == kind]) for kind in sorted({row.kind for row in rows})]
    few = [(kind, [r for r in own if r.policy == ENGINE or r.policy in _BESIDE_KINDS]) for kind, own in groups]
    heavy = [row for row in rows if row.tool_chars >= TOOL_HEAVY * row.chars]
    cells = []
    for group, found in (*few, ("tool-heavy", heavy), ("all", rows)):
        # The engine first: the others are what it stands beside.
        for name, own in sorted(_by_policy(found).items(), key=lambda item: not item[0].startswith(ENGINE)):
            chars, tool, bound = (
                sum(sizes) for sizes in zip(*((r.chars, r.tool_chars, r.bound) for r in own), strict=True)
            )
            removed = sum(r.tool_removed for r in own)
            cells.append(
                (
                    f"{group}: {name}",
                    str(len(own)),
                    _percent(sum(r.removed for r in own), chars),
                    _percent(removed, tool),
                    _percent(removed, bound),
                    _percent(bound, tool),
                )
            )
    columns = (
        "sessions: policy", "sessions", "of all characters", "of tool characters", "of what the pins allow",
        "the pins allow, of tool characters",
    )  # fmt: skip
    notes = (
        "Removed from sessions as they ended instead of from their beginnings, in percent of all characters of such "
        f"sessions together. Tool-heavy: at least {100 * TOOL_HEAVY:.0f} % of a session's characters are tool results. "
        "Nothing follows the end of a session, so this table says nothing of losses.",
    )
    return Table("whole", "What each policy removes from whole sessions", columns, tuple(cells), notes)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else "not defined"


def _losses(rows: Sequence[Row], seed: int) -> Table:
    measuring = [row for row in rows if row.measures_loss]
    cells = []
    for name, own in _by_policy(measuring).items():
        old = [row for row in own if row.old]
        cells.append(
            (
                name,
                str(len(own)),
                _short(_mean(own, lambda r: r.tool_share, seed)),
                _mean(own, lambda r: r.lost_share, seed).text(),
                _short(_mean(old, lambda r: 100 * r.old_lost / r.old, seed)),
                _short(_mean(own, lambda r: _of_needed(r.results_lost, r.results_needed), seed)),
                _short(_mean(own, lambda r: _of_needed(r.steps_hit, r.steps), seed)),
                *(_short(_mean(own, _matched(name), seed)) for name in _RANKERS),
                _mean(own, lambda r: r.difference("recency, exact"), seed).text(),
            )
        )
    columns = (
        "policy", "cases", "tool characters removed", "needed strings lost", "old ones", "results", "steps hit",
        *(f"{name}, same size" for name in _RANKERS), "less recency, exact",
    )  # fmt: skip
    notes = (
        "In percent, means of the cases with at least 3 needed strings; in brackets 95 % over sessions. The columns "
        "named for a ranker are what it loses in the very same cases at the very same size: recency drops whole "
        "results oldest first until at least as much is gone, exact recency leaves the beginning of the last one.",
        *_undefined(measuring, "needed strings lost"),
    )
    return Table("losses", "What each policy loses", columns, tuple(cells), notes)


_RANKERS = ("recency", "recency, exact", "random", "oracle")


def _matched(name: str) -> Value:
    return lambda row: row.matched.get(name)


def _of_needed(lost: float, needed: int) -> float | None:
    return 100 * lost / needed if needed else None


def _undefined(measuring: Sequence[Row], what: str) -> tuple[str, ...]:
    """A line for what the cases are too few to say."""
    sessions = {row.session for row in measuring}
    if not measuring:
        return (f"{what[0].upper()}{what[1:]}: not defined, no case has at least 3 needed strings in 5 results.",)
    if len(sessions) < 5:
        return (f"No intervals: {len(sessions)} sessions have cases, at least 5 are needed.",)
    return ()


def _equal(rows: Sequence[Row], seed: int) -> list[Table]:
    """Rankers and the engine at equal size, on the cases where the engine reaches that size."""
    measuring = [row for row in rows if row.measures_loss]
    shares = sorted({row.share for row in measuring if row.share is not None})
    engines = [name for name in _by_policy(measuring) if name.startswith(ENGINE)]
    cells, kinds = [], []
    for share in shares:
        here = _by_policy(row for row in measuring if row.share == share)
        for engine in engines:
            own = [row for row in here[engine] if row.reached]
            reached = {(row.id, row.cut) for row in own}
            plain = [
                _short(_mean([r for r in here.get(name, ()) if (r.id, r.cut) in reached], lambda r: r.lost_share, seed))
                for name in ("size x age", "random", "oracle")
            ]
            cells.append((f"{share:.0%} {engine}", *_against_recency(own, seed), *plain))
            if engine == ENGINE:
                kinds += [
                    (f"{share:.0%} {kind}", *_against_recency([r for r in own if r.kind == kind], seed))
                    for kind in sorted({r.kind for r in own})
                ]
    compared = (
        "cases", "sessions", "removed", "lost", "recency", "recency, exact", "fewer than recency", "fewer than exact",
        "less recency", "less recency, exact",
    )  # fmt: skip
    notes = (
        "Needed strings lost, in percent, when a share of all tool characters is removed, on the cases where the pins "
        "let that much go. Recency is matched to the size that the engine really reached, in each case; the last three "
        "columns of rankers are at the share asked for, up to one whole result over it.",
        *_undefined(measuring, "needed strings lost"),
    )
    by_kind = (
        f"A kind is judged by itself from {LEAST_OF_A_KIND} cases on; differences are paired, case by case, "
        "with 95 % over sessions.",
    )
    return [
        Table(
            "equal", "At equal size", ("size and judge", *compared, "size x age", "random", "oracle"),
            tuple(cells), notes,
        ),
        Table("equal-kinds", "At equal size, by kind of session", ("size and kind", *compared), tuple(kinds), by_kind),
    ]  # fmt: skip


def _against_recency(own: Sequence[Row], seed: int) -> tuple[str, ...]:
    lost = _mean(own, lambda r: r.lost_share, seed)
    recency, exact = (_mean(own, _matched(name), seed) for name in ("recency", "recency, exact"))
    return (
        str(lost.cases),
        str(lost.sessions),
        _short(_mean(own, lambda r: r.tool_share, seed)),
        lost.text(),
        _short(recency),
        _short(exact),
        _fewer(lost, recency),
        _fewer(lost, exact),
        _mean(own, lambda r: r.difference("recency"), seed).text(),
        _mean(own, lambda r: r.difference("recency, exact"), seed).text(),
    )


def _fewer(ours: Estimate, theirs: Estimate) -> str:
    if ours.mean is None or theirs.mean is None or theirs.mean <= 0:
        return "not defined"
    return f"{100 * (1 - ours.mean / theirs.mean):.0f} %"


def _kinds(policies: Sequence[Row], seed: int) -> Table:
    """The engine with its defaults, kind by kind, beside the stock policies' losses."""
    others = [name for name in _by_policy(policies) if not name.startswith(ENGINE) and name != "none"]
    cells = []
    kinds = sorted({row.kind for row in policies})
    for kind in kinds:
        here = _by_policy(row for row in policies if row.kind == kind)
        for name in (ENGINE, *others):
            own = here.get(name, [])
            if not own:
                continue
            tool, bound = sum(r.tool_chars for r in own), sum(r.bound for r in own)
            removed = sum(r.tool_removed for r in own)
            loss = _mean(own, lambda r: r.lost_share, seed)
            cells.append(
                (
                    f"{kind}: {name}",
                    str(len(own)),
                    _percent(sum(r.removed for r in own), sum(r.chars for r in own)),
                    _percent(removed, tool),
                    _percent(removed, bound),
                    str(loss.cases),
                    loss.text(),
                    _mean(own, lambda r: r.difference("recency, exact"), seed).text(),
                )
            )
    columns = (
        "kind: policy", "cases", "of all characters", "of tool characters", "of what the pins allow",
        "cases with needs", "needed strings lost", "less recency, exact",
    )  # fmt: skip
    return Table("kinds", "By kind of session", columns, tuple(cells), ())


def _thresholds(rows: Sequence[Row], seed: int) -> Table:
    cells = []
    measuring = [row for row in rows if row.policy == ENGINE]
    for threshold in sorted({row.share for row in measuring if row.share is not None}):
        own = [row for row in measuring if row.share == threshold]
        cells.append(
            (
                f"{threshold:g}",
                str(len(own)),
                _mean(own, lambda r: r.removed_share, seed).text(),
                _mean(own, lambda r: r.tool_share, seed).text(),
                _mean(own, lambda r: r.lost_share, seed).text(),
                _short(_mean(own, lambda r: _share(r.again, r.chars), seed)),
                _short(_mean(own, lambda r: _share(r.removed - r.again, r.chars), seed)),
                _mean(own, lambda r: r.difference("recency, exact"), seed).text(),
            )
        )
    columns = (
        "threshold", "cases", "freed, of all", "freed, of tool characters", "needed strings lost", "fetched again",
        "net", "less recency, exact",
    )  # fmt: skip
    notes = ("Both thresholds at once, no window. In percent, means of cases; net can be negative.",)
    return Table("thresholds", "Thresholds", columns, tuple(cells), notes)


def _share(part: float, whole: float) -> float | None:
    return 100 * part / whole if whole else None


def _recovery(rows: Sequence[Row]) -> Table:
    cells = []
    for name, own in _by_policy(rows).items():
        steps = sum(row.search_steps for row in own)
        found, shown = sum(row.search_found for row in own), sum(row.search_shown for row in own)
        ours = (sum(vars(row)[field] for row in own) for field in ("own_found", "own_shown", "own_expanded"))
        if steps:
            product = [_percent(part, steps) if name.startswith(ENGINE) else "-" for part in ours]
            cells.append((name, f"{steps:.0f}", _percent(found, steps), _percent(shown, steps), *product))
    notes = (
        "Of the later steps that miss something a result held, in percent. Plain search, for every policy: a BM25 of "
        "this evaluation over what was cut; a right result among the first four hits, and a missing string in what "
        "they show, 2,500 characters each. session_search, for the engine: the product asked about what its pass cut, "
        "with the same query; a right result among the first four hits, a missing string in the one reply of at most "
        "4,000 characters, and there or in one page of expand of the best of those four hits. The query is made of "
        "words that the step really wrote, without the missing strings.",
    )
    columns = (
        "policy", "steps", "plain search: right result", "string shown",
        "session_search: right result", "string in the reply", "after one expand",
    )  # fmt: skip
    return Table("recovery", "What one search would bring back", columns, tuple(cells), notes)


def _promises(evaluation: Evaluation) -> Table:
    cells = []
    timings = defaultdict(list)
    for timing in evaluation.timings:
        timings[timing.policy].append(timing.ms)
    seed = evaluation.plan.options.seed
    for name, own in _by_policy(_of(evaluation.rows, "policy")).items():
        asked = [row for row in evaluation.rows if row.policy == name and row.group in ("policy", "whole")]
        again = [row.again_unchanged for row in own if row.again_unchanged is not None]
        times = sorted(timings[name])
        cells.append(
            (
                name,
                _percent(sum(row.words_kept for row in own), len(own)),
                _percent(sum(row.paired for row in own), len(own)),
                _percent(sum(again), len(again)) if again else "-",
                _short(_mean(own, lambda r: None if r.stable is None else 100 * r.stable, seed)),
                str(sum(row.requests for row in asked)),
                f"{sum(row.cost for row in asked):.4f}",
                f"{times[len(times) // 2]:.0f}" if times else "-",
                f"{times[int(0.95 * len(times))]:.0f}" if times else "-",
            )
        )
    columns = (
        "policy", "words unchanged", "pairs whole", "second pass unchanged", "prefix kept by the next pass",
        "judge requests", "judge $", "ms, median", "ms, 95 %",
    )  # fmt: skip
    notes = (
        "In percent of cases; the kept prefix in percent of the prompt's characters. Requests and dollars count whole "
        "sessions too. Times vary from run to run.",
    )
    return Table("promises", "Promises, requests and time", columns, tuple(cells), notes)
