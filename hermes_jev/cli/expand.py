"""`jev expand`: a person at the shell may open every pointer of a store."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ..errors import NotStored, StoreError
from ..stores import stores_to_read
from .common import OK, Commands, add_command, out, settings_from, store_argument


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(commands, "expand", "Print one original, exactly.", "jev expand r-abcdefghij", _run_expand)
    command.add_argument("id", help='the pointer that a notice names, like r-abcdefghij or expand(id="r-abcdefghij")')
    command.add_argument(
        "--part", choices=("result", "arguments"), default="result", help="what the call returned or was given"
    )
    store_argument(command)


def _run_expand(arguments: Any) -> int:
    found = re.search(r"\br-[a-z2-7]{10,}", arguments.id)
    pointer = found[0] if found else arguments.id
    stores = stores_to_read(arguments.store, settings_from())
    looked = ", ".join(str(store.folder) for store in stores)
    problems: list[StoreError] = [
        NotStored(f"nothing is stored under {pointer[:40]!r} (looked in {looked}); --store names another folder")
    ]
    for store in stores:
        try:
            original = store.get(pointer, None)
        except NotStored:
            continue
        except StoreError as error:
            problems.append(error)
            continue
        value = original.result if arguments.part == "result" else original.arguments
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        out(text)
        return OK
    raise _worst(problems)


def _worst(problems: Sequence[StoreError]) -> StoreError:
    """What to tell when no store could help: a store that is damaged says more than one that holds nothing."""
    damaged = [problem for problem in problems if not isinstance(problem, NotStored)]
    return (damaged or list(problems))[0]
