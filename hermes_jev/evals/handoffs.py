"""What a handoff's material still holds: the whole dialogue, its tail, a digest, and one of the same size by recency.

A session is cut, and a fact is a distinctive string that the assistant writes after the cut and that stands before it:
in what was said, or only in calls and their output. It survives when the material holds it. No writer is needed: what
the material does not hold, no writer can hand on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..digest import Fate, digest
from ..handoff import TAIL_CHARS, dialogue, tail
from ..judge import Judge
from ..select import select
from ..settings import Settings
from ..turns import turns_of
from .corpus import Session
from .distinctive import distinctive
from .generic import Generic
from .statistics import estimate
from .tables import Table
from .texts import Message, argument_values, calls_of, cut_at, text_of, written_by

LEAST_FACTS = 3
"""With fewer facts a share says nothing."""

WAYS = ("whole dialogue", f"last {TAIL_CHARS:,} characters", "digest", "digest by recency")


class Facts(NamedTuple):
    """Strings that were said before the cut, and those that stand in calls and their output alone."""

    said: tuple[str, ...]
    tools: tuple[str, ...]


class HandoffRow(NamedTuple):
    """One way on one case: its characters, and which share of the facts it holds (None where there are too few):
    of those that were said, and of all."""

    session: str
    group: str
    share: float
    way: str
    chars: int
    facts: int
    said: float | None
    all: float | None


def compare(session: Session, share: float, generic: Generic, judge: Judge, settings: Settings) -> list[HandoffRow]:
    """The ways on a session that is cut where `share` of its characters are over; empty where nothing follows or
    nothing was said. `settings` are those of the judge."""
    cut = cut_at(session.messages, share)
    prefix, later = session.messages[:cut], session.messages[cut:]
    said = dialogue(prefix)
    if session.composed or not said or not later:
        return []
    facts = facts_of(prefix, said, later, generic, session.group)
    chosen = select(prefix, judge, settings=settings).digest
    materials = (said, tail(said), chosen, by_recency(prefix, len(chosen)))
    return [
        HandoffRow(
            session=session.id,
            group=session.group,
            share=share,
            way=way,
            chars=len(text),
            facts=len(facts.said) + len(facts.tools),
            said=_held(text, facts.said),
            all=_held(text, facts.said + facts.tools),
        )
        for way, text in zip(WAYS, materials, strict=True)
    ]


def facts_of(prefix: Sequence[Message], said: str, later: Sequence[Message], generic: Generic, group: str) -> Facts:
    """What later turns use of what stands before them. A string inside a longer one of the same message counts once."""
    shown = "\n".join(text_of(m) for m in prefix if m.get("role") == "tool")
    shown += "\n".join(argument_values(function) for m in prefix for function in calls_of(m))
    found: dict[str, bool] = {}
    for message in later:
        if message.get("role") != "assistant":
            continue
        here: list[str] = []
        for text in sorted(distinctive(written_by(message)), key=lambda one: (-len(one), one)):
            if text in found or any(text in longer for longer in here):
                continue
            if (text in said or text in shown) and not generic.holds(text, group):
                found[text] = text in said
                here.append(text)
    return Facts(tuple(t for t, by in found.items() if by), tuple(t for t, by in found.items() if not by))


def by_recency(messages: list[Message], limit: int) -> str:
    """The newest turns whole, as many as fit into `limit` characters."""
    turns = [turn for turn in turns_of(messages) if turn.text.strip()]
    fates: dict[int, Fate] = {turn.index: "keep" for turn in turns}
    return digest(turns, fates, limit)


def table(rows: Iterable[HandoffRow], seed: int) -> Table:
    """Survival by way, each a mean over cases with an interval over sessions."""
    found = list(rows)
    cells = []
    for way in WAYS:
        own = [row for row in found if row.way == way]
        cells.append(
            (
                way,
                f"{sum(row.chars for row in own) // max(1, len(own)):,}",
                _percent(((row.group, row.said) for row in own), seed),
                _percent(((row.group, row.all) for row in own), seed),
            )
        )
    cases = len({(row.session, row.share) for row in found})
    notes = (
        "Facts: distinctive strings that the assistant writes after the cut and that stand before it. Said: by the "
        "user or the assistant; all: also those that only calls and their output hold.",
        f"{cases} cases; with under {LEAST_FACTS} facts of a kind a case does not count there. The whole dialogue "
        "holds all that was said by definition. Material only: what a writer makes of it is not measured.",
    )
    return Table("handoff", "Facts that survive in a handoff's material, %", ("way", "characters", "said", "all"),
                 tuple(cells), notes)  # fmt: skip


def _percent(values: Iterable[tuple[str, float | None]], seed: int) -> str:
    return estimate(((group, None if value is None else 100 * value) for group, value in values), seed).text()


def _held(text: str, facts: tuple[str, ...]) -> float | None:
    return sum(fact in text for fact in facts) / len(facts) if len(facts) >= LEAST_FACTS else None
