"""The second file of the store: which stored outputs hold a term. Disposable, and rebuilt from the truth.

It follows the truth when it is asked, not when something is stored, so that it costs no pass. A file that is damaged is
set aside once and made anew; if that does not help, the fault is raised. A row belongs to one session, whose hash is a
term of it like any other: so a search of a lineage reads the postings of that lineage alone.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from ..errors import StoreError
from ..ranking import Candidate, Field
from ..readable import readable
from ..terms import term_counts
from .database import PATIENCE_S, Database, from_sql, to_sql
from .listing import Listed, fingerprint
from .migrations import Step
from .originals import Original
from .truth import Store

logger = logging.getLogger(__name__)

INDEX_NAME = "search.sqlite3"
SET_ASIDE = f"{INDEX_NAME}.damaged"

UNSEARCHED_TOOLS = ("expand", "session_search")
"""Replies of the engine's own tools repeat what is found where it came from."""

MAX_TERMS = 64
"""Terms of a query that are looked up, the first ones."""

_HOLDERS = 1_000
"""Postings of one term that are read, the newest; a term that more outputs hold tells little."""

_CANDIDATES = 48
_BATCH = 50
_BATCH_CHARS = 1_000_000
_SCOPE = "§"

Result = TypeVar("Result")


def s001_words(connection: sqlite3.Connection) -> None:
    """One row for each output of each session, and the postings of its terms."""
    connection.execute(
        "CREATE TABLE outputs (id INTEGER PRIMARY KEY AUTOINCREMENT, pointer TEXT NOT NULL, session TEXT,"
        " created REAL NOT NULL, length INTEGER NOT NULL, counts BLOB NOT NULL)"
    )
    connection.execute("CREATE INDEX outputs_by_session ON outputs (session, pointer, length)")
    # Terms hold letters, digits, these joints, and what is not ASCII: what is left separates them.
    connection.execute(
        "CREATE VIRTUAL TABLE words USING fts5(terms, content='', detail='none', columnsize=0,"
        """ tokenize="ascii tokenchars '_./:@+#\\-'")"""
    )


INDEX_STEPS: tuple[Step, ...] = (s001_words,)


class Found(NamedTuple):
    """What a query finds before anything is ranked; `unread` outputs are not in the index yet."""

    candidates: list[Candidate]
    field: Field
    unread: int


