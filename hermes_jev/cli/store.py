"""`jev store`: what a store holds, whether it is whole, and how things leave it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import ConfigError, StoreError
from ..store import Stats, Store, Stored
from ..store.index import Index
from ..stores import known_folders, stores_to_read
from ..upkeep import DAY_S, in_use, limits
from .common import NOTHING, OK, Commands, add_command, complain, out, progress_bar, say, settings_from, store_argument


def add(commands: Commands) -> None:
    """Describe the command and what it can do."""
    parent = commands.add_parser(
        "store", help="Look after the store of originals.", description=__doc__, epilog="example: jev store verify"
    )
    actions = parent.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, summary, example, run in (
        ("stats", "Count what is stored.", "jev store stats", _run_stats),
        ("verify", "Check every hash; exit code 1 when anything is not as it was stored.", "jev store verify", _verify),
        ("rebuild", "Make the search index anew from the stored originals.", "jev store rebuild", _run_rebuild),
        ("gc", "Remove what the age and size limits no longer allow.", "jev store gc", _run_gc),
        ("export", "Write the originals as JSON lines.", "jev store export > originals.jsonl", _run_export),
        ("purge", "Remove for good what one session alone has.", "jev store purge --session ID", _run_purge),
    ):
        action = add_command(actions, name, summary, example, run)
        store_argument(action)
        if name in ("export", "purge"):
            action.add_argument(
                "--session", metavar="ID", required=name == "purge", help="the session as Hermes names it"
            )
        if name == "stats":
            action.add_argument("--json", action="store_true", help="one JSON object a store, a line each")
        if name == "gc":
            action.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting")


def each_store(arguments: Any, do: Callable[[Store], int]) -> int:
    """Run for the named store, or for all of a person's; the worst exit code. A store that fails stops no other."""
    named = stores_to_read(arguments.store, settings_from())
    stores = [store for store in named if store.path.exists() or store.aside()]
    if not stores:
        say(f"nothing is stored in {', '.join(str(store.folder) for store in named)}")
    worst = OK
    for store in stores:
        try:
            worst = max(worst, do(store))
        except StoreError as error:
            worst = max(worst, complain(f"{store.folder}: {error}", NOTHING))
    return worst


def _run_stats(arguments: Any) -> int:
    settings = settings_from()
    allowed = limits(settings)

    def show(store: Store) -> int:
        found = store.stats()
        if arguments.json:
            aside = [path.name for path in store.aside()]
            out(json.dumps({"folder": str(store.folder), **found._asdict(), "set_aside": aside}) + "\n")
        else:
            out(_described(store, found, allowed.max_age_s / DAY_S, allowed.max_bytes))
        return OK

    return each_store(arguments, show)


def _described(store: Store, found: Stats, days: float, most: int) -> str:
    span = f", stored {_day(found.oldest)} to {_day(found.newest)}" if found.originals else ""
    lines = [
        str(store.folder),
        f"  originals  {found.originals:,} of {found.sessions:,} sessions, {found.chars:,} characters{span}",
        f"  file       {_size(found.bytes)}, {_size(found.used_bytes)} in use; log {_size(found.log_bytes)}",
        f"  records    {found.receipts:,} receipts, {found.verdicts:,} verdicts",
        f"  limits     {days:g} days, {_size(most)}; last swept {_day(found.swept)}",
    ]
    lines += [f"  set aside  {path.name}, damaged, {_size(path.stat().st_size)}" for path in store.aside()]
    return "\n".join(lines) + "\n"


def _day(moment: float | None) -> str:
    return "never" if moment is None else datetime.fromtimestamp(moment, UTC).date().isoformat()


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count:,} bytes"


def _verify(arguments: Any) -> int:
    def verify(store: Store) -> int:
        problems = store.check()
        for problem in problems:
            out(f"{store.folder}: {problem}\n")
        for aside in store.aside():
            say(f"{store.folder}: {aside.name} was damaged and set aside")
        if not problems:
            out(f"{store.folder}: sound, {store.stats().originals:,} originals\n")
        return NOTHING if problems else OK

    return each_store(arguments, verify)


def _run_gc(arguments: Any) -> int:
    settings = settings_from(arguments.set)

    def collect(store: Store) -> int:
        homes = dict.fromkeys([store.folder.parent, *(folder.parent for folder in known_folders(os.environ))])
        live = in_use(store, homes)
        if live is None:
            raise StoreError("nothing was removed: a state.db of Hermes cannot be read, so what it needs is not known")
        swept = store.sweep(limits(settings), lambda: live)
        out(
            f"{store.folder}: removed {len(swept.pointers):,} originals, {swept.receipts:,} receipts and"
            f" {swept.verdicts:,} verdicts; {_size(swept.bytes)} in use\n"
        )
        if swept.bytes > settings.store_max_bytes:
            say(f"{store.folder}: over {_size(settings.store_max_bytes)}, but what is left is in use or needed")
        return OK

    return each_store(arguments, collect)


def _run_export(arguments: Any) -> int:
    def export(store: Store) -> int:
        damaged = 0
        for one in store.each(arguments.session):
            if isinstance(one.original, StoreError):
                damaged += 1
                say(f"{store.folder}: {one.original}")
            else:
                out(_line(one))
        return NOTHING if damaged else OK

    return each_store(arguments, export)


def _line(one: Stored) -> str:
    """Characters as they are, since escapes would join two lone surrogates that stand together."""
    assert not isinstance(one.original, StoreError)
    record = {"id": one.id, **one.original._asdict(), "created": one.created, "sessions": one.sessions}
    return json.dumps(record, ensure_ascii=False) + "\n"


def _run_purge(arguments: Any) -> int:
    session: str = arguments.session
    if not session:
        raise ConfigError("--session: a session id is needed")
    known: list[Path] = []

    def purge(store: Store) -> int:
        relatives = store.ancestry(session)[1:]
        purged = store.purge(session)
        if not any(purged[1:]) and not purged.pointers:
            return OK
        known.append(store.folder)
        out(
            f"{store.folder}: removed {len(purged.pointers):,} originals and {purged.receipts:,} receipts of"
            f" {session}; {purged.shared:,} that other sessions have too stay\n"
        )
        if relatives:
            say(f"{session} continued {_names(relatives)}, which keep what they have")
        return OK

    code = each_store(arguments, purge)
    return code if known or code else complain(f"nothing is stored for session {session}", NOTHING)


def _names(sessions: Sequence[str]) -> str:
    return ", ".join(sessions[:5]) + (f" and {len(sessions) - 5} more" if len(sessions) > 5 else "")


def _run_rebuild(arguments: Any) -> int:
    def rebuild(store: Store) -> int:
        with progress_bar("reading") as progress:
            count = Index(store).rebuild(progress)
        say(f"{store.folder}: {count} outputs can be searched")
        return OK

    return each_store(arguments, rebuild)
