"""What in Hermes' config keeps a running engine from its work: compaction off, no tools, windows too small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..effective import inside
from ..settings import Resolved
from .findings import Finding, note, ok, problem
from .locate import Hermes

SMALLEST_WINDOW = 64_000
"""Tokens: Hermes starts no agent with less, and compacts with no auxiliary model that has less."""

TOOLSET = "context_engine"


def settings_in(hermes: Hermes, environment: Mapping[str, str]) -> Resolved:
    """The settings the engine would have there."""
    entry = hermes.at("plugins", "entries", "hermes_jev", "settings")
    return inside(entry if isinstance(entry, Mapping) else {}, environment)


def check(hermes: Hermes) -> list[Finding]:
    """What stands in the way of the engine's work in this home."""
    return [*_compaction(hermes), *_tools(hermes), *_windows(hermes)]


def _compaction(hermes: Hermes) -> Iterator[Finding]:
    if _is_off(hermes.at("compression", "enabled")):
        yield problem(
            "hermes",
            "compression_off",
            "compression.enabled is false: no context engine is ever asked; hermes config set compression.enabled true",
        )
    if _is_off(hermes.at("compression", "in_place")):
        yield note("hermes", "rotation", "compression.in_place is false: each pass goes on under a new session id")


def _is_off(value: Any) -> bool:
    return value is False or (isinstance(value, str) and value.strip().lower() in ("false", "no", "off", "0"))


def _tools(hermes: Hermes) -> Iterator[Finding]:
    disabled = hermes.at("agent", "disabled_toolsets")
    if isinstance(disabled, list) and TOOLSET in disabled:
        text = f"agent.disabled_toolsets names {TOOLSET}: the agent has no expand; take it off that list"
        yield problem("hermes", "tools_hidden", text)
        return
    platforms = hermes.at("platform_toolsets")
    platforms = platforms if isinstance(platforms, Mapping) else {}
    empty = sorted(str(name) for name, listed in platforms.items() if listed == [])
    if empty:
        text = f"platform_toolsets is empty for {', '.join(empty)}: the agent has no expand there; add {TOOLSET}"
        yield problem("hermes", "tools_hidden", text)
    else:
        yield ok("hermes", "tools", f"no setting hides expand; a session with -t has it only with {TOOLSET}")


def _windows(hermes: Hermes) -> Iterator[Finding]:
    window = _tokens(hermes.at("model", "context_length"))
    if 0 < window < SMALLEST_WINDOW:
        text = f"model.context_length is {window:,}; Hermes starts no agent below {SMALLEST_WINDOW:,} tokens"
        yield problem("hermes", "window_small", text)
    auxiliary = _tokens(hermes.at("auxiliary", "compression", "context_length"))
    if 0 < auxiliary < SMALLEST_WINDOW:
        yield problem(
            "hermes",
            "auxiliary_small",
            f"auxiliary.compression.context_length is {auxiliary:,}; below {SMALLEST_WINDOW:,} the first compaction "
            "ends the turn, whatever the engine",
        )
    elif not auxiliary:
        yield note(
            "hermes",
            "auxiliary_probed",
            "at its first compaction Hermes probes the window of its auxiliary model and ends the turn when it finds "
            f"less than {SMALLEST_WINDOW:,} tokens; auxiliary.compression.context_length says it instead",
        )


def _tokens(value: Any) -> int:
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
