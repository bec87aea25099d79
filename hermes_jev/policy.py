"""From verdicts to decisions: thresholds, the rule for a judge without a signal, and the guard.

Order of authority: window ladder (`ladder.py`) > pins > judge. Doubt keeps: what was not answered stays whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from . import notice
from .errors import StoreError
from .settings import Settings
from .store.values import encode, pointer_hash, pointer_id
from .tokens import estimate_tokens, value_tokens
from .transcript import Exchange, Transcript

Action = Literal["keep", "truncate", "remove", "drop"]
"""What happens to a result; with `drop` its whole turn leaves the window."""
Trigger = Literal["no", "compact", "urgent"]

FLAT_MINIMUM = 12
"""A judge that gave this many verdicts and none at its threshold has said nothing about which."""

CLEARLY_SHORTER = 200
"""Characters by which a replaced result must be shorter."""


def should_compact(used: int, window: int, settings: Settings) -> Trigger:
    """Arithmetic only: where `used` tokens stand in a window of `window` tokens, output room taken off first."""
    if window <= 0 or used <= 0:
        return "no"
    room = prompt_room(window, settings)
    if used >= settings.urgent_percent * room:
        return "urgent"
    return "compact" if used >= settings.trigger_percent * room else "no"


def prompt_room(window: int, settings: Settings) -> int:
    """The window less the room reserved for the answer, which never takes more than half of it: a reserve that left no
    room would make every prompt an overflow."""
    return max(window - settings.reserve_output_tokens, window // 2)


@dataclass(frozen=True)
class Verdict:
    """Two probabilities about one exchange, None where there is no usable answer."""

    call: float | None
    output: float | None
    stage: str
    judge: str
    cached: bool = False


@dataclass(frozen=True)
class Decision:
    """What happens to one exchange, and why."""

    exchange: Exchange
    action: Action
    reason: str
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Pressure:
    """How full the window is, in tokens.

    `window` is None when it is not known: then there is no target, no guard and no ladder. `used` is what the prompt
    takes, `counted` what the host counted (less, where a refusal says that it is more; None is the same), `estimated`
    what our estimator says of the messages alone. `overflow` says that the window is too small for the prompt as it is.
    """

    window: int | None
    used: int
    estimated: int
    settings: Settings
    forced: bool = False
    overflow: bool = False
    counted: int | None = None

    @classmethod
    def of(
        cls,
        transcript: Transcript,
        window: int | None,
        settings: Settings,
        *,
        used: int | None = None,
        forced: bool = False,
        overflow: bool = False,
    ) -> Pressure:
        """`used` falls back to the estimate; an overflow means at least a full window, whatever was counted."""
        estimated = transcript.tokens
        room = max(1, prompt_room(window, settings)) if window and window > 0 else None
        counted = used if used and used > 0 else estimated
        if room is not None:
            overflow = overflow or counted > room
        taken = max(counted, room) if overflow and room is not None else counted
        return cls(room, taken, estimated, settings, forced, overflow and room is not None, counted)

    @property
    def trigger(self) -> float:
        """Tokens from which a pass runs."""
        return self.settings.trigger_percent * (self.window or 0)

    @property
    def urgent(self) -> bool:
        """Guards are ignored and a failing judge is replaced."""
        return self.overflow or self.is_urgent(self.used)

    def is_urgent(self, tokens: float) -> bool:
        """Whether a prompt of that many tokens is at urgent pressure."""
        return self.window is not None and tokens >= self.settings.urgent_percent * self.window

    @property
    def at_rest(self) -> bool:
        """At or under the target there is nothing to do."""
        return self.window is not None and not self.forced and not self.overflow and self.used <= self.target

    @property
    def target(self) -> float:
        """Tokens at which a judge without a signal stops cutting."""
        return self.settings.target_percent * (self.window or 0)

    @property
    def least_gain(self) -> float:
        """Tokens a pass must free to be worth it; 0 when guards do not count."""
        if self.window is None or self.forced or self.urgent:
            return 0.0
        return self.settings.min_gain_percent * self.window

    def after(self, freed: int) -> float:
        """The prompt once `freed` estimated tokens are gone. What the count holds beyond the messages (system prompt,
        tool schemas) stays. Where the estimator is off it is scaled: down if it counts more than the prompt, up if the
        provider refused a prompt that everybody counted as smaller, so that a second refusal still finds something."""
        counted = self.used if self.counted is None else self.counted
        beside = max(0, counted - self.estimated)
        scale = (self.used - beside) / self.estimated if self.estimated else 1.0
        return beside + scale * (self.estimated - freed)


class Cuts:
    """What cutting an exchange would leave and free. One instance a pass: texts are hashed, rendered and counted
    once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._contents: dict[int, str | None] = {}
        self._gains: dict[tuple[int, Action], int | None] = {}

    def content(self, exchange: Exchange) -> str | None:
        """The identity of an exchange: tool, arguments and result, hashed. None when the result has no exact encoding,
        and so cannot be stored."""
        if exchange.ordinal not in self._contents:
            try:
                hashed = pointer_hash(exchange.tool, exchange.arguments, encode(exchange.result)).hex()
            except StoreError:
                hashed = None
            self._contents[exchange.ordinal] = hashed
        return self._contents[exchange.ordinal]

    def render(self, exchange: Exchange, action: Action, pointer: str) -> str:
        """The text that will stand in the result's place."""
        if action == "remove":
            return notice.removed(exchange, pointer)
        return notice.truncated(exchange, pointer, self._settings.excerpt_chars)

    def gain(self, exchange: Exchange, action: Action) -> int | None:
        """Estimated tokens freed, or None when the cut is not possible: the text left would be too long to be settled
        by its size, or not clearly shorter."""
        key = exchange.ordinal, action
        if key not in self._gains:
            self._gains[key] = self._gain(exchange, action)
        return self._gains[key]

    def _gain(self, exchange: Exchange, action: Action) -> int | None:
        if action in ("keep", "drop"):
            return 0
        content = self.content(exchange)
        if content is None:
            return None
        # The very text that will stand there: an estimate that differs from it by a token would let a second pass
        # find the prompt over the target that the first one stopped at.
        left = self.render(exchange, action, pointer_id(bytes.fromhex(content)))
        if len(left) > self._settings.pin_max_chars or exchange.bulk - len(left) < CLEARLY_SHORTER:
            return None
        gain = value_tokens(exchange.result) - estimate_tokens(left)
        return gain if gain > 0 else None

    def best_gain(self, exchange: Exchange) -> int | None:
        """The most that any cut of this exchange frees."""
        gains = [gain for action in _CUTS if (gain := self.gain(exchange, action)) is not None]
        return max(gains, default=None)

    def possible(self, exchange: Exchange, wanted: Action) -> Action:
        """The wanted cut, or the other one where only that is possible, or keep."""
        other: Action = "truncate" if wanted == "remove" else "remove"
        return next((action for action in (wanted, other) if self.gain(exchange, action) is not None), "keep")


