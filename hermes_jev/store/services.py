"""What is remembered of remote services between passes: how they stand, and what they cost, by day.

It is kept in the truth file and not in an engine, since engines are copied, end, and run in several processes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ..errors import StoreError
from .database import Database, to_sql
from .truth import Store

MAX_DAYS = 400
"""Days of spending that are kept."""

_COLUMNS = "failures, open_from, open_until, wait_from, wait_until"

Row = tuple[int, float, float, float, float]
"""Failures, and two spans in seconds since 1970."""

NEVER_SEEN: Row = (0, 0.0, 0.0, 0.0, 0.0)


class Spent(NamedTuple):
    """Requests sent, input tokens read, US dollars."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0


class Services:
    """The records of a store about services. Like the store it opens its file for each operation, makes nothing before
    the first write, and raises StoreError when the file cannot be used."""

    def __init__(self, store: Store) -> None:
        self.now = store.now
        self._database = Database(store.path, patience_s=store.patience_s)

    def row(self, service: str) -> Row:
        """How a service stands; NEVER_SEEN for an unknown one."""
        with self._database.reading() as connection:
            return NEVER_SEEN if connection is None else _row(connection, service)

    def record(self, service: str, change: Callable[[Row], Row], spent: Spent = Spent()) -> Row:  # noqa: B008
        """Change how a service stands, and add what was spent today, in one transaction. Returns the row before."""
        with self._database.writing() as connection:
            before = _row(connection, service)
            new = change(before)
            if new != before:
                connection.execute(
                    f"INSERT OR REPLACE INTO services (service, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
                    (to_sql(service), *new),
                )
            if any(spent):
                _add(connection, self.today(), service, spent)
            return before

    def today(self) -> str:
        """The current day in UTC, as 2026-11-30."""
        return datetime.fromtimestamp(self.now(), UTC).date().isoformat()

    def spent(self, day: str | None = None) -> Spent:
        """What all services together cost on a day, today if None."""
        with self._database.reading() as connection:
            if connection is None:
                return Spent()
            row = connection.execute(
                "SELECT COALESCE(SUM(requests), 0), COALESCE(SUM(tokens), 0), COALESCE(SUM(cost), 0.0)"
                " FROM spending WHERE day = ?",
                (day or self.today(),),
            ).fetchone()
            return _spent(row)

    def days(self, limit: int = MAX_DAYS) -> list[tuple[str, Spent]]:
        """Spending by day, all services together, newest first."""
        with self._database.reading() as connection:
            if connection is None:
                return []
            rows = connection.execute(
                "SELECT day, SUM(requests), SUM(tokens), SUM(cost) FROM spending"
                " GROUP BY day ORDER BY day DESC LIMIT ?",
                (max(limit, 0),),
            )
            return [(str(day), _spent(numbers)) for day, *numbers in rows]


def _add(connection: sqlite3.Connection, day: str, service: str, spent: Spent) -> None:
    connection.execute(
        "INSERT INTO spending (day, service, requests, tokens, cost) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (day, service) DO UPDATE SET requests = requests + excluded.requests,"
        " tokens = tokens + excluded.tokens, cost = cost + excluded.cost",
        (day, to_sql(service), *spent),
    )
    connection.execute(
        "DELETE FROM spending WHERE day NOT IN (SELECT DISTINCT day FROM spending ORDER BY day DESC LIMIT ?)",
        (MAX_DAYS,),
    )


def _row(connection: sqlite3.Connection, service: str) -> Row:
    found = connection.execute(f"SELECT {_COLUMNS} FROM services WHERE service = ?", (to_sql(service),)).fetchone()
    match found:
        case None:
            return NEVER_SEEN
        case (int() as failures, float() as a, float() as b, float() as c, float() as d):
            return failures, a, b, c, d
    raise StoreError("what is remembered of a service is damaged")


def _spent(numbers: Sequence[object]) -> Spent:
    match tuple(numbers):
        case (int() as requests, int() as tokens, float() as cost):
            return Spent(requests, tokens, cost)
    raise StoreError("what is remembered of costs is damaged")
