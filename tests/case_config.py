"""From a case's config to the engine's settings and to the fault that the runner must bring about."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from case_files import Case
from case_words import RunnerError

SETTINGS = {
    "threshold_percent": ("TRIGGER_PERCENT",),
    "pin_last_calls": ("PIN_LAST_CALLS",),
    "truncate_chars": ("EXCERPT_CHARS",),
    "keep_threshold": ("OUTPUT_THRESHOLD", "CALL_THRESHOLD"),
    "protected_tools": ("PROTECTED_TOOLS",),
    "store_max_bytes": ("STORE_MAX_BYTES",),
    "store_max_age_days": ("STORE_MAX_AGE_DAYS",),
    "reserve_output_tokens": ("RESERVE_OUTPUT_TOKENS",),
    "pin_max_chars": ("PIN_MAX_CHARS",),
    "fact_chars": ("FACT_CHARS",),
    "request_timeout_s": ("REQUEST_TIMEOUT_S",),
    "pass_deadline_s": ("PASS_DEADLINE_S",),
}
"""Key in a case's config → the engine's settings."""

_NO_SETTING = ("context_length", "env", "fault")


def settings(case: Case, fake: Mapping[str, Any]) -> dict[str, str]:
    """The environment variables that hold the case's config."""
    # Only a scorer that hangs makes the engine wait; elsewhere a short limit would measure the machine.
    request, whole = (1, 2) if fake["mode"] == "hang" else (10, 20)
    defaults = {"pin_max_chars": 700, "fact_chars": 0, "request_timeout_s": request, "pass_deadline_s": whole}
    return variables({**defaults, **output_room(case), **case.config})


def output_room(case: Case) -> dict[str, int]:
    """What `update_model` steps say of the largest answer: the host has no such argument, the engine has a setting."""
    rooms = [step.get("kwargs", {}).get("max_tokens") for step in case.steps if step["op"] == "update_model"]
    known = [room for room in rooms if room is not None]
    return {"reserve_output_tokens": known[-1]} if known else {}


def variables(config: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in config.items():
        if key in _NO_SETTING:
            continue
        if key not in SETTINGS:
            raise RunnerError(f"unknown config: {key}")
        text = value if isinstance(value, str) else json.dumps(value)
        found |= {f"HERMES_JEV_{name}": text for name in SETTINGS[key]}
    return found


class Fault(NamedTuple):
    """What the case's `fault` asks for; `first` is the number of the first original that finds no room."""

    kind: Literal["", "not writable", "full", "full partway"] = ""
    first: int = 0


def fault_of(case: Case) -> Fault:
    words = case.config.get("fault", "")
    if not words:
        return Fault()
    if "ENOSPC" in words and (found := re.search(r"from the (\d+)(?:st|nd|rd|th) stored original", words)):
        return Fault("full partway", int(found[1]))
    if words == "ENOSPC on every write":
        return Fault("full")
    if re.search(r"(?:store|home).*(?:not writable|read-only)", words):
        return Fault("not writable")
    raise RunnerError(f"unknown fault: {words}")
