"""Strings that the model writes out of its own head: they show no need.

A string is generic for a session when the model wrote it in at least two other sessions without having read it there.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import InputError
from .corpus import Session
from .distinctive import distinctive
from .texts import text_of, written_by

FILE_NAME = "generic.json.gz"
LONGEST = 120
OTHERS = 2
"""In so many other sessions it must have been written."""


def owner_of(session: str) -> str:
    """How a session is called in the list."""
    return hashlib.sha1(session.encode("utf-8", "surrogatepass")).hexdigest()[:8]


@dataclass(frozen=True)
class Generic:
    """String → the sessions that wrote it out of their own heads."""

    owners: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def holds(self, text: str, session: str) -> bool:
        """Whether the string is generic for this session."""
        own = owner_of(session)
        return sum(owner != own for owner in self.owners.get(text, ())) >= OTHERS


def load(path: Path) -> Generic:
    """A list from a file, as the evaluation kit ships it. Raises InputError."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            value = json.load(stream)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path}: no list of generic strings: {type(error).__name__}") from None
    if not isinstance(value, dict) or not all(isinstance(owners, list) for owners in value.values()):
        raise InputError(f"{path}: a JSON object of lists is needed")
    return Generic(value)


def learn(sessions: Iterable[Session]) -> Generic:
    """A list from the sessions themselves. One session is held at a time."""
    owners: dict[str, set[str]] = defaultdict(set)
    for session in sessions:
        if session.composed:
            continue
        own, seen = owner_of(session.group), set[str]()
        for message in session.messages:
            by_model = message.get("role") == "assistant"
            found = distinctive(written_by(message) if by_model else text_of(message))
            if by_model:
                for text in found:
                    if text not in seen and len(text) <= LONGEST:
                        owners[text].add(own)
            seen.update(found)
    return Generic({text: sorted(names)[: OTHERS + 2] for text, names in owners.items() if len(names) >= OTHERS})
