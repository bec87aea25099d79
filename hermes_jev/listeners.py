"""Callbacks that hear of each pass, before and after it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from .receipts import Receipt

logger = logging.getLogger(__name__)

Listener = Callable[[Mapping[str, Any]], object]


class Listeners:
    """Callbacks of one engine and its copies. A copy shares them; a pickle leaves them behind, since another process
    cannot call them."""

    def __init__(self) -> None:
        self._callbacks: tuple[Listener, ...] = ()

    def add(self, callback: Listener) -> None:
        """Call it with each event from now on."""
        self._callbacks = (*self._callbacks, callback)

    def tell(self, event: Mapping[str, Any]) -> None:
        """Hand the event to each; one that fails is logged and costs nothing."""
        for callback in self._callbacks:
            try:
                callback(dict(event))
            except Exception as error:  # noqa: BLE001 - somebody else's code, and its words may hold anything
                logger.warning("hermes_jev: a listener failed on %s: %s", event.get("phase"), type(error).__name__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Listeners:
        copied = Listeners()
        copied._callbacks = self._callbacks
        return copied

    def __reduce__(self) -> tuple[type[Listeners], tuple[()]]:
        return Listeners, ()


def before(messages: int, tokens: int, session: str) -> dict[str, Any]:
    """The event before a pass over that many messages; `tokens` is what the host counts, 0 for nothing."""
    return {"phase": "before", "session": session, "messages": messages, "tokens_before": tokens}


def after(receipt: Receipt, session: str) -> dict[str, Any]:
    """The event after a pass: what it did, in the words and numbers of its receipt."""
    return {
        "phase": "after",
        "session": session,
        "outcome": receipt.outcome,
        "reason": receipt.why,
        "judge": receipt.judge,
        "rungs": list(receipt.rungs),
        "kept": receipt.count("keep"),
        "shrunk": sum(1 for decision in receipt.decisions if decision.action != "keep"),
        "tokens_before": receipt.used_before,
        "tokens_after": receipt.used_after,
        "summary": receipt.summary(),
    }
