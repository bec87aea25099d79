"""Which folder the store is in: per Hermes home inside Hermes, else the user's data folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from .settings import Settings
from .store import Store

FOLDER = "hermes_jev"


def open_store(store: str | os.PathLike[str] | Store | None, settings: Settings) -> Store:
    """The store for a folder, a store, or None: then `store_dir`, `$HERMES_HOME`, or the user's data folder."""
    if isinstance(store, Store):
        return store
    folder = Path(store) if store is not None else Path(settings.store_dir) if settings.store_dir else None
    return Store((folder or default_folder(os.environ)).expanduser())


def default_folder(environment: Mapping[str, str]) -> Path:
    """Where a process outside Hermes keeps originals."""
    if home := environment.get("HERMES_HOME", "").strip():
        return Path(home).expanduser() / FOLDER
    # Neither host has platformdirs, and inside Hermes the home is always known.
    try:
        import platformdirs
    except ModuleNotFoundError:
        return Path("~/.local/share").expanduser() / FOLDER
    return platformdirs.user_data_path(FOLDER, appauthor=False)


def stores_to_read(store: str | os.PathLike[str] | Store | None, settings: Settings) -> list[Store]:
    """The named store alone; else this process' own and Hermes' usual one, since a pointer may be in either."""
    if store is not None or settings.store_dir:
        return [open_store(store, settings)]
    return [Store(folder) for folder in known_folders(os.environ)]


def known_folders(environment: Mapping[str, str]) -> list[Path]:
    """Folders in which a person's pointers may be, the likeliest first: this process' own, then Hermes' usual home."""
    folders = [default_folder(environment), Path("~/.hermes").expanduser() / FOLDER]
    return list(dict.fromkeys(folders))
