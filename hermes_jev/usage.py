"""What a service counts for one estimated token, learned from the usage it reports.

Kept as a number in the store for each judge and model, within bounds, so that a wrong report can neither overfill a
request nor empty it. A store that cannot be read gives 1.
"""

from __future__ import annotations

from .errors import StoreError
from .judge import Answers, Judge
from .store import Store
from .store.notes import note, save_note
from .window import REQUEST_OVERHEAD_TOKENS, Fitted

LEAST, MOST = 0.7, 1.6
WEIGHT = 0.3
"""Weight of the newest report."""


def token_factor(store: Store, judge: Judge) -> float:
    """Tokens the service counts for one estimated token; 1 where nothing was learned."""
    try:
        noted = note(store, _key(judge))
        return min(MOST, max(LEAST, float(noted))) if noted else 1.0
    except (StoreError, ValueError):
        return 1.0


def learn(store: Store, judge: Judge, fitted: Fitted, answers: Answers) -> None:
    """Take a report into account. One that also counts repeats, pieces or failures says nothing about a request."""
    clean = answers.requests == len(fitted.requests) and not answers.errors and not answers.failed
    counted = answers.input_tokens - REQUEST_OVERHEAD_TOKENS * len(fitted.requests)
    if not clean or counted <= 0 or fitted.tokens <= 0:
        return
    before = token_factor(store, judge)
    after = min(MOST, max(LEAST, before + WEIGHT * (counted / fitted.tokens - before)))
    if round(after, 3) == round(before, 3):
        return
    try:
        save_note(store, _key(judge), f"{after:.3f}")
    except StoreError:
        return


def _key(judge: Judge) -> str:
    return f"token factor:{judge.name}:{judge.version}"