_CUTS: tuple[Action, Action] = ("truncate", "remove")


def decide(
    candidates: Sequence[Exchange], verdicts: Mapping[int, Verdict], pressure: Pressure, cuts: Cuts
) -> list[Decision]:
    """The ordinary pass: thresholds, or, where the judge gave no signal, rank order down to the target."""
    settings = pressure.settings
    wanted = [_by_threshold(exchange, verdicts.get(exchange.ordinal), settings, cuts) for exchange in candidates]
    if pressure.window is None or pressure.forced or not is_flat(verdicts, settings):
        return wanted
    freed = 0
    kept: dict[int, Decision] = {}
    for decision in rank_order(wanted):
        if decision.action == "keep" or pressure.after(freed) > pressure.target:
            freed += cuts.gain(decision.exchange, decision.action) or 0
            continue
        kept[decision.exchange.ordinal] = Decision(decision.exchange, "keep", "target reached", decision.verdict)
    return [kept.get(decision.exchange.ordinal, decision) for decision in wanted]


def is_flat(verdicts: Mapping[int, Verdict], settings: Settings) -> bool:
    """Whether at least 12 exchanges were judged and none reached a threshold on either question."""
    judged = [v for v in verdicts.values() if v.call is not None and v.output is not None]
    return len(judged) >= FLAT_MINIMUM and not any(
        (v.call or 0.0) >= settings.call_threshold or (v.output or 0.0) >= settings.output_threshold for v in judged
    )


def _by_threshold(exchange: Exchange, verdict: Verdict | None, settings: Settings, cuts: Cuts) -> Decision:
    if verdict is None or verdict.output is None:
        return Decision(exchange, "keep", "no answer", verdict)
    if verdict.output >= settings.output_threshold:
        return Decision(exchange, "keep", "output needed", verdict)
    call_matters = verdict.call is None or verdict.call >= settings.call_threshold
    wanted: Action = "truncate" if call_matters else "remove"
    action = cuts.possible(exchange, wanted)
    reasons = {"keep": "cannot be shortened", "truncate": "output not needed", "remove": "call and output not needed"}
    return Decision(exchange, action, reasons[action], verdict)


def rank_order(decisions: Iterable[Decision]) -> list[Decision]:
    """The order in which results are cut when the judge gives no signal or the window is too small."""
    return sorted(decisions, key=_rank)


def _rank(decision: Decision) -> tuple[float, int]:
    """Least worth per character first, older first among equals; no answer counts as an even chance."""
    verdict = decision.verdict
    worth = 0.5 if verdict is None or verdict.output is None else verdict.output
    return worth / max(1, decision.exchange.size), decision.exchange.ordinal


def gain_of(decisions: Sequence[Decision], cuts: Cuts) -> int:
    """Estimated tokens that the decisions free together."""
    return sum(cuts.gain(decision.exchange, decision.action) or 0 for decision in decisions)
