"""What an evaluation measures: one row for each case and policy, plain enough for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

Group = Literal["policy", "equal", "threshold", "whole"]


@dataclass(frozen=True)
class Row:
    """One policy on one case: the transcript `id`, a part of `session`, cut where the share `cut` of it is over.

    `group` says how its size came about: as the policy has it, at a `share` of tool characters, by a threshold of
    the engine (`share` holds the threshold), or as the policy has it on the whole session, which is for sizes alone.
    Sizes are characters. `lost` counts needed strings; `old` and `old_lost` those whose newest carrier was ten or more
    results back. `again` are the characters of results that would have to be fetched again, each once. `matched` holds
    what rankers lose on this very case at this very size. Of the `search_steps` that miss something of a result,
    `search_found` and `search_shown` are helped by a plain search; `own_found`, `own_shown` and `own_expanded` by the
    engine's own, for rows of the engine.
    """

    id: str
    session: str
    kind: str
    cut: float
    policy: str
    group: Group
    share: float | None
    chars: int
    removed: float
    tool_chars: int
    tool_removed: float
    bound: int
    measures_loss: bool
    needs: int
    lost: float
    old: int
    old_lost: float
    results_needed: int
    results_lost: float
    steps: int
    steps_hit: float
    again: float
    matched: dict[str, float] = field(default_factory=dict)
    search_steps: float = 0
    search_found: float = 0
    search_shown: float = 0
    own_found: float = 0
    own_shown: float = 0
    own_expanded: float = 0
    words_kept: bool = True
    paired: bool = True
    stable: float | None = None
    again_unchanged: bool | None = None
    requests: int = 0
    tokens: int = 0
    cost: float = 0.0

    @property
    def lost_share(self) -> float | None:
        """Needed strings lost, in percent; None where that says nothing."""
        return 100 * self.lost / self.needs if self.measures_loss and self.needs else None

    @property
    def removed_share(self) -> float:
        """Characters removed of the whole prefix, in percent."""
        return 100 * self.removed / self.chars if self.chars else 0.0

    @property
    def tool_share(self) -> float:
        """Characters removed of the tool results, in percent."""
        return 100 * self.tool_removed / self.tool_chars if self.tool_chars else 0.0

    @property
    def reached(self) -> bool:
        """Whether the size that was asked for was reached."""
        return self.group != "equal" or self.share is None or self.tool_removed >= self.share * self.tool_chars

    def difference(self, other: str) -> float | None:
        """Points of needed strings lost above what a matched ranker loses; negative is better than it."""
        own = self.lost_share
        return None if own is None or other not in self.matched else own - self.matched[other]

    def to_json(self) -> dict[str, Any]:
        """The row as a JSON object."""
        return asdict(self)


_AVERAGED = (
    *("removed", "tool_removed", "lost", "old_lost", "results_lost", "steps_hit", "again"),
    *("search_steps", "search_found", "search_shown", "own_found", "own_shown", "own_expanded"),
)


def averaged(draws: Sequence[Row]) -> Row:
    """One row for several draws of chance on the same case: the means of what came out, so counts need not be whole."""
    first = draws[0]
    if len(draws) == 1:
        return first
    means = {name: sum(vars(row)[name] for row in draws) / len(draws) for name in _AVERAGED}
    common = set(first.matched).intersection(*(row.matched for row in draws))
    matched = {name: sum(row.matched[name] for row in draws) / len(draws) for name in sorted(common)}
    return replace(first, **means, matched=matched)


@dataclass(frozen=True)
class Timing:
    """How long a policy took on one case, in milliseconds. Kept apart: it is not the same twice."""

    policy: str
    chars: int
    ms: float
