"""`jev doctor`: what is set up, what stands behind it, and what is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ..doctor import Examined, examine
from ..settings import described
from .common import NOTHING, OK, Commands, add_command, out, store_argument

_MARKS = {"ok": "ok", "note": "note", "problem": "PROBLEM"}


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "doctor",
        "Look at settings, judge, store and Hermes, and say what is wrong. Exits with 0 when healthy, else with 1.",
        "jev doctor --probe",
        _run,
    )
    command.add_argument("--probe", action="store_true", help="ask the judge one question and print the exchange")
    command.add_argument("--json", action="store_true", help="for machines: {healthy, findings, settings, exchanges}")
    store_argument(command)


def _run(arguments: Any) -> int:
    found = examine(os.environ, arguments.store, arguments.probe)
    out(_json(found) if arguments.json else "\n".join(_lines(found)) + "\n")
    return OK if found.healthy else NOTHING


def _settings(found: Examined) -> dict[str, dict[str, Any]]:
    values = json.loads(found.settings.settings.model_dump_json())
    origins = found.settings.origins
    return {
        item.name: {"value": values[item.name], "origin": origins.get(item.name, "default")} for item in described()
    }


def _json(found: Examined) -> str:
    whole = {
        "healthy": found.healthy,
        "findings": [finding._asdict() for finding in found.findings],
        "settings": _settings(found),
        "exchanges": [asdict(exchange) for exchange in found.exchanges],
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _lines(found: Examined) -> Iterator[str]:
    yield from _told(found)
    for exchange in found.exchanges:
        yield f"\nPOST {exchange.url}\n{exchange.sent}"
        yield f"{exchange.status or 'no answer'}\n{exchange.received}".rstrip()
    wrong = sum(finding.level == "problem" for finding in found.findings)
    yield "\nhealthy" if found.healthy else f"\nnot healthy: {wrong} problem{'s' if wrong > 1 else ''}"


def _told(found: Examined) -> Iterator[str]:
    area = ""
    for finding in found.findings:
        if finding.area != area:
            yield f"{finding.area}"
        yield f"  {_MARKS[finding.level]:<8} {finding.text}"
        if finding.code == "in_force":
            yield from (
                f"           {name} = {json.dumps(row['value'], ensure_ascii=False)} ({row['origin']})"
                for name, row in _settings(found).items()
            )
        area = finding.area
