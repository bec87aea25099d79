"""Put every original back: `restore(prune(x)) == x`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from .effective import from_environment
from .errors import NotStored, StoreError
from .inputs import require_messages
from .notice import Cut, cut_in
from .store import Store
from .stores import stores_to_read


def restore(
    messages: list[Any],
    store: str | os.PathLike[str] | Store | None = None,
    missing: Literal["raise", "keep"] = "raise",
) -> list[Any]:
    """The list with each cut result replaced by its original; other messages are the same objects.

    `store` is a folder or a Store; None looks into the user's own and Hermes' usual one. Only a text that a store
    itself recorded as a cut is replaced, so look-alikes stay what they are; words of the user that the host appended
    to a cut result follow its original. Raises NotStored when a result is a cut one by its whole form and no store
    knows it, StoreError when its store is damaged (with `missing="keep"` both stay as they are), InputError when the
    list is not made of messages.
    """
    require_messages(messages)
    open_cuts = cuts_in(messages)
    restored: dict[int, Any] = {}
    problems: list[StoreError] = []
    for where in stores_to_read(store, from_environment(os.environ)) if open_cuts else ():
        places = list(open_cuts)
        try:
            originals = where.originals_of([open_cuts[at].text for at in places])
        except StoreError as error:
            problems.append(error)
            continue
        for index, original in originals.items():
            at = places[index]
            restored[at] = {**messages[at], "content": _with_words(original.result, open_cuts.pop(at).words)}
    unknown = [(at, cut) for at, cut in open_cuts.items() if cut.notice.whole]
    if unknown and missing == "raise":
        at, cut = unknown[0]
        problems.append(
            NotStored(f"message {at + 1}: this store does not hold {cut.notice.id}; name the store it was cut with")
        )
        raise problems[0]
    return [restored.get(at, message) for at, message in enumerate(messages)] if restored else messages


def cuts_in(messages: Sequence[Any]) -> dict[int, Cut]:
    """The results that are cut ones by their form, by position."""
    found = {at: cut_in(message.get("content")) for at, message in enumerate(messages) if message.get("role") == "tool"}
    return {at: cut for at, cut in found.items() if cut is not None}


def _with_words(original: Any, words: str) -> Any:
    if not words:
        return original
    if isinstance(original, str):
        return original + words
    return [*(original if isinstance(original, list) else [original]), {"type": "text", "text": words}]
