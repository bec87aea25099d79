"""Verdicts that still stand, so that nothing is asked twice.

A verdict is kept by content, wording, goal, topic, judge and what the judge was allowed to see; and once more without
the goal. After a new request the second row answers where it is settled: far enough from its thresholds that the noise
of a judge would not turn it. What is near a threshold, or new, is asked again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .errors import StoreError
from .judge import Judge
from .questions import VERSION
from .settings import Settings
from .store import Store, StoredVerdict

PUT_OFF = "put off"
"""Stage of a row that says: there were more candidates than one pass asks about. It holds until the session goes on,
so that a second pass over the same conversation asks nothing."""

ASK_AGAIN_CALLS = 20
"""A stored verdict is asked again once this many further calls are completed: needs change as work goes on."""

SETTLED_BAND = 0.2
"""An answer at least this far from its threshold is settled: repeated answers of the service differ by less."""


@dataclass(frozen=True)
class VerdictCache:
    """The stored verdicts of one judge about one goal. `direction` is what is asked for beside the goal (a topic, a
    task): another one is another question for every call."""

    store: Store
    settings: Settings
    judge: Judge
    goal: str = field(repr=False)
    direction: str = field(repr=False)

    @property
    def goal_hash(self) -> str:
        """Of goal and direction together."""
        return _hash(f"{self.goal}\0{self.direction}")[:16]

    def key(self, content: str) -> str:
        """The key of a verdict about this goal."""
        return self._key(content, self.goal_hash)

    def _any_goal(self, content: str) -> str:
        return self._key(content, f"any goal\0{_hash(self.direction)}")

    def _key(self, content: str, about: str) -> str:
        seen = "" if self.judge.local else self.settings.egress
        return _hash(json.dumps([content, VERSION, about, self.judge.name, self.judge.version, seen]))

    def standing(self, contents: Iterable[str], calls: int, problems: list[str]) -> dict[str, StoredVerdict]:
        """The rows that still stand once `calls` calls are completed, by content. A store that cannot be read holds
        none, and `problems` says so."""
        wanted = list(contents)
        keys = {content: (self.key(content), self._any_goal(content)) for content in wanted}
        try:
            rows = self.store.verdicts([key for both in keys.values() for key in both])
        except StoreError as error:
            problems.append(f"verdicts not read: {error}")
            return {}
        found: dict[str, StoredVerdict] = {}
        for content, (exact, before) in keys.items():
            if exact in rows and _holds(rows[exact], calls):
                found[content] = rows[exact]
            elif before in rows and _holds(rows[before], calls) and self._settled(rows[before]):
                found[content] = rows[before]
        return found

    def _settled(self, row: StoredVerdict) -> bool:
        """Whether an answer under another goal decides. A judge inside this process is asked anew: it costs nothing."""
        if self.judge.local or row.output is None:
            return False
        output = row.output - self.settings.output_threshold
        if output >= SETTLED_BAND:
            return True
        return output <= -SETTLED_BAND and (
            row.call is None or abs(row.call - self.settings.call_threshold) >= SETTLED_BAND
        )

    def save(self, new: Mapping[str, StoredVerdict], put_off: Sequence[str], calls: int, problems: list[str]) -> None:
        """Keep what was answered and what was put off, by content."""
        rows = {self.key(content): row for content, row in new.items()}
        rows |= {self._any_goal(content): row for content, row in new.items() if not self.judge.local}
        rows |= {self.key(content): StoredVerdict(None, None, PUT_OFF, calls, self.judge.name) for content in put_off}
        try:
            self.store.save_verdicts(rows)
        except StoreError as error:
            problems.append(f"verdicts not saved: {error}")


def _holds(row: StoredVerdict, calls: int) -> bool:
    """Whether a stored row still stands when this many calls are completed. Fewer than there were is no progress:
    turns left the window, or the person went back."""
    moved_on = calls - row.calls_seen
    return moved_on <= 0 if row.stage == PUT_OFF else moved_on < ASK_AGAIN_CALLS


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
