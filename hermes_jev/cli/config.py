"""`jev config`: the settings in force, and where each came from."""

from __future__ import annotations

import json
import os
from typing import Any

from ..effective import user_file
from ..settings import described
from .common import OK, Commands, add_command, out, resolved_from, say, set_argument


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "config",
        "Print every setting, its value, and where the value came from.",
        "jev config --set judge=lexical",
        _run,
    )
    set_argument(command)
    command.add_argument("--json", action="store_true", help="for machines: {name: {value, origin, default}}")


def _run(arguments: Any) -> int:
    found = resolved_from(arguments.set)
    values = json.loads(found.settings.model_dump_json())
    if arguments.json:
        rows = {
            item.name: {
                "value": values[item.name],
                "origin": found.origins.get(item.name, "default"),
                "default": json.loads(item.default),
            }
            for item in described()
        }
        out(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
        return OK
    width = max(len(name) for name in values)
    for name, value in values.items():
        origin = found.origins.get(name, "default")
        out(
            f"{name:<{width}}  {json.dumps(value, ensure_ascii=False)}"
            + (f"  ({origin})" if origin != "default" else "")
            + "\n"
        )
    file = user_file(os.environ)
    say(f"the user's file: {file}" + ("" if file.is_file() else " (there is none)"))
    return OK
