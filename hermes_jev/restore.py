"""Put every original back: `restore(prune(x)) == x`."""

from __future__ import annotations

import os
from typing import Any, Literal

from . import notice
from .errors import NotStored
from .inputs import require_messages
from .settings import Settings
from .store import Store
from .stores import open_store
from .wrapping import unwrap


def restore(
    messages: list[Any],
    store: str | os.PathLike[str] | Store | None = None,
    missing: Literal["raise", "keep"] = "raise",
) -> list[Any]:
    """The list with each cut result replaced by its original; other messages are the same objects.

    Only a text that the store itself recorded as a cut is replaced, so look-alikes stay what they are; words of the
    user that the host appended to a cut result follow its original. Raises NotStored when a result is a cut one by its
    whole form and this store does not know it (with `missing="keep"` it stays as it is), StoreError when an original
    is damaged, InputError when the list is not made of messages.
    """
    require_messages(messages)
    where = open_store(store, Settings())
    cuts = {at: one for at, message in enumerate(messages) if (one := _cut(message)) is not None}
    if not cuts:
        return messages
    places = list(cuts)
    originals = where.originals_of([cuts[at][0] for at in places])
    restored = list(messages)
    for index, at in enumerate(places):
        _, found, words = cuts[at]
        if index in originals:
            restored[at] = {**messages[at], "content": _with_words(originals[index].result, words)}
        elif found.whole and missing == "raise":
            raise NotStored(f"message {at + 1}: this store does not hold {found.id}; name the store it was cut with")
    return restored


def _cut(message: Any) -> tuple[str, notice.Notice, str] | None:
    """The text of a result that ends with a notice, the notice, and what the user said after it."""
    content = message.get("content")
    if message.get("role") != "tool" or not isinstance(content, str):
        return None
    words = unwrap(content).user_words
    text = content[: len(content) - len(words)]
    found = notice.read(text)
    return (text, found, words) if found is not None else None


def _with_words(original: Any, words: str) -> Any:
    if not words:
        return original
    if isinstance(original, str):
        return original + words
    return [*(original if isinstance(original, list) else [original]), {"type": "text", "text": words}]
