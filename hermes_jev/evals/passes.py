"""Many passes over a growing session: is anything cut twice, does it end, and what is left?"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..judge import Lexical
from ..pins import pins
from ..prune import prune
from ..settings import Settings
from ..store import Store
from ..transcript import Transcript
from .corpus import Session
from .texts import cut_at, size_of

PASSES = 40


@dataclass(frozen=True)
class Passes:
    """`passes` over one session at even distances, `changed` of them cut something. `recut` counts results that were
    cut again, `restless` passes whose result a second pass would change, `words_changed` passes that touched anything
    but results. `floor` says in characters what is left at the end: of words, arguments, results that are small, cut or
    pinned, and results that the judge keeps."""

    session: str
    kind: str
    passes: int
    changed: int
    recut: int
    restless: int
    words_changed: int
    chars: int
    floor: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def repeat(session: Session, settings: Settings, count: int = PASSES) -> Passes:
    """`count` passes of the embedded judge without a window; each sees what the last one left and what came since."""
    judge = Lexical()
    with tempfile.TemporaryDirectory(prefix="hermes_jev_eval_") as scratch:
        store = Store(Path(scratch))
        context: list[Any] = []
        cut: dict[int, Any] = {}
        done = changed = recut = restless = words = at = 0
        for number in range(1, count + 1):
            until = cut_at(session.messages, number / count)
            context, at = [*context, *session.messages[at:until]], until
            after = prune(context, judge, store, settings).messages
            done += 1
            if after is not context:
                pairs = [(old, new) for old, new in zip(context, after, strict=True) if old is not new]
                changed += 1
                recut += sum(id(old) in cut for old, _ in pairs)
                words += any(old.get("role") != "tool" for old, _ in pairs)
                cut |= {id(new): new for _, new in pairs}
            restless += prune(after, judge, store, settings).messages is not after
            context = after
        return Passes(
            session=session.group,
            kind=session.kind,
            passes=done,
            changed=changed,
            recut=recut,
            restless=restless,
            words_changed=words,
            chars=size_of(session.messages),
            floor=_floor(context, cut, settings),
        )


def _floor(messages: Sequence[Any], cut: dict[int, Any], settings: Settings) -> dict[str, int]:
    """Characters that are left, by why they are."""
    transcript = Transcript.parse(messages)
    pinned = pins(transcript, settings)
    words = sum(size_of([{**m, "tool_calls": None}]) for m in messages if m.get("role") != "tool")
    results = sum(size_of([m]) for m in messages if m.get("role") == "tool")
    floor = {"words": words, "arguments": size_of(messages) - words - results}
    floor |= {"shortened": 0, "small": 0, "pinned": 0, "kept": 0}
    for exchange in transcript.completed:
        was_cut = exchange.result_at is not None and id(messages[exchange.result_at]) in cut
        pin = pinned.get(exchange.ordinal)
        why = "shortened" if was_cut else "small" if pin == "small" else "pinned" if pin else "kept"
        floor[why] += exchange.size
    return floor
