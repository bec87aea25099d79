"""The tables of the replays: repeated passes, and money with a prompt cache."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from .cost import Replay
from .passes import Passes
from .run import LEAST_FOR_COST, Evaluation
from .statistics import estimate
from .tables import Table


def replay_tables(evaluation: Evaluation) -> list[Table]:
    """Those that were asked for."""
    plan, tables = evaluation.plan, []
    if plan.cycles:
        tables.append(_passes(evaluation.passes))
    if plan.cost:
        tables.append(_cost(evaluation.replays, plan.window, plan.options.seed))
    return tables


def _passes(found: Sequence[Passes]) -> Table:
    by_kind: dict[str, list[Passes]] = defaultdict(list)
    for passes in found:
        by_kind[passes.kind].append(passes)
    cells = []
    for kind, own in [*sorted(by_kind.items()), ("all", list(found))]:
        left = sum(sum(one.floor.values()) for one in own) or 1
        cells.append(
            (
                kind,
                str(len(own)),
                str(sum(one.passes for one in own)),
                str(sum(one.changed for one in own)),
                str(sum(one.recut for one in own)),
                str(sum(one.restless for one in own)),
                str(sum(one.words_changed for one in own)),
                f"{100 * sum(sum(one.floor.values()) for one in own) / max(1, sum(one.chars for one in own)):.0f} %",
                *(f"{100 * sum(one.floor[part] for one in own) / left:.0f} %" for part in _FLOOR),
            )
        )
    columns = (
        "kind", "sessions", "passes", "that cut", "results cut again", "second pass changed", "words changed",
        "left at the end", *_FLOOR,
    )  # fmt: skip
    notes = (
        "40 passes over each growing session, at even distances, without a window. The columns after `left at the end` "
        "say what the rest is made of: words of human, assistant and system; arguments of calls; results that were "
        "shortened, are small, are pinned, or are kept by the judge.",
    )
    return Table("passes", "Repeated passes", columns, tuple(cells), notes)


_FLOOR = ("words", "arguments", "shortened", "small", "pinned", "kept")


def _cost(found: Sequence[Replay], window: int, seed: int) -> Table:
    by_policy: dict[str, list[Replay]] = defaultdict(list)
    for replay in found:
        by_policy[replay.policy].append(replay)
    cells = []
    for name, own in by_policy.items():
        stable = [one.stability for one in own if one.stability is not None]
        freed = [one.freed for one in own if one.freed]
        cells.append(
            (
                name,
                str(len(own)),
                f"{sum(one.passes for one in own) / len(own):.1f}",
                f"{100 * _mean([f[0] for f in freed]):.0f} → {100 * _mean([f[-1] for f in freed]):.0f}"
                if freed
                else "-",
                f"{_mean(stable):.2f}" if stable else "-",
                f"{_mean([one.tokens for one in own]):,.0f}",
                estimate([(one.session, one.dollars) for one in own], seed).text(2),
                *(_against(own, by_policy[other], name == other, seed) for other in _AGAINST),
                estimate([(one.session, 100 * share) for one in own for share in one.lost], seed).text(),
                f"{sum(one.stuck_at is not None for one in own)}",
                f"{sum(one.stuck_at is None and one.floor_at is not None for one in own)}",
                f"{sum(one.over for one in own)}",
            )
        )
    columns = (
        "policy", "sessions", "passes", "freed, first → last, %", "cache kept", "mean prompt", "$ a session",
        *(f"than {other}, $" for other in _AGAINST), "needed strings lost, %", "stuck", "floor of words",
        "calls over the window",
    )  # fmt: skip
    notes = (
        f"Sessions of over {LEAST_FOR_COST:,} tokens by our own estimate, replayed call by call in a window of "
        f"{window:,} tokens. The differences are paired, session by session. Lost: what the prompt no longer holds "
        "where the session is cut, on the cases that measure loss; of the stock engine's summaries nothing counts as "
        "held. Stuck: ten passes in a row end above 95 % of the trigger while old results or long inputs of 5 % of the "
        "window were left to cut; where nothing but words was, they are the floor. The cache is taken to be warm, "
        "tokens are estimated, system prompt and tool schemas are not counted: the sums are for comparing, not for "
        "quoting. The stock engine's summaries are filler of the length it asks for.",
    )
    if not found:
        return Table("cost", "Money with a prompt cache", columns, (), ("Not defined: no session is that long.",))
    return Table("cost", "Money with a prompt cache", columns, tuple(cells), notes)


_AGAINST = ("stock", "no compaction")
"""What dollars are compared with."""


def _against(own: Sequence[Replay], other: Sequence[Replay], same: bool, seed: int) -> str:
    """The mean difference in dollars, session by session."""
    if same:
        return "-"
    return estimate([(a.session, a.dollars - b.dollars) for a, b in zip(own, other, strict=True)], seed).text(2)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
