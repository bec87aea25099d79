"""What the engine says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import StoreError
from .lineage import Lineage
from .receipts import Receipt
from .settings import Resolved
from .store import Store


def status(
    host: Mapping[str, Any],
    found: Resolved,
    *,
    name: str,
    lineage: Lineage,
    home: Path,
    judge: str,
    spent: float | None,
    store: Store,
    last: Receipt | None,
    error: str,
    passes: int,
    problems: Sequence[str],
) -> dict[str, Any]:
    """The host's fields and: settings in force and where they come from, the session, the judge, the store, the last
    pass, and what is wrong, in words. Nothing of it is a secret or a text of the conversation."""
    settings = found.settings
    return {
        **host,
        "engine": name,
        "compression_count": passes,
        "mode": settings.mode if settings.enabled else "off",
        "settings": settings.model_dump(mode="json"),
        "origins": dict(found.origins),
        "session": lineage.session,
        "continues": list(lineage.before),
        "home": str(home),
        "judge": judge,
        "spent_today_usd": spent,
        "store": _store(store),
        "outcome": "error" if error else last.outcome if last else "",
        "last_pass": error or (last.summary() if last else ""),
        "last_receipt": last.model_dump(mode="json", exclude={"decisions"}) if last else None,
        "problems": list(dict.fromkeys([*found.problems, *problems, *(last.problems if last else ())])),
    }


def _store(store: Store) -> dict[str, Any]:
    try:
        size = store.path.stat().st_size
    except OSError:
        size = 0
    return {"folder": str(store.folder), "bytes": size, "state": _state(store)}


def _state(store: Store) -> str:
    try:
        store.verdicts(["state"])
    except StoreError as error:
        return str(error)
    return "ready" if store.path.exists() else "empty"
