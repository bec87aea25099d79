"""What is wrong, said once in the log and kept for the status. Plain data."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

logger = logging.getLogger(__name__)


@dataclass
class Notes:
    """Sentences in the order in which they came up."""

    problems: list[str] = field(default_factory=list)
    said: set[str] = field(default_factory=set)

    def say(self, text: str, level: int = logging.WARNING) -> None:
        """Log it once and keep it."""
        self.log_once(text, level)
        if text not in self.problems:
            self.problems.append(text)

    def log_once(self, text: str, level: int = logging.WARNING) -> None:
        """Log it once."""
        if text not in self.said:
            self.said.add(text)
            logger.log(level, "hermes_jev: %s", text)
