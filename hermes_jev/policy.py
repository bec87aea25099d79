"""From verdicts to decisions: thresholds, the rule for a judge without a signal, and the guard.

Order of authority: window ladder (`ladder.py`) > pins > rules (`rules.py`) > judge. Doubt keeps: what was not answered
stays whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from . import notice, rank
from .calibration import Calibration, Tally, calibrate, fixed
from .errors import StoreError
from .facts import Facts
from .rules import Rule, Ruling, rulings
from .settings import Settings
from .store.values import encode, pointer_hash, pointer_id
from .tokens import estimate_tokens, value_tokens
from .transcript import Exchange, Transcript

Action = Literal["keep", "truncate", "remove", "drop"]
"""What happens to a result; with `drop` its whole turn leaves the window."""
Trigger = Literal["no", "compact", "urgent"]

FLAT_MINIMUM = 12
"""A judge that gave this many verdicts and none at its threshold has said nothing about which."""

TARGET_REACHED = "target reached"
"""Why a result stays that a judge without a signal would have let go."""

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


def estimated_if_due(messages: Any, window: int, settings: Settings) -> int:
    """Estimated tokens of the messages when these alone fill a window to the trigger, else 0."""
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        return 0
    tokens = Transcript.parse(messages).tokens
    return tokens if should_compact(tokens, window, settings) != "no" else 0


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
    """What happens to one exchange, and why. `worth` is its rank: the chance that its output is needed again, None
    where nothing but the verdict says so."""

    exchange: Exchange
    action: Action
    reason: str
    verdict: Verdict | None = None
    worth: float | None = None

    @property
    def needed(self) -> float:
        """The chance that the output is needed again, as the rank takes it."""
        if self.worth is not None:
            return self.worth
        output = self.verdict.output if self.verdict is not None else None
        return rank.UNANSWERED if output is None else output


@dataclass(frozen=True)
class Known:
    """What is known beside the judge's verdicts, by ordinal: what rules settle and where exchanges stand; and the
    calibration, without which the settings' thresholds hold."""

    rulings: Mapping[int, Ruling] = field(default_factory=dict)
    standings: Mapping[int, rank.Standing] = field(default_factory=dict)
    calibration: Calibration | None = None

    @classmethod
    def of(cls, transcript: Transcript) -> Known:
        """What the transcript alone says."""
        return cls(rulings(transcript), rank.standings(transcript))

    def with_calibration(self, verdicts: Iterable[Verdict], settings: Settings, tallies: Iterable[Tally]) -> Known:
        """The same with the calibration for these scores, as the settings ask for it."""
        given = list(verdicts)
        calls = [verdict.call for verdict in given if verdict.call is not None]
        outputs = [verdict.output for verdict in given if verdict.output is not None]
        return replace(self, calibration=calibrate(calls, outputs, settings, tallies))


