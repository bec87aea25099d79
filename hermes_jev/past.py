"""Past sessions of the host as hits and as messages to read."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from .excerpts import Hit, Material
from .ranking import Candidate, Field, ranked
from .readable import readable
from .search_arguments import Asked
from .search_words import age
from .state_db import Row, StateDb
from .terms import query_terms, term_counts

Message = dict[str, Any]

_CONSIDERED = 60
_ROW_CHARS = 100_000
_SNIPPET_CHARS = 350
_LITERAL_CHARS = 200
_WORDS = 32
_WORD = re.compile(r"\w+")


def past_hits(
    state: StateDb, asked: Asked, without: Collection[str], roles: Sequence[str], now: float
) -> list[dict[str, Any]]:
    """Messages of other sessions that answer a query, best first, each text once."""
    looked_at = [role for role in roles if asked.wants(role)]
    if not looked_at:
        return []
    terms = query_terms(asked.query)
    words = list(dict.fromkeys(_WORD.findall(asked.query)))
    telling = [word for word in words if query_terms(word)[0] in terms]
    rows = state.holding(telling[:_WORDS], asked.query.strip()[:_LITERAL_CHARS], without, looked_at)
    # Each compaction of the host stores what stays once more.
    rows = list({readable(row.content): row for row in reversed(rows[:_CONSIDERED])}.values())
    texts = {str(row.id): readable(row.content)[:_ROW_CHARS] for row in rows}
    counts = {key: term_counts(text) for key, text in texts.items()}
    holders = {term: sum(term in count for count in counts.values()) for term in terms}
    field = Field(len(rows) + 1, sum(map(len, texts.values())) / max(1, len(rows)) / 6, holders)
    candidates = [
        Candidate(
            str(row.id),
            row.created,
            counts[str(row.id)].total(),
            {term: counts[str(row.id)][term] for term in terms if term in counts[str(row.id)]},
        )
        for row in rows
    ]
    best = ranked(candidates, field, asked.limit)
    weights = {term: field.weight(term) for term in terms if field.weight(term)}
    material = Material([Hit(texts[one.candidate.pointer], one.score or 1.0) for one in best], weights)
    shown = material.excerpts(_SNIPPET_CHARS * len(best))
    by_id = {str(row.id): row for row in rows}
    return [
        _hit(by_id[one.candidate.pointer], excerpt.text or texts[one.candidate.pointer][:_SNIPPET_CHARS], now)
        for one, excerpt in zip(best, shown, strict=True)
    ]


def _hit(row: Row, snippet: str, now: float) -> dict[str, Any]:
    tool = {"tool": row.tool[:60]} if row.tool else {}
    return {
        "session_id": row.session,
        "message_id": row.id,
        "role": row.role,
        **tool,
        "age": age(now - row.created),
        "snippet": snippet,
    }


def shown(rows: Sequence[Row], anchor: int | None, now: float) -> list[Message]:
    """The messages in order, as a reader wants them."""
    return [_message(row, row.id == anchor, now) for row in rows]


def _message(row: Row, anchor: bool, now: float) -> Message:
    text = "" if row.content is None else readable(row.content)
    message: Message = {"id": row.id, "role": row.role}
    if row.tool:
        message["tool"] = row.tool[:60]
    if anchor:
        message["anchor"] = True
    return {**message, "age": age(now - row.created), "chars": len(text), "content": text}
