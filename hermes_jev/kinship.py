"""Which sessions a session continues: by what this agent did itself, by the store, and by the host's own records."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from pathlib import Path

from .errors import StoreError
from .state_db import FILE_NAME, StateDb
from .store import Store

logger = logging.getLogger(__name__)


def goes_on(old: object, mine: Sequence[str], parents: Collection[str], store: Store) -> str:
    """`old` when it is one of `mine` (the bound session and what it is known to continue), of what the store says the
    bound one continues, or of the host's `parents`; else "": a parent named by mistake must open nothing."""
    if not isinstance(old, str) or not old:
        return ""
    if old in mine or old in parents:
        return old
    try:
        return old if old in store.ancestry(mine[0]) else ""
    except StoreError as error:
        logger.warning("hermes_jev: the sessions before %s are not known: %s", mine[0], error)
        return ""


def seen(store: Store, session: str, parents: Sequence[str]) -> None:
    """Note in the store that the session is in use and continues its parents, nearest first."""
    try:
        store.saw(session, parents)
    except StoreError as error:
        logger.info("hermes_jev: that session %s is in use was not noted: %s", session, error)


def parents_of(session: str, home: Path) -> list[str]:
    """The sessions this one continues, nearest first, by the host's own records in `home`. Empty when they cannot be
    read."""
    try:
        return StateDb(home / FILE_NAME).parents(session)
    except StoreError as error:
        logger.debug("hermes_jev: %s", error)
        return []