NOTHING_KNOWN = Known()


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

    def to_free(self, left: float) -> float:
        """Estimated tokens to free until the prompt counts at most `left`."""
        scale = min(1.0, self.used / self.estimated) if self.estimated else 1.0
        return (self.after(0) - left) / scale if scale else 0.0

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
    once. Without a transcript, whose other words say which lines are worth keeping, no facts stay."""

    def __init__(self, settings: Settings, transcript: Transcript | None = None, task: str | None = None) -> None:
        self._settings = settings
        self._facts = Facts(transcript, settings, task) if transcript is not None and settings.fact_chars else None
        self._contents: dict[int, str | None] = {}
        self._gains: dict[tuple[int, Action], int | None] = {}

    def without_facts(self) -> Cuts:
        """Cuts that leave excerpts and notices alone."""
        return Cuts(self._settings.model_copy(update={"fact_chars": 0}))

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
        excerpt_chars = self._settings.excerpt_chars if action == "truncate" else 0
        left = self._text(exchange, excerpt_chars, pointer, ())
        if self._facts is None:
            return left
        room = notice.spare(exchange, left, min(self._settings.pin_max_chars, exchange.size - CLEARLY_SHORTER))
        return self._text(exchange, excerpt_chars, pointer, self._facts.of(exchange, excerpt_chars, room))

    def _text(self, exchange: Exchange, excerpt_chars: int, pointer: str, picked: Sequence[notice.Fact]) -> str:
        if excerpt_chars:
            return notice.truncated(exchange, pointer, excerpt_chars, picked)
        return notice.removed(exchange, pointer, picked)

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

    def chars(self, exchange: Exchange, action: Action) -> int:
        """Characters of the result as this action leaves it."""
        content = self.content(exchange)
        if action in ("keep", "drop") or content is None:
            return exchange.size
        return len(self.render(exchange, action, pointer_id(bytes.fromhex(content))))

    def best_gain(self, exchange: Exchange) -> int | None:
        """The most that any cut of this exchange frees."""
        gains = [gain for action in _CUTS if (gain := self.gain(exchange, action)) is not None]
        return max(gains, default=None)

    def possible(self, exchange: Exchange, wanted: Action) -> Action:
        """The wanted cut, or the other one where only that is possible, or keep."""
        other: Action = "truncate" if wanted == "remove" else "remove"
        return next((action for action in (wanted, other) if self.gain(exchange, action) is not None), "keep")


_CUTS: tuple[Action, Action] = ("truncate", "remove")


_REMOVED: frozenset[Rule] = frozenset(("duplicate", "near duplicate", "read again", "expanded"))
"""What these rules settle stands in full elsewhere, so that no excerpt of it is needed."""


def decide(
    candidates: Sequence[Exchange],
    verdicts: Mapping[int, Verdict],
    pressure: Pressure,
    cuts: Cuts,
    known: Known = NOTHING_KNOWN,
) -> list[Decision]:
    """The ordinary pass: rules, then thresholds, or, where the judge gave no signal, rank order down to the target."""
    bounds = known.calibration or fixed(pressure.settings)
    wanted = [
        by_rule(exchange, ruling, cuts)
        if (ruling := known.rulings.get(exchange.ordinal)) is not None
        else _by_threshold(exchange, verdicts.get(exchange.ordinal), bounds, cuts)
        for exchange in candidates
    ]
    wanted = ranked(wanted, known)
    if pressure.window is None or pressure.forced or not is_flat(verdicts, bounds):
        return wanted

    def frees(decision: Decision) -> int:
        return cuts.gain(decision.exchange, decision.action) or 0

    free = [d for d in wanted if d.exchange.ordinal in known.rulings]
    asked = rank_order(d for d in wanted if d.action != "keep" and d.exchange.ordinal not in known.rulings)
    need = math.ceil(pressure.to_free(pressure.target)) - sum(map(frees, free))
    gone = {d.exchange.ordinal for d in rank.until(asked, need, frees, lambda d: d.needed)}
    spared = {d.exchange.ordinal for d in asked} - gone
    return [replace(d, action="keep", reason=TARGET_REACHED) if d.exchange.ordinal in spared else d for d in wanted]


def is_flat(verdicts: Mapping[int, Verdict], bounds: Calibration) -> bool:
    """Whether at least 12 exchanges were judged and none reached a threshold on either question."""
    judged = [v for v in verdicts.values() if v.call is not None and v.output is not None]
    return len(judged) >= FLAT_MINIMUM and not any(
        (v.call or 0.0) >= bounds.call or (v.output or 0.0) >= bounds.output for v in judged
    )


def by_rule(exchange: Exchange, ruling: Ruling, cuts: Cuts) -> Decision:
    """The cut of what a rule settles. A result that failed keeps its excerpt: its successor does not say what went
    wrong."""
    whole = ruling.rule in _REMOVED and exchange.outcome.status != "failed"
    action = cuts.possible(exchange, "remove" if whole else "truncate")
    return Decision(exchange, action, ruling.reason if action != "keep" else "cannot be shortened")


def _by_threshold(exchange: Exchange, verdict: Verdict | None, bounds: Calibration, cuts: Cuts) -> Decision:
    if verdict is None or verdict.output is None:
        return Decision(exchange, "keep", "no answer", verdict)
    if bounds.score(exchange.tool, verdict.output) >= bounds.output:
        return Decision(exchange, "keep", "output needed", verdict)
    call_matters = verdict.call is None or verdict.call >= bounds.call
    wanted: Action = "truncate" if call_matters else "remove"
    action = cuts.possible(exchange, wanted)
    reasons = {"keep": "cannot be shortened", "truncate": "output not needed", "remove": "call and output not needed"}
    return Decision(exchange, action, reasons[action], verdict)


def ranked(
    decisions: Sequence[Decision], known: Known = NOTHING_KNOWN, outputs: Mapping[int, float] | None = None
) -> list[Decision]:
    """The decisions with their worth, in the same order. `outputs` are P(output needed) by ordinal, by default those of
    the verdicts."""
    bounds = known.calibration
    if outputs is None:
        outputs = {
            d.exchange.ordinal: bounds.score(d.exchange.tool, d.verdict.output) if bounds else d.verdict.output
            for d in decisions
            if d.verdict is not None and d.verdict.output is not None
        }
    worth = rank.worths([d.exchange for d in decisions], outputs, known.rulings, known.standings)
    return [replace(decision, worth=worth[decision.exchange.ordinal]) for decision in decisions]


def rank_order(decisions: Iterable[Decision]) -> list[Decision]:
    """The order in which results are cut when the judge gives no signal or the window is too small."""
    return sorted(decisions, key=lambda d: rank.key(d.needed, d.exchange.size, d.exchange.ordinal))
