"""What is never judged, and why: pure rules over a parsed transcript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from .notice import cut_in
from .settings import Settings
from .transcript import Exchange, Transcript
from .wrapping import has_project_rules, is_file_preview

Pin = Literal[
    "open",
    "ambiguous",
    "small",
    "file_preview",
    "unshrinkable",
    "protected",
    "last_calls",
    "newest_turn",
    "latest",
    "expand",
    "kept",
]

BY_SIZE: frozenset[Pin] = frozenset(("small", "file_preview", "unshrinkable"))
"""Pins of results that have nothing to give, whatever they hold."""

UNSEEN: Pin = "newest_turn"
"""Results of the newest assistant turn: the model has not read them yet."""

KEPT: Pin = "kept"
"""A person asked for it (`/jev keep`)."""

EXPAND_TOOL = "expand"
EXPAND_CALLS = 10
"""An expand reply stays while it is among this many last completed calls: the agent just asked for it."""


def pins(transcript: Transcript, settings: Settings) -> Mapping[int, Pin]:
    """The pinned exchanges: ordinal → the first rule that pins it."""
    completed = transcript.completed
    last = {exchange.ordinal for exchange in last_of(completed, settings.pin_last_calls)}
    last_expand = {exchange.ordinal for exchange in last_of(completed, EXPAND_CALLS) if exchange.tool == EXPAND_TOOL}
    latest = _latest(completed, settings.latest_tools)
    found: dict[int, Pin] = {}
    for exchange in transcript.exchanges:
        ordinal = exchange.ordinal
        if exchange.state != "completed":
            found[ordinal] = exchange.state
        elif exchange.size <= settings.pin_max_chars or _is_cut(exchange, settings):
            found[ordinal] = "small"
        elif is_file_preview(exchange.text):
            found[ordinal] = "file_preview"
        elif exchange.call_at == transcript.newest_assistant:
            found[ordinal] = UNSEEN
        elif exchange.tool in settings.protected_tools or has_project_rules(exchange.text):
            found[ordinal] = "protected"
        elif ordinal in last:
            found[ordinal] = "last_calls"
        elif ordinal in latest:
            found[ordinal] = "latest"
        elif ordinal in last_expand:
            found[ordinal] = "expand"
    return found


def _is_cut(exchange: Exchange, settings: Settings) -> bool:
    """Whether this is a result that was cut before and is longer only by what the user said since."""
    if not exchange.text.rstrip().endswith("]"):
        return False
    cut = cut_in(exchange.text)
    return cut is not None and len(cut.text) <= settings.pin_max_chars


def last_of(completed: Sequence[Exchange], count: int) -> Sequence[Exchange]:
    """The newest `count` of them, oldest first."""
    return completed[-count:] if count else ()


def _latest(completed: tuple[Exchange, ...], tools: tuple[str, ...]) -> set[int]:
    newest = {exchange.tool: exchange.ordinal for exchange in completed if exchange.tool in tools}
    return set(newest.values())
