"""The store of originals: what was cut, byte for byte, and how to find it again.

One SQLite file holds the originals, who may open them, which text stands for which, the lineage of sessions, the
judge's verdicts and the receipts. An original is written, committed and read back before its text may be cut.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from ..errors import NotStored, StoreError
from . import ledger, lineage
from .aside import files_aside, remove, set_aside
from .care import InUse, Stats, Stored, Sweep, each, last_sweep, purge_session, stats
from .database import PATIENCE_S, Database, FileId, file_id
from .faults import Damaged, Unavailable, faults
from .ledger import StoredReceipt, StoredVerdict
from .listing import Fingerprint, Listed, fingerprint, listed, load_or_error
from .originals import (
    NOT_STORED,
    Call,
    Keep,
    Kept,
    Original,
    Prepared,
    confirm,
    disagreements,
    load,
    load_behind,
    load_call,
    may_open,
    prepare,
    put,
)
from .retention import Limits, Purged, Swept
from .salvage import is_salvaged, salvage
from .values import is_pointer_id

logger = logging.getLogger(__name__)

T = TypeVar("T")

FILE_NAME = "truth.sqlite3"

DISPOSABLE = ("search.sqlite3", "search.sqlite3.damaged")
"""Files beside it that hold copies of what is stored, and are made anew from it."""

SALVAGE_S = 5.0
"""Seconds that somebody's turn waits for what a damaged file still holds; the next sweep does the rest."""

SEEN_AGAIN_S = 3_600.0
"""A session that is seen again within these seconds is not written down again."""


