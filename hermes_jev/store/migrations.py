"""The tables of the truth file, as an append-only list of named steps.

A step never changes once released: a new need is a new step at the end. Each step and the record that it ran (a row of
`meta`) are one transaction, so two processes that start at once run it once, and a killed one leaves nothing half done.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from ..errors import StoreError
from .faults import Damaged, primary_code

Step = Callable[[sqlite3.Connection], None]

APPLICATION_ID = 0x6A657631
"""Stands in the header of the file and tells a store from any other SQLite file of that name."""

_RECORD = "migration:"


def m001_truth(connection: sqlite3.Connection) -> None:
    """Originals with their contents, who may open them, what stands for them; lineage, verdicts, receipts."""
    for statement in (
        "CREATE TABLE contents (sha TEXT PRIMARY KEY, body BLOB NOT NULL, chars INTEGER NOT NULL)",
        """CREATE TABLE originals (
            pointer TEXT PRIMARY KEY, tool TEXT NOT NULL, arguments_sha TEXT NOT NULL, result_sha TEXT NOT NULL,
            outcome TEXT NOT NULL, created REAL NOT NULL)""",
        """CREATE TABLE grants (
            pointer TEXT NOT NULL, session TEXT NOT NULL, created REAL NOT NULL,
            PRIMARY KEY (pointer, session)) WITHOUT ROWID""",
        "CREATE INDEX grants_by_session ON grants (session)",
        # One text stands for one original, or putting originals back would have to guess.
        "CREATE TABLE cuts (text_sha TEXT PRIMARY KEY, pointer TEXT NOT NULL) WITHOUT ROWID",
        "CREATE INDEX cuts_by_pointer ON cuts (pointer)",
        """CREATE TABLE lineage (
            child TEXT NOT NULL, parent TEXT NOT NULL, reason TEXT NOT NULL, created REAL NOT NULL,
            PRIMARY KEY (child, parent)) WITHOUT ROWID""",
        """CREATE TABLE verdicts (
            key TEXT PRIMARY KEY, call REAL, output REAL, stage TEXT NOT NULL, calls_seen INTEGER NOT NULL,
            judge TEXT NOT NULL, created REAL NOT NULL)""",
        """CREATE TABLE receipts (
            id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT, created REAL NOT NULL, body TEXT NOT NULL)""",
        "CREATE INDEX receipts_by_session ON receipts (session)",
    ):
        connection.execute(statement)


def m003_services(connection: sqlite3.Connection) -> None:
    """How remote services stand, and what they cost by day (UTC)."""
    connection.execute(
        """CREATE TABLE services (
            service TEXT PRIMARY KEY, failures INTEGER NOT NULL, open_from REAL NOT NULL, open_until REAL NOT NULL,
            wait_from REAL NOT NULL, wait_until REAL NOT NULL) WITHOUT ROWID"""
    )
    connection.execute(
        """CREATE TABLE spending (
            day TEXT NOT NULL, service TEXT NOT NULL, requests INTEGER NOT NULL, tokens INTEGER NOT NULL,
            cost REAL NOT NULL, PRIMARY KEY (day, service)) WITHOUT ROWID"""
    )


def m002_retention(connection: sqlite3.Connection) -> None:
    """When sessions were seen and originals last cut, and whose they are: what decides how long they stay."""
    for statement in (
        "CREATE TABLE sessions (session TEXT PRIMARY KEY, seen REAL NOT NULL) WITHOUT ROWID",
        "INSERT INTO sessions SELECT session, max(created) FROM grants GROUP BY session",
        "ALTER TABLE originals ADD COLUMN used REAL NOT NULL DEFAULT 0",
        # Stored outside any session too, so it outlives the sessions that have it.
        "ALTER TABLE originals ADD COLUMN shell INTEGER NOT NULL DEFAULT 0",
        "UPDATE originals SET used = created, shell = pointer NOT IN (SELECT pointer FROM grants)",
        "CREATE INDEX originals_by_use ON originals (used, pointer)",
        "CREATE INDEX originals_by_arguments ON originals (arguments_sha)",
        "CREATE INDEX originals_by_result ON originals (result_sha)",
        "ALTER TABLE receipts ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0",
        "UPDATE receipts SET bytes = length(CAST(body AS BLOB))",
        # Sizes are added up without reading the bodies before them.
        "CREATE INDEX receipts_by_size ON receipts (id, bytes)",
        "CREATE INDEX verdicts_by_age ON verdicts (created)",
    ):
        connection.execute(statement)


def m004_outcomes(connection: sqlite3.Connection) -> None:
    """What came of each cut."""
    connection.execute(
        """CREATE TABLE outcomes (
            session TEXT NOT NULL, pointer TEXT NOT NULL, tool TEXT NOT NULL, judge TEXT NOT NULL, call REAL,
            score REAL, reason TEXT NOT NULL, regret TEXT NOT NULL, created REAL NOT NULL,
            PRIMARY KEY (session, pointer))"""
    )
    connection.execute("CREATE INDEX outcomes_by_pointer ON outcomes (pointer)")


def m005_keeps(connection: sqlite3.Connection) -> None:
    """Originals that a person wants whole: pointers that no pass cuts."""
    connection.execute("CREATE TABLE keeps (pointer TEXT PRIMARY KEY, created REAL NOT NULL) WITHOUT ROWID")


MIGRATIONS: tuple[Step, ...] = (m001_truth, m002_retention, m003_services, m004_outcomes, m005_keeps)


def applied(connection: sqlite3.Connection) -> frozenset[str]:
    """Names of the steps this file went through; empty for a file nothing was ever written to.

    Raises StoreError when the file is a database of something else, Damaged when it is what is left of a store.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        # Read again: between the two another process may have made the file, all at once.
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if not tables and application == 0:
            return frozenset()
    if application != APPLICATION_ID:
        raise StoreError("the file under the store's name is not a store of hermes_jev; move it away")
    # As a range and not by LIKE, which would look through all keys.
    query = "SELECT substr(key, ?) FROM meta WHERE key >= ? AND key < ?"
    bounds = (_RECORD, _RECORD[:-1] + chr(ord(_RECORD[-1]) + 1))
    try:
        # All at once: a row that cannot be read would keep the statement open, and with it the file.
        rows = connection.execute(query, (len(_RECORD) + 1, *bounds)).fetchall()
    except sqlite3.OperationalError as error:
        if primary_code(error) in (0, sqlite3.SQLITE_ERROR):  # a key that is no text, or no such table
            raise Damaged("the store has lost its tables") from error
        raise
    return frozenset(name for (name,) in rows)


def migrate(connection: sqlite3.Connection, steps: Sequence[Step] = MIGRATIONS) -> None:
    """Run the steps this file has not been through. The connection must be in autocommit mode, outside a transaction.

    Raises StoreError for a file of another program, or of a later version that knows more steps than this one.
    """
    done = applied(connection)
    if done - {step.__name__ for step in steps}:
        raise StoreError("the store was written by a later version of hermes_jev; update this one")
    for step in steps:
        if step.__name__ not in done:
            _run_once(connection, step)


def _run_once(connection: sqlite3.Connection, step: Step) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have run it while this one waited for the lock.
        if step.__name__ not in applied(connection):
            connection.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            step(connection)
            connection.execute(
                "INSERT INTO meta (key, value) VALUES (?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))",
                (_RECORD + step.__name__,),
            )
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
