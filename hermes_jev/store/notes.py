"""Short texts under a key, for what is worth remembering between passes."""

from __future__ import annotations

from .database import Database, from_sql, to_sql
from .truth import Store

PREFIX = "note:"
"""Keys of notes begin with this, beside those of the migrations."""


def note(store: Store, key: str) -> str | None:
    """What was noted under this key last, or None. Raises StoreError."""
    with Database(store.path, patience_s=store.patience_s).reading() as connection:
        if connection is None:
            return None
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (to_sql(f"{PREFIX}{key}"),)).fetchone()
        return None if row is None else str(from_sql(row[0]))


def save_note(store: Store, key: str, text: str) -> None:
    """Note a short text under a key, in place of the one before. Raises StoreError."""
    with Database(store.path, patience_s=store.patience_s).writing() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (to_sql(f"{PREFIX}{key}"), to_sql(text))
        )
