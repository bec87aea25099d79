"""Originals that a person wants whole (`/jev keep`): their pointers, for every session of this store."""

from __future__ import annotations

from collections.abc import Collection

from .database import Database
from .truth import Store


def keep_whole(store: Store, pointer: str) -> bool:
    """Put a pointer on the list; whether it was not there before. Raises StoreError."""
    with Database(store.path, patience_s=store.patience_s).writing() as connection:
        done = connection.execute("INSERT OR IGNORE INTO keeps VALUES (?, ?)", (pointer, store.now()))
        return done.rowcount > 0


def let_go(store: Store, pointers: Collection[str]) -> int:
    """Take pointers off the list; how many were on it. Raises StoreError."""
    with Database(store.path, patience_s=store.patience_s).writing() as connection:
        delete = "DELETE FROM keeps WHERE pointer = ?"
        return sum(connection.execute(delete, (pointer,)).rowcount for pointer in pointers)


def kept_whole(store: Store) -> frozenset[str]:
    """The pointers on the list. Raises StoreError."""
    with Database(store.path, patience_s=store.patience_s).reading() as connection:
        if connection is None:
            return frozenset()
        return frozenset(pointer for (pointer,) in connection.execute("SELECT pointer FROM keeps"))
