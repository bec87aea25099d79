"""What came of each cut: whether its original was fetched again, or its call made again.

One row a cut result and session. Only counts leave this table; it holds no content.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from .database import Database, from_sql, to_sql
from .truth import Store

Regret = Literal["expand", "again"]

MAX_OUTCOMES = 50_000
"""Rows kept; the oldest beyond this leave."""


class CutRow(NamedTuple):
    """A cut result: its pointer, its tool, who judged it, P(output needed) and P(call matters) (None where a rule or
    rung decided), and the reason of the decision."""

    pointer: str
    tool: str
    judge: str
    score: float | None
    reason: str
    call: float | None = None


class OutcomeRow(NamedTuple):
    """A cut result and what came of it; `regret` is empty where nothing did."""

    tool: str
    judge: str
    score: float | None
    reason: str
    regret: str


def add_cuts(store: Store, session: str, cuts: Sequence[CutRow]) -> None:
    """Record cuts; a result that was cut before in this session keeps its row. Raises StoreError."""
    if not cuts:
        return
    created = store.now()
    rows = [
        (
            to_sql(session),
            cut.pointer,
            to_sql(cut.tool),
            to_sql(cut.judge),
            cut.call,
            cut.score,
            to_sql(cut.reason),
            created,
        )
        for cut in cuts
    ]
    with Database(store.path, patience_s=store.patience_s).writing() as connection:
        connection.executemany(
            "INSERT OR IGNORE INTO outcomes (session, pointer, tool, judge, call, score, reason, regret, created)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, '', ?)",
            rows,
        )
        connection.execute(
            "DELETE FROM outcomes WHERE rowid IN (SELECT rowid FROM outcomes ORDER BY rowid DESC LIMIT -1 OFFSET ?)",
            (MAX_OUTCOMES,),
        )


def regretted(store: Store, sessions: Collection[str], pointers: Collection[str], regret: Regret) -> int:
    """Count these pointers as wanted again, in whichever of the sessions they were cut; the first kind of regret stays.
    Returns how many rows changed. Raises StoreError."""
    pairs = [(regret, to_sql(session), pointer) for session in sessions for pointer in pointers]
    database = Database(store.path, patience_s=store.patience_s)
    if not pairs:
        return 0
    find = "SELECT 1 FROM outcomes WHERE session = ? AND pointer = ? AND regret = ''"
    with database.reading() as connection:
        # Most passes find nothing new: reading takes no lock.
        if connection is None or not any(connection.execute(find, pair[1:]).fetchone() for pair in pairs):
            return 0
    with database.writing() as connection:
        change = "UPDATE outcomes SET regret = ? WHERE session = ? AND pointer = ? AND regret = ''"
        return sum(connection.execute(change, pair).rowcount for pair in pairs)


def scores(store: Store, pointers: Collection[str], judge: str) -> list[tuple[float | None, float]]:
    """What this judge said of cut results, (call, output) each: the first that was put on record for a pointer. Raises
    StoreError."""
    query = (
        "SELECT call, score FROM outcomes WHERE pointer = ? AND judge = ? AND score IS NOT NULL ORDER BY rowid LIMIT 1"
    )
    with Database(store.path, patience_s=store.patience_s).reading() as connection:
        if connection is None:
            return []
        rows = (connection.execute(query, (pointer, to_sql(judge))).fetchone() for pointer in pointers)
        return [(call, output) for call, output in filter(None, rows)]


def outcomes(store: Store, judge: str | None = None) -> list[OutcomeRow]:
    """What came of all cuts that are on record, oldest first: of one judge, or of all when `judge` is None. Raises
    StoreError."""
    return [row for _, row in outcomes_by_pointer(store, judge)]


def outcomes_by_pointer(store: Store, judge: str | None = None) -> list[tuple[str, OutcomeRow]]:
    """As `outcomes`, each with the pointer of what was cut."""
    where, values = ("", ()) if judge is None else ("WHERE judge = ?", (to_sql(judge),))
    with Database(store.path, patience_s=store.patience_s).reading() as connection:
        if connection is None:
            return []
        rows = connection.execute(
            f"SELECT pointer, tool, judge, score, reason, regret FROM outcomes {where} ORDER BY rowid", values
        )
        return [
            (pointer, OutcomeRow(from_sql(tool), from_sql(name), score, from_sql(reason), regret))
            for pointer, tool, name, score, reason, regret in rows
        ]