class Index:
    """The index beside a store. Making one does no work; like the store it holds no open file.

    Every method raises StoreError when the file can be neither used nor made anew.
    """

    def __init__(self, store: Store, folder: Path | None = None) -> None:
        self.store = store
        self.path = (folder or store.folder) / INDEX_NAME
        self._database = Database(self.path, INDEX_STEPS, min(store.patience_s, PATIENCE_S))

    def find(self, terms: Sequence[str], sessions: Collection[str] | None, budget_s: float) -> Found:
        """Outputs of these sessions (of all, when None) that hold some of the terms, after the index has followed the
        truth for at most `budget_s` seconds, newest first."""
        looked_up = list(dict.fromkeys(terms))[:MAX_TERMS]

        def find() -> Found:
            unread = self._follow(sessions, budget_s)
            with self._database.reading() as connection:
                if connection is None:
                    return Found([], Field(0, 0.0, {}), unread)
                return _found(connection, looked_up, sessions, unread)

        return self._mended(find)

    def follow(self, sessions: Collection[str] | None, budget_s: float) -> int:
        """Take in what the store has since, drop what it has no more; returns how many outputs were left for later."""
        return self._mended(lambda: self._follow(sessions, budget_s))

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Throw the file away and make it anew from the truth; returns how many outputs it holds.

        `progress` is told how many are done and how many there are.
        """
        everything = self.store.listed(None)
        for path in (self.path, *_side_files(self.path)):
            path.unlink(missing_ok=True)
        done = 0
        for some in _batches(everything):
            self._write(some)
            done += len(some)
            if progress is not None:
                progress(done, len(everything))
        return len(everything)

    # Following the truth

    def _follow(self, sessions: Collection[str] | None, budget_s: float) -> int:
        deadline = time.monotonic() + budget_s
        if sessions is not None and self._agrees(sessions):
            return 0
        with _of_the_truth():
            wanted = {(one.session, one.pointer): one for one in self.store.listed(sessions)}
        present = self._present(sessions)
        if gone := [number for key, number in present.items() if key not in wanted]:
            self._drop(gone)
        return self._take_in([one for key, one in reversed(wanted.items()) if key not in present], deadline)

    def _agrees(self, sessions: Collection[str]) -> bool:
        with _of_the_truth():
            stored = self.store.fingerprint(sessions)
        with self._database.reading() as connection:
            return connection is not None and stored == fingerprint(connection, sessions, "outputs")

    def _present(self, sessions: Collection[str] | None) -> dict[tuple[str | None, str], int]:
        with self._database.reading() as connection:
            if connection is None:
                return {}
            rows: list[tuple[int, object, str]] = []
            if sessions is None:
                rows = connection.execute("SELECT id, session, pointer FROM outputs").fetchall()
            for session in dict.fromkeys(sessions or ()):
                rows += connection.execute(
                    "SELECT id, session, pointer FROM outputs WHERE session = ?", (to_sql(session),)
                ).fetchall()
        return {(None if owner is None else from_sql(owner), pointer): number for number, owner, pointer in rows}

    def _take_in(self, missing: Sequence[Listed], deadline: float) -> int:
        done = 0
        for some in _batches(missing):
            if done and time.monotonic() >= deadline:
                break
            self._write(some)
            done += len(some)
        return len(missing) - done

    def _write(self, some: Sequence[Listed]) -> None:
        """Oldest first within a batch, so that row numbers tell age as far as they can."""
        some = sorted(some, key=lambda one: one.created)
        with _of_the_truth():
            originals = self.store.originals([one.pointer for one in some], None)
        counted = [(one, _counts(original)) for one, original in zip(some, originals, strict=True)]
        with self._database.writing() as connection:
            for one, counts in counted:
                _insert(connection, one, counts)

    def _drop(self, numbers: Sequence[int]) -> None:
        with self._database.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            for number in numbers:
                _delete(connection, number)
            # Until its postings are merged, a deleted term still stands in the file.
            connection.execute("INSERT INTO words (words) VALUES ('optimize')")

    def _mended(self, work: Callable[[], Result]) -> Result:
        """What `work` returns; a damaged file is set aside for it once."""
        try:
            return work()
        except StoreError as error:
            if not _is_damage(error):
                raise
            self._set_aside()
            logger.warning("hermes_jev: %s; it was set aside as %s and is made anew", error, SET_ASIDE)
        return work()

    def _set_aside(self) -> None:
        try:
            self.path.replace(self.path.with_name(SET_ASIDE))
            for path in _side_files(self.path):
                path.unlink(missing_ok=True)
        except FileNotFoundError:
            return  # another process was faster
        except OSError as error:
            raise StoreError(f"{INDEX_NAME}: it is damaged and cannot be moved away: {error.strerror}") from error


def _side_files(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm")]


def _batches(listed: Sequence[Listed]) -> Iterator[Sequence[Listed]]:
    """In their order, so many at a time that none takes long."""
    start, chars = 0, 0
    for at, one in enumerate(listed):
        if at > start and (at - start == _BATCH or chars + one.chars > _BATCH_CHARS):
            yield listed[start:at]
            start, chars = at, 0
        chars += one.chars
    if start < len(listed):
        yield listed[start:]


class _TruthFault(StoreError):
    """It is the truth that cannot be read: no reason to throw the index away."""


@contextmanager
def _of_the_truth() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise _TruthFault(str(error)) from error


def _is_damage(error: StoreError) -> bool:
    """Whether the index itself is bad, and not only out of reach. A file of another program is as useless."""
    if isinstance(error, _TruthFault):
        return False
    cause = error.__cause__
    if isinstance(cause, sqlite3.Error):
        code = int(vars(cause).get("sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF
        return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "no such table" in str(cause)
    # A file of a later version is no bad one: this version then searches with an index of its own.
    foreign = cause is None and "later version" not in str(error)
    return foreign or isinstance(cause, UnicodeDecodeError | zlib.error | ValueError)


# Rows


def scope(session: str | None) -> str:
    """The term that stands for a session: no text holds it, and any name makes one."""
    if session is None:
        return f"{_SCOPE}0"
    return _SCOPE + hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _counts(original: Original | StoreError) -> dict[str, int]:
    """Terms of tool, input and result; none for what cannot be read or is not searched, so that it is not asked for
    again."""
    if isinstance(original, StoreError) or original.tool in UNSEARCHED_TOOLS:
        return {}
    counts = term_counts(readable(original.result))
    counts.update(term_counts(f"{original.tool} {readable(original.arguments)}"))
    return dict(counts)


def _insert(connection: sqlite3.Connection, one: Listed, counts: Mapping[str, int]) -> None:
    session = None if one.session is None else to_sql(one.session)
    known = connection.execute(
        "SELECT 1 FROM outputs WHERE session IS ? AND pointer = ?", (session, one.pointer)
    ).fetchone()
    if known is not None:
        return  # another process took it in meanwhile
    cursor = connection.execute(
        "INSERT INTO outputs (pointer, session, created, length, counts) VALUES (?, ?, ?, ?, ?)",
        (one.pointer, session, one.created, sum(counts.values()), _packed(counts)),
    )
    connection.execute(
        "INSERT INTO words (rowid, terms) VALUES (?, ?)", (cursor.lastrowid, _terms_text(one.session, counts))
    )


def _delete(connection: sqlite3.Connection, number: int) -> None:
    row = connection.execute("SELECT session, counts FROM outputs WHERE id = ?", (number,)).fetchone()
    if row is None:
        return
    session = None if row[0] is None else from_sql(row[0])
    connection.execute(
        "INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)",
        (number, _terms_text(session, [line.partition(" ")[0] for line in _unpacked(row[1]).split("\n") if line])),
    )
    connection.execute("DELETE FROM outputs WHERE id = ?", (number,))


def _terms_text(session: str | None, terms: Iterable[str]) -> str:
    return " ".join([scope(session), *terms])


def _packed(counts: Mapping[str, int]) -> bytes:
    """Lines of a term, a blank and its count: one is found without reading the others."""
    return zlib.compress("".join(f"\n{term} {count}" for term, count in counts.items()).encode() + b"\n")


def _unpacked(packed: bytes) -> str:
    try:
        return zlib.decompress(packed).decode()
    except (zlib.error, ValueError) as error:
        raise StoreError(f"{INDEX_NAME}: a row is damaged") from error


def _count(counts: str, term: str) -> int:
    at = counts.find(f"\n{term} ")
    if at < 0:
        return 0
    start = at + len(term) + 2
    return int(counts[start : counts.index("\n", start)])


# Queries


def _found(
    connection: sqlite3.Connection, terms: Sequence[str], sessions: Collection[str] | None, unread: int
) -> Found:
    outputs, length = _size(connection, sessions)
    within = None if sessions is None else " OR ".join(f'"{scope(session)}"' for session in dict.fromkeys(sessions))
    holders: dict[str, list[int]] = {}
    for term in terms if within != "" else ():
        match = f'"{term}"' if within is None else f'({within}) AND "{term}"'
        rows = connection.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?", (match, _HOLDERS)
        )
        holders[term] = [number for (number,) in rows]
    # Where the postings were not read to the end, at least half is assumed: such a term tells next to nothing.
    counts = {
        term: len(held) if len(held) < _HOLDERS else max(len(held), outputs // 2) for term, held in holders.items()
    }
    field = Field(outputs, length / max(outputs, 1), counts)
    total: dict[int, float] = {}
    for term, held in holders.items():
        for number in held:
            total[number] = total.get(number, 0.0) + field.weight(term)
    best = sorted(total, key=lambda number: (total[number], number), reverse=True)[:_CANDIDATES]
    return Found(_candidates(connection, best, terms), field, unread)


def _size(connection: sqlite3.Connection, sessions: Collection[str] | None) -> tuple[int, int]:
    """How many outputs are searched, and their terms together."""
    if sessions is None:
        count, length = connection.execute("SELECT count(*), sum(length) FROM outputs").fetchone()
        return count, length or 0
    count = length = 0
    for session in dict.fromkeys(sessions):
        number, terms = connection.execute(
            "SELECT count(*), sum(length) FROM outputs WHERE session = ?", (to_sql(session),)
        ).fetchone()
        count, length = count + number, length + (terms or 0)
    return count, length


def _candidates(connection: sqlite3.Connection, numbers: Sequence[int], terms: Sequence[str]) -> list[Candidate]:
    """Each pointer once, however many sessions of the lineage have it."""
    found: dict[str, Candidate] = {}
    for number in numbers:
        row = connection.execute(
            "SELECT pointer, created, length, counts FROM outputs WHERE id = ?", (number,)
        ).fetchone()
        if row is not None and row[0] not in found:
            counts = _unpacked(row[3])
            held = {term: count for term in terms if (count := _count(counts, term))}
            found[row[0]] = Candidate(row[0], row[1], row[2], held)
    return list(found.values())
