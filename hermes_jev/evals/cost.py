"""A session replayed call by call: tokens, money with a prompt cache, and whether a policy gets stuck."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..judge import Lexical
from ..settings import Settings
from ..store import Store
from .compactors import Compactor, Engine, LastStubs, Never, Stock
from .context import Context
from .corpus import Session
from .options import ENGINE
from .prices import Prices

STUCK_PASSES = 10
NEAR = 0.95
"""So many passes in a row that end above this share of the trigger, and a policy is stuck."""

STOCK_TRIGGER = 0.75
"""The share of the window at which the host's own engine acts in windows under 512,000 tokens."""


@dataclass(frozen=True)
class Replay:
    """One policy over one session. `tokens` is the mean prompt, `peak` the largest; `dollars` all calls, `beside` what
    passes cost on top (in them); `stability` the mean share of a prompt that the cache still knew right after a pass.
    `freed` holds the shares that the first and the last pass freed. `stuck_at` is the message at which the policy was
    stuck. `over` counts the calls whose prompt was larger than the window. `words` are the tokens that no tool result
    holds, at the end of the session, as it is without any policy."""

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
    over: int
    total: int
    words: int

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def replay(session: Session, name: str, compactor: Compactor, window: int, prices: Prices) -> Replay:
    """Every assistant message is one call with the whole context as its prompt."""
    context, run = Context(), _Run()
    turn_over = False
    for at, message in enumerate(session.messages):
        if message.get("role") == "assistant":
            tokens = context.tokens
            made = compactor.before_call(context.messages, tokens)
            if made is not None:
                context.replace(made.messages)
                after = context.tokens
                run.passed(at, tokens, after, after >= NEAR * compactor.trigger > 0)
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
        over=run.over,
        total=sum(map(whole.count, session.messages)),
        words=sum(whole.count(m) for m in session.messages if m.get("role") != "tool"),
    )


@dataclass
class _Run:
    calls: int = 0
    tokens: float = 0.0
    peak: int = 0
    dollars: float = 0.0
    beside: float = 0.0
    requests: int = 0
    over: int = 0
    in_a_row: int = 0
    stuck_at: int | None = None

    def __post_init__(self) -> None:
        self.freed: list[float] = []
        self.known: list[float] = []

    def passed(self, at: int, before: int, after: int, near: bool) -> None:
        self.freed.append(1 - after / max(1, before))
        self.in_a_row = self.in_a_row + 1 if near else 0
        if self.in_a_row >= STUCK_PASSES and self.stuck_at is None:
            self.stuck_at = at

    def called(self, tokens: int, known: int, dollars: float, after_pass: bool) -> None:
        self.calls += 1
        self.tokens += tokens
        self.peak = max(self.peak, tokens)
        self.dollars += dollars
        if after_pass and tokens:
            self.known.append(known / tokens)


def replays(session: Session, window: int, prices: Prices, settings: Settings) -> list[Replay]:
    """The session under each way of keeping a window."""
    trigger = settings.trigger_percent * window
    with tempfile.TemporaryDirectory(prefix="hermes_jev_eval_") as scratch:
        ways: dict[str, Callable[[], Compactor]] = {
            "no compaction": Never,
            "last-3-stubs": lambda: LastStubs(3, trigger),
            "last-3-stubs, every call": lambda: LastStubs(3, 0),
            "stock": lambda: Stock(window, STOCK_TRIGGER * window, prices),
            "stock, our trigger": lambda: Stock(window, trigger, prices),
            ENGINE: lambda: Engine(Lexical(), Store(Path(scratch)), settings, window),
        }
        return [replay(session, name, make(), window, prices) for name, make in ways.items()]
