"""What the plugin asks of the host it runs in, without importing it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .egress import Gate
from .judge import Judge
from .settings import Resolved, Settings
from .store import Store
from .stores import FOLDER


@dataclass(frozen=True)
class Surroundings:
    """Each is asked when it is needed, since homes and profiles change between sessions of one process. `session` is
    the id of the session at hand, empty where that is not known; `config` the host's configuration for this plugin."""

    home: Callable[[], Path]
    config: Callable[[], Any]
    resolved: Callable[[], Resolved]
    judge: Callable[[Settings], Judge]
    session: Callable[[], str]
    gate: Callable[[], Gate]

    def settings(self) -> Settings:
        """The settings in force, with the store that they mean spelled out."""
        found = self.resolved().settings
        return found if found.store_dir else found.model_copy(update={"store_dir": str(self.home() / FOLDER)})

    def store(self) -> Store:
        """The store of this home."""
        return Store(Path(self.settings().store_dir).expanduser())
