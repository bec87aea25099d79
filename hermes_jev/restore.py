"""Put every original back: `restore(prune(x)) == x`."""

from __future__ import annotations

import os
from typing import Any

from . import notice
from .errors import NotStored
from .inputs import require_messages
from .settings import Settings
from .store import Store
from .stores import open_store


def restore(messages: list[Any], store: str | os.PathLike[str] | Store | None = None) -> list[Any]:
    """The list with each cut result replaced by its original; other messages are the same objects.

    Only a text that the store itself recorded as a cut is replaced, so look-alikes stay what they are. Raises
    NotStored when a result is a cut one by its whole form and this store does not know it, StoreError when an
    original is damaged, InputError when the list is not made of messages.
    """
    require_messages(messages)
    where = open_store(store, Settings())
    cuts = {
        at: found
        for at, message in enumerate(messages)
        if message.get("role") == "tool" and (found := notice.read(message.get("content"))) is not None
    }
    if not cuts:
        return messages
    places = list(cuts)
    originals = where.originals_of([messages[at]["content"] for at in places])
    restored = list(messages)
    for index, at in enumerate(places):
        if index in originals:
            restored[at] = {**messages[at], "content": originals[index].result}
        elif cuts[at].whole:
            raise NotStored(f"message {at + 1}: this store does not hold {cuts[at].id}; name the store it was cut with")
    return restored
