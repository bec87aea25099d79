"""`jev search`: find in stores what was cut, in one session or in all."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from ..errors import InputError, StoreError
from ..search import search
from ..session_search import hits_of
from ..store import Store
from ..stores import stores_to_read
from .common import NOTHING, OK, Commands, add_command, out, say, settings_from, store_argument

_CATCH_UP_S = 60.0
_CHARS_PER_HIT = 1_000


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "search",
        "Find text in tool output that was cut.",
        'jev search "connection refused" --limit 3',
        _run_search,
    )
    command.add_argument("query", metavar="QUERY", help="words, names, or literal text")
    command.add_argument("--session", metavar="ID", help="only that session and those it continues")
    command.add_argument("--limit", type=_limit, default=6, metavar="N", help="hits at most (default 6)")
    command.add_argument("--json", action="store_true", help="the hits as one JSON object")
    store_argument(command)


def _limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"a number from 1 to 100 is needed, not {text[:40]!r}")
    return int(text)


def _run_search(arguments: Any) -> int:
    if not arguments.query.strip():
        raise InputError("the query is empty; name a word of what you look for")
    found: list[dict[str, Any]] = []
    problems: list[StoreError] = []
    for store in stores_to_read(arguments.store, settings_from()):
        if store.path.exists():
            try:
                found += _hits(store, arguments)
            except StoreError as error:
                problems.append(error)
    for problem in problems:
        say(f"jev: {problem}")
    found = list({hit["id"]: hit for hit in reversed(found)}.values())[::-1][: arguments.limit]
    if arguments.json:
        out(json.dumps({"results": found, "count": len(found)}, ensure_ascii=False, indent=1) + "\n")
    elif found:
        out("\n".join(_shown(hit) for hit in found))
    else:
        say("nothing that was cut holds this")
    return OK if found and not problems else NOTHING


def _hits(store: Store, arguments: Any) -> list[dict[str, Any]]:
    lineage = None if arguments.session is None else store.ancestry(arguments.session)
    answer = search(store, arguments.query, lineage, arguments.limit, _CATCH_UP_S)
    if answer.unread:
        say(f"{answer.unread} outputs are not searched yet; run it again, or: jev store rebuild")
    return hits_of(answer, _CHARS_PER_HIT * arguments.limit, time.time())


def _shown(hit: dict[str, Any]) -> str:
    lines = f", lines {hit['lines']}" if "lines" in hit else ""
    head = f"{hit['id']}  {hit['tool']}  {hit['call']}  ({hit['age']}, {hit['chars']:,} characters{lines})"
    names = f"\n    names: {hit['names']}" if "names" in hit else ""
    return f"{head}\n" + "\n".join(f"    {line}" for line in hit["snippet"].split("\n")) + f"{names}\n"
