"""What a pass is given and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .egress import Gate
from .judge import Judge
from .policy import Decision
from .receipts import Receipt
from .settings import Settings
from .store import Store


class Pruned(NamedTuple):
    """`messages` is the very list that was given when nothing changed; else a new list in which untouched messages are
    the same objects. `calls_until_worth` says after how many more calls a pass could gain enough, if ever."""

    messages: list[Any]
    decisions: tuple[Decision, ...]
    receipt: Receipt
    calls_until_worth: int | None = None


@dataclass(frozen=True)
class Job:
    """Everything a pass needs beside the messages.

    `window` and `used` are tokens. `session` is who may open the pointers later. `focus` is a topic to favour.
    `rolling` settles the results of the last few calls before the window fills.
    """

    settings: Settings
    judge: Judge
    store: Store
    gate: Gate = field(default_factory=Gate)
    session: str | None = None
    task: str | None = field(default=None, repr=False)
    focus: str = field(default="", repr=False)
    window: int | None = None
    used: int | None = None
    forced: bool = False
    overflow: bool = False
    rolling: bool = False