class Store:
    """The store in one folder. Making one does no work; folder and file come with the first write.

    It holds no open file and no lock, so it can be copied, pickled and used from any thread or process. Every method
    raises StoreError when the file cannot be used; a folder where nothing was stored yet is simply empty.
    """

    def __init__(
        self,
        folder: Path,
        now: Callable[[], float] = time.time,
        patience_s: float = PATIENCE_S,
        say: Callable[[str], None] = logger.warning,
    ) -> None:
        self.folder = Path(folder)
        self.now = now
        self.patience_s = patience_s
        self.say = say

    @property
    def path(self) -> Path:
        """The file of this store, which may not exist yet."""
        return self.folder / FILE_NAME

    def _database(self) -> Database:
        return Database(self.path, patience_s=self.patience_s, damaged=self._damaged)

    def _as_it_is(self) -> Database:
        """The file for those who only look or tend: damage is for them to tell."""
        return Database(self.path, patience_s=self.patience_s)

    def _damaged(self, found: FileId | None) -> bool:
        """Set a damaged file aside and begin a new one with what can still be read; whether to try again."""
        try:
            aside = set_aside(self.path, found, self.patience_s)
        except StoreError as error:
            self.say(f"{FILE_NAME} is damaged and cannot be set aside: {error}")
            return False
        if aside is None:
            return file_id(self.path) != found
        try:
            done = salvage(aside, self._as_it_is(), SALVAGE_S)
            saved = f"{done.originals:,} originals were saved from it{'' if done.finished else ' so far'}"
        except StoreError as error:
            saved = f"nothing could be saved from it yet ({error})"
        self.say(f"{FILE_NAME} was damaged: it is set aside as {aside.name} and a new one was begun; {saved}")
        return True

    def _twice(self, read: Callable[[], T]) -> T:
        """Read, and once more if the file was found damaged: by then what was saved of it stands in another one.

        Where nothing of what was asked for was saved, it is the damage that is told, not that nothing is stored.
        """
        try:
            return read()
        except Damaged as damage:
            try:
                saved = read()
            except NotStored:
                raise damage from None
            if not saved:
                raise
            return saved

    # Originals

    def keep(self, session: str | None, items: Sequence[Keep]) -> list[Kept | StoreError]:
        """Store originals and read them back; in the place of each item, what may stand for it or why nothing may.

        All go in one transaction. If that fails they go one by one, so that what fits is kept. `session` may open
        them from then on; None grants nothing. Storing the same exchange again adds no more than the grant.
        """
        prepared = [prepare(item) for item in items]
        if not any(isinstance(one, Prepared) for one in prepared):
            return [one for one in prepared if isinstance(one, StoreError)]
        try:
            written = self._write(session, prepared)
        except StoreError:
            written = self._write_singly(session, prepared)
        try:
            return self._confirm(session, items, written)
        except StoreError as error:
            return [error if isinstance(one, Kept) else one for one in written]

    def _write(self, session: str | None, prepared: Sequence[Prepared | StoreError]) -> list[Kept | StoreError]:
        created = self.now()
        written: list[Kept | StoreError] = []
        with self._database().writing() as connection:
            if session is not None:
                lineage.see(connection, session, created)
            for one in prepared:
                try:
                    written.append(one if isinstance(one, StoreError) else put(connection, one, session, created))
                except StoreError as error:
                    written.append(error)
        return written

    def _write_singly(self, session: str | None, prepared: Sequence[Prepared | StoreError]) -> list[Kept | StoreError]:
        written: list[Kept | StoreError] = []
        unavailable: Unavailable | None = None
        for one in prepared:
            if unavailable is not None and isinstance(one, Prepared):
                written.append(unavailable)  # each further try could wait for the lock once more
                continue
            try:
                written.extend(self._write(session, [one]) if isinstance(one, Prepared) else [one])
            except StoreError as error:
                written.append(error)
                unavailable = error if isinstance(error, Unavailable) else None
        return written

    def _confirm(
        self, session: str | None, items: Sequence[Keep], written: Sequence[Kept | StoreError]
    ) -> list[Kept | StoreError]:
        checked = list(written)
        with self._database().reading() as connection:
            for place, (item, kept) in enumerate(zip(items, written, strict=True)):
                if isinstance(kept, StoreError):
                    continue
                try:
                    if connection is None:
                        raise StoreError(f"{FILE_NAME}: it is gone")
                    with faults(FILE_NAME):
                        confirm(connection, item, kept, session)
                except StoreError as error:
                    checked[place] = error
        return checked

    def get(self, pointer: str, sessions: Collection[str] | None) -> Original:
        """Give back the original behind a pointer, checked against its hash.

        With `sessions` None whoever asks may open it; else one of them must have been granted it. Raises NotStored,
        with one message for malformed, unknown and foreign, and StoreError for a damaged original.
        """
        if not is_pointer_id(pointer):
            raise NotStored(NOT_STORED)

        def read() -> Original:
            with self._database().reading() as connection:
                if connection is None or not (sessions is None or may_open(connection, pointer, sessions)):
                    raise NotStored(NOT_STORED)
                return load(connection, pointer)

        try:
            return self._twice(read)
        except NotStored:
            # Whoever saved what a damaged file held may have run out of time, or been killed.
            if self.salvage(SALVAGE_S) == 0:
                raise
            return read()

    def describe(self, pointer: str, sessions: Collection[str] | None) -> Call | None:
        """The call to run again when `get` failed, or None when it is not known either.

        The arguments are checked against their hash; the tool's name, without the result, cannot be.
        """
        if not is_pointer_id(pointer):
            return None
        try:
            with self._database().reading() as connection:
                if connection is None or not (sessions is None or may_open(connection, pointer, sessions)):
                    return None
                return load_call(connection, pointer)
        except StoreError:
            return None

    def original_of(self, text: Any) -> Original | None:
        """The original in whose place exactly this text stands, or None. Raises StoreError when it is damaged."""
        return self.originals_of([text]).get(0)

    def originals_of(self, texts: Iterable[Any]) -> dict[int, Original]:
        """As `original_of` for many texts at once: originals by the index of their text."""
        asked = list(texts)

        def read() -> dict[int, Original]:
            with self._database().reading() as connection:
                if connection is None:
                    return {}
                found = ((index, load_behind(connection, text)) for index, text in enumerate(asked))
                return {index: original for index, original in found if original is not None}

        return self._twice(read)

    # What there is

    def listed(self, sessions: Collection[str] | None) -> list[Listed]:
        """Every original and who was granted it, oldest first: of some sessions, or of all when `sessions` is None."""
        with self._database().reading() as connection:
            return [] if connection is None else listed(connection, sessions)

    def fingerprint(self, sessions: Collection[str]) -> Fingerprint:
        """What tells whether a list of these sessions' originals is still complete."""
        with self._database().reading() as connection:
            return Fingerprint(0, 0) if connection is None else fingerprint(connection, sessions, "grants")

    def originals(self, pointers: Sequence[str], sessions: Collection[str] | None) -> list[Original | StoreError]:
        """As `get` for many: in the place of one that is gone, damaged or not for these sessions the error."""
        with self._database().reading() as connection:
            if connection is None:
                return [NotStored(NOT_STORED) for _ in pointers]
            return [load_or_error(connection, pointer, sessions) for pointer in pointers]

    # Lineage

    def link(self, child: str, parent: str, reason: str) -> None:
        """Record that session `child` continues session `parent`; again is no error.

        Raises StoreError when `child` is `parent` or comes before it.
        """
        with self._database().writing() as connection:
            if not lineage.link(connection, child, parent, reason, self.now()):
                raise StoreError("a session cannot continue itself")
            lineage.see(connection, child, self.now())

    def ancestry(self, *sessions: str) -> list[str]:
        """The sessions and those they continue, nearest first, at most MAX_ANCESTORS of them."""

        def read() -> list[str]:
            with self._database().reading() as connection:
                return list(dict.fromkeys(sessions)) if connection is None else lineage.ancestry(connection, *sessions)

        return self._twice(read)

    def saw(self, session: str, parents: Sequence[str] = ()) -> None:
        """Note that a session is in use, so that its originals stay, and which sessions it continues, nearest first.

        Writes only for sessions that the store knows something of, and not again within the hour.
        """
        now = self.now()
        with self._database().reading() as connection:
            if connection is None:
                return
            known = {name for name in (session, *parents) if lineage.seen(connection, name) is not None}
            line = [] if not parents else lineage.ancestry(connection, session)
            last = lineage.seen(connection, session)
        links = [pair for pair in zip((session, *parents), parents, strict=False) if pair[1] not in line]
        if not known or (not links and last is not None and abs(now - last) < SEEN_AGAIN_S):
            return
        with self._database().writing() as connection:
            lineage.see(connection, session, now)
            for child, parent in links:
                lineage.link(connection, child, parent, "host", now)

    # Verdicts and receipts

    def verdicts(self, keys: Iterable[str]) -> dict[str, StoredVerdict]:
        """The verdicts that are stored under these keys."""
        with self._database().reading() as connection:
            return {} if connection is None else ledger.verdicts(connection, keys)

    def save_verdicts(self, verdicts: Mapping[str, StoredVerdict]) -> None:
        """Store verdicts, in place of older ones under the same keys."""
        if not verdicts:
            return
        created = self.now()
        with self._database().writing() as connection:
            ledger.save_verdicts(connection, verdicts, created)

    # Receipts

    def add_receipt(self, session: str | None, body: str) -> int:
        """Append a receipt (JSON text) and return its number, which grows."""
        with self._database().writing() as connection:
            return ledger.add_receipt(connection, session, body, self.now())

    def receipts(self, session: str | None = None, limit: int = 1_000) -> list[StoredReceipt]:
        """The newest receipts, newest first: of one session, or of all when `session` is None."""
        with self._database().reading() as connection:
            return [] if connection is None else ledger.receipts(connection, session, limit)

    # Care

    def sweep(
        self,
        limits: Limits,
        in_use: InUse | None = None,
        sessions: Sequence[str] = (),
        limit_s: float | None = None,
    ) -> Swept:
        """Remove what is older or more than the limits allow, least recently used first, for about `limit_s` seconds.

        Never what a session may open that was seen within the age limit or is one of `sessions`, nor the pointers that
        `in_use` gives. Raises StoreError.
        """
        until = math.inf if limit_s is None else time.monotonic() + limit_s
        self.salvage(limit_s)
        swept = Sweep(self._database(), limits, self.now(), tuple(sessions), in_use, until).run()
        for aside in files_aside(self.path):
            if self.now() - aside.stat().st_mtime > limits.max_age_s and is_salvaged(self._as_it_is(), aside):
                remove(aside)
        return swept

    def swept(self) -> float | None:
        """When a sweep was last finished, in seconds since 1970; None for never, or when nothing is stored."""
        return last_sweep(self._database())

    def purge(self, session: str) -> Purged:
        """Remove for good what this session alone has; what another one has too stays.

        What it removed is overwritten. Damaged files that were set aside are searched for what can be saved, and
        deleted; so is the full text, which is made anew from what is left. Raises StoreError, also when only the
        overwriting failed.
        """
        with suppress(Damaged), self._database().reading():
            pass  # a damaged file is set aside first
        if not self.path.exists() and not self.aside():
            return Purged()
        self.salvage()
        for path in (*self.aside(), *(self.folder / name for name in DISPOSABLE)):
            remove(path)
        return purge_session(self._as_it_is(), session)

    def salvage(self, limit_s: float | None = None) -> int:
        """Carry over what damaged files that were set aside still hold and the store has not; how many originals."""
        waiting = [aside for aside in self.aside() if not is_salvaged(self._as_it_is(), aside)]
        return sum(salvage(aside, self._as_it_is(), limit_s).originals for aside in waiting)

    def aside(self) -> list[Path]:
        """Damaged files that were set aside, oldest first."""
        return files_aside(self.path)

    def stats(self) -> Stats:
        """Count what is there. Raises StoreError for a damaged file, and leaves it where it is."""
        return stats(self._as_it_is())

    def each(self, session: str | None = None) -> Iterator[Stored]:
        """Every original, or those of one session, in the order they were stored."""
        return each(self._as_it_is(), session)

    def check(self) -> list[str]:
        """Hash everything again and return what disagrees, one line each; empty for a sound or empty store."""
        found: list[str] = []
        try:
            with self._as_it_is().reading() as connection:
                if connection is not None:
                    for line in disagreements(connection, FILE_NAME):
                        found.append(line)  # one by one, so that they outlive a fault further on
        except StoreError as error:
            found.append(str(error))
        return found
