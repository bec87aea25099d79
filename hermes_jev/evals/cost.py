"""A session replayed call by call: tokens, money with a prompt cache, and whether a policy gets stuck."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import arguments
from ..judge import Lexical
from ..settings import DEPTHS, Settings
from ..store import Store
from ..store.values import ANY_POINTER
from ..tokens import estimate_tokens
from .case import Case
from .compactors import Compactor, Engine, LastStubs, Never, Stock
from .context import Context
from .corpus import Session
from .options import ENGINE
from .prices import Prices
from .score import loss_of
from .texts import Message, calls_of, raw_arguments, text_of

STUCK_PASSES = 10
NEAR = 0.95
LEAST_LEFT = 0.05
"""So many passes in a row that end above this share of the trigger are a failure where at least this share of the
window stands in old results or long inputs that could be cut; else the words alone are the floor."""

STOCK_TRIGGER = 0.75
"""The share of the window at which the host's own engine acts in windows under 512,000 tokens."""


@dataclass(frozen=True)
class Replay:
    """One policy over one session. `tokens` is the mean prompt, `peak` the largest; `dollars` all calls, `beside` what
    passes cost on top (in them); `stability` the mean share of a prompt that the cache still knew right after a pass.
    `freed` holds the shares that the first and the last pass freed. `stuck_at` is the message at which the policy was
    stuck while something but words was left to cut, `floor_at` the one at which words alone kept it up there. `over`
    counts the calls whose prompt was larger than the window. `words` are the tokens that no tool result holds, at the
    end of the session, as it is without any policy. `lost` are shares of the needed strings that the prompt no longer
    held, at each cut."""

    session: str
    kind: str
    policy: str
    calls: int
    passes: int
    tokens: float
    peak: int
    dollars: float
    beside: float
    requests: int
    stability: float | None
    freed: tuple[float, ...]
    stuck_at: int | None
    floor_at: int | None
    over: int
    total: int
    words: int
    lost: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def replay(
    session: Session, name: str, compactor: Compactor, window: int, prices: Prices, cases: Sequence[Case] = ()
) -> Replay:
    """Every assistant message is one call with the whole context as its prompt. `cases` are this session cut somewhere:
    what is needed after a cut is looked for in the context as it then is."""
    context, run = Context(), _Run()
    turn_over = False
    for at, message in enumerate(session.messages):
        run.lost += [_lost(case, context.messages) for case in cases if case.cut == at]
        if message.get("role") == "assistant":
            tokens = context.tokens
            made = compactor.before_call(context.messages, tokens)
            if made is not None:
                context.replace(made.messages)
                after = context.tokens
                near = after >= NEAR * compactor.trigger > 0
                run.passed(at, tokens, after, near, near and _left(context) >= LEAST_LEFT * window)
                run.requests += made.requests
                run.beside += made.dollars
                tokens = after
            known = context.send()
            run.called(tokens, known, prices.call(tokens, known, context.count(message)), made is not None)
            run.over += tokens > window
            compactor.after_call(tokens, turn_over)
            turn_over = False
        turn_over = turn_over or message.get("role") == "user"
        context.add(message)
    whole = Context()
    return Replay(
        session=session.group,
        kind=session.kind,
        policy=name,
        calls=run.calls,
        passes=len(run.freed),
        tokens=run.tokens / max(1, run.calls),
        peak=run.peak,
        dollars=run.dollars + run.beside,
        beside=run.beside,
        requests=run.requests,
        stability=sum(run.known) / len(run.known) if run.known else None,
        freed=(run.freed[0], run.freed[-1]) if run.freed else (),
        stuck_at=run.stuck_at,
        floor_at=run.floor_at,
        over=run.over,
        total=sum(map(whole.count, session.messages)),
        words=sum(whole.count(m) for m in session.messages if m.get("role") != "tool"),
        lost=tuple(run.lost),
    )


def _left(context: Context) -> int:
    """Tokens of what could still be cut: results over what is small, and long inputs, but those of the last calls."""
    defaults, messages = Settings(), context.messages
    recent = defaults.pin_last_calls
    results = [m for m in messages if m.get("role") == "tool"][:-recent]
    callers = [m for m in messages if m.get("tool_calls")][:-recent]
    raw = [text for message in callers for function in calls_of(message) if (text := raw_arguments(function))]
    shorter = [(text, arguments.shortened(text, ANY_POINTER)) for text in raw]
    freed = sum(estimate_tokens(text) - estimate_tokens(short) for text, short in shorter if short is not None)
    return freed + sum(context.count(m) for m in results if len(text_of(m)) > defaults.pin_max_chars)


def _lost(case: Case, messages: Sequence[Message]) -> float:
    return len(loss_of(case, messages).lost) / len(case.needs)


@dataclass
class _Run:
    calls: int = 0
    tokens: float = 0.0
    peak: int = 0
    dollars: float = 0.0
    beside: float = 0.0
    requests: int = 0
    over: int = 0
    stuck_at: int | None = None
    floor_at: int | None = None

    def __post_init__(self) -> None:
        self.freed: list[float] = []
        self.lost: list[float] = []
        self.known: list[float] = []
        self.near: list[bool] = []

    def passed(self, at: int, before: int, after: int, near: bool, left: bool) -> None:
        """`near` says that it ended near the trigger, `left` that it left something to cut."""
        self.freed.append(1 - after / max(1, before))
        self.near = [*self.near, left][-STUCK_PASSES:] if near else []
        if len(self.near) == STUCK_PASSES:
            if all(self.near):
                self.stuck_at = at if self.stuck_at is None else self.stuck_at
            elif self.floor_at is None:
                self.floor_at = at

    def called(self, tokens: int, known: int, dollars: float, after_pass: bool) -> None:
        self.calls += 1
        self.tokens += tokens
        self.peak = max(self.peak, tokens)
        self.dollars += dollars
        if after_pass and tokens:
            self.known.append(known / tokens)


def replays(
    session: Session, window: int, prices: Prices, settings: Settings, cases: Sequence[Case] = ()
) -> list[Replay]:
    """The session under each way of keeping a window; `cases` are the session cut somewhere."""
    trigger = settings.trigger_percent * window

    with tempfile.TemporaryDirectory(prefix="hermes_jev_eval_") as scratch:

        def engine(number: int, **changed: Any) -> Engine:
            chosen = settings.model_copy(update=changed)
            return Engine(Lexical(), Store(Path(scratch) / str(number)), chosen, window)

        other = "threshold" if settings.schedule == "rolling" else "rolling"
        ways: dict[str, Callable[[], Compactor]] = {
            "no compaction": Never,
            "last-3-stubs": lambda: LastStubs(3, trigger),
            "last-3-stubs, every call": lambda: LastStubs(3, 0),
            "stock": lambda: Stock(window, STOCK_TRIGGER * window, prices),
            "stock, our trigger": lambda: Stock(window, trigger, prices),
            ENGINE: lambda: engine(0),
            f"{ENGINE}, {other}": lambda: engine(1, schedule=other),
        }
        ways |= {
            f"{ENGINE}, deepen {depth}": lambda number=number, depth=depth: engine(number, deepen=depth)  # type: ignore[misc]
            for number, depth in enumerate(DEPTHS, 2)
            if depth != settings.deepen
        }
        return [replay(session, name, make(), window, prices, cases) for name, make in ways.items()]
