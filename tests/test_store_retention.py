"""What leaves the store and what never does."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from store_child import item

from hermes_jev.errors import NotStored, StoreError
from hermes_jev.store import FILE_NAME, Keep, Kept, Limits, Purged, Store, StoredVerdict, Swept, encode

DAY = 86_400.0
LIMITS = Limits(30 * DAY, 1_000_000_000)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now

    def on(self, days: float) -> None:
        self.now += days * DAY


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Store:
    return Store(tmp_path / "store", now=clock)


def keep(store: Store, session: str | None, *items: Keep) -> list[str]:
    given = store.keep(session, items)
    assert all(isinstance(one, Kept) for one in given), given
    return [one.id for one in given if isinstance(one, Kept)]


def there(store: Store, pointers: Sequence[str]) -> list[bool]:
    found = []
    for pointer in pointers:
        try:
            store.get(pointer, None)
            found.append(True)
        except NotStored:
            found.append(False)
    return found


def rows(store: Store, table: str) -> int:
    with closing(sqlite3.connect(store.path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


# Age


def test_what_is_old_leaves_with_all_that_belongs_to_it(store: Store, clock: Clock) -> None:
    old = keep(store, "old", item("a", 0), item("a", 1))
    clock.on(31)
    young = keep(store, "young", item("b", 0))
    swept = store.sweep(LIMITS)
    assert sorted(swept.pointers) == sorted(old)
    assert swept.finished
    assert there(store, old + young) == [False, False, True]
    assert {table: rows(store, table) for table in ("originals", "contents", "grants", "cuts", "sessions")} == {
        "originals": 1,
        "contents": 2,
        "grants": 1,
        "cuts": 1,
        "sessions": 1,
    }
    assert store.check() == []
    assert store.sweep(LIMITS).pointers == ()


def test_a_session_that_is_in_use_keeps_what_it_may_open(store: Store, clock: Clock) -> None:
    pointers = [keep(store, name, item(name, 0))[0] for name in ("first", "second", "third", "other")]
    store.link("second", "first", "compression")
    store.link("third", "second", "compression")
    clock.on(29)
    store.saw("third")
    clock.on(29)
    assert store.sweep(LIMITS).pointers == (pointers[3],)
    assert there(store, pointers) == [True, True, True, False]
    clock.on(2)
    assert len(store.sweep(LIMITS).pointers) == 3


def test_a_session_named_as_bound_keeps_its_own(store: Store, clock: Clock) -> None:
    bound, other = keep(store, "bound", item("a", 0)) + keep(store, "other", item("b", 0))
    clock.on(400)
    assert store.sweep(LIMITS, sessions=["bound"]).pointers == (other,)
    assert there(store, [bound]) == [True]


def test_what_stands_in_a_conversation_stays(store: Store, clock: Clock) -> None:
    pointers = keep(store, "s", *(item("a", number) for number in range(5)))
    clock.on(400)
    assert sorted(store.sweep(LIMITS, lambda: pointers[1:3]).pointers) == sorted(pointers[:1] + pointers[3:])
    assert store.sweep(LIMITS, lambda: pointers[1:3]).pointers == ()


def test_when_conversations_cannot_be_read_nothing_leaves(store: Store, clock: Clock) -> None:
    (pointer,) = keep(store, "s", item("a", 0))
    clock.on(400)
    assert store.sweep(LIMITS, lambda: None).pointers == ()
    assert there(store, [pointer]) == [True]


def test_conversations_are_not_looked_into_without_need(store: Store) -> None:
    keep(store, "s", item("a", 0))
    asked: list[None] = []
    store.sweep(LIMITS, lambda: asked.append(None))
    assert asked == []


def test_what_another_session_has_too_stays_as_long_as_that_needs_it(store: Store, clock: Clock) -> None:
    (shared,) = keep(store, "first", item("a", 0))
    clock.on(20)
    assert keep(store, "second", item("a", 0)) == [shared]
    clock.on(20)
    assert store.sweep(LIMITS).pointers == ()
    clock.on(20)
    assert store.sweep(LIMITS).pointers == (shared,)


def test_what_was_cut_again_is_young_again(store: Store, clock: Clock) -> None:
    (pointer,) = keep(store, None, item("a", 0))
    clock.on(20)
    keep(store, None, item("a", 0))
    clock.on(20)
    assert store.sweep(LIMITS).pointers == ()
    clock.on(20)
    assert store.sweep(LIMITS).pointers == (pointer,)


def test_contents_that_another_original_has_stay(store: Store, clock: Clock) -> None:
    same = "the same text " * 100
    (old,) = keep(store, "old", Keep("terminal", "{}", same, "ok", "[old {}]".format))
    clock.on(31)
    (young,) = keep(store, "young", Keep("read_file", same, "{}", "ok", "[young {}]".format))
    assert store.sweep(LIMITS).pointers == (old,)
    assert store.get(young, ["young"]).arguments == same
    assert store.check() == []


def test_a_clock_that_was_set_back_removes_nothing(store: Store, clock: Clock) -> None:
    pointers = keep(store, "s", item("a", 0)) + keep(store, None, item("b", 0))
    clock.on(-1_000)
    assert store.sweep(LIMITS).pointers == ()
    assert there(store, pointers) == [True, True]
    assert store.ancestry("s") == ["s"]


# Size


def test_the_least_recently_used_leave_first_until_there_is_room(store: Store, clock: Clock) -> None:
    pointers = []
    for number in range(20):
        pointers += keep(store, None, item("a", number, size=50_000))
        clock.on(0.1)
    live = keep(store, "live", *(item("live", number, size=50_000) for number in range(3)))
    most = 500_000
    before = store.path.stat().st_size
    assert before > most
    swept = store.sweep(Limits(30 * DAY, most))
    left = there(store, pointers)
    gone = left.index(True)
    assert 0 < gone < 20
    assert left == [False] * gone + [True] * (20 - gone)
    assert list(swept.pointers) == pointers[:gone]
    assert there(store, live) == [True] * 3
    assert swept.bytes <= most
    assert store.path.stat().st_size <= most, "the file itself becomes smaller"
    assert store.check() == []


def test_what_is_live_stays_whatever_its_size(store: Store, clock: Clock) -> None:
    live = keep(store, "live", *(item("live", number, size=50_000) for number in range(5)))
    clock.on(1)
    swept = store.sweep(Limits(30 * DAY, 1_000))
    assert swept.pointers == ()
    assert swept.bytes > 1_000
    assert there(store, live) == [True] * 5


# Receipts and verdicts


def test_old_receipts_and_verdicts_leave(store: Store, clock: Clock) -> None:
    for session in ("old", "live", None):
        store.add_receipt(session, "{}")
    keep(store, "live", item("a", 0))
    store.save_verdicts({"old": StoredVerdict(0.5, 0.5, "full", 1, "jev")})
    clock.on(31)
    store.saw("live")
    store.save_verdicts({"new": StoredVerdict(0.5, 0.5, "full", 1, "jev")})
    swept = store.sweep(LIMITS)
    assert (swept.receipts, swept.verdicts) == (2, 1)
    assert [one.session for one in store.receipts()] == ["live"]
    assert list(store.verdicts(["old", "new"])) == ["new"]


def test_receipts_have_a_share_of_the_size(store: Store) -> None:
    numbers = [store.add_receipt("s", json.dumps("x" * 998)) for _ in range(30)]
    swept = store.sweep(Limits(30 * DAY, 100_000))
    assert swept.receipts == 20
    assert [one.id for one in store.receipts()] == numbers[:19:-1]


def test_links_between_sessions_that_are_gone_leave(store: Store, clock: Clock) -> None:
    store.link("b", "a", "compression")
    store.link("d", "c", "compression")
    clock.on(40)
    store.saw("d")
    store.sweep(LIMITS)
    assert store.ancestry("d") == ["d", "c"]
    assert store.ancestry("b") == ["b"]
    assert rows(store, "lineage") == 1


# How it is done


def test_a_sweep_that_has_no_time_goes_on_later(store: Store, clock: Clock) -> None:
    pointers = keep(store, "s", *(item("a", number) for number in range(150)))
    clock.on(31)
    first = store.sweep(LIMITS, limit_s=0)
    assert not first.finished
    assert store.swept() is None
    second = store.sweep(LIMITS)
    assert second.finished
    assert len(first.pointers) + len(second.pointers) == len(pointers)
    assert store.swept() == clock.now


def test_an_empty_store_is_swept_without_making_it(store: Store) -> None:
    assert store.sweep(LIMITS) == Swept()
    assert store.purge("s") == Purged()
    assert store.salvage() == 0
    assert store.swept() is None
    store.saw("s", ["parent"])
    assert not store.folder.exists()


def test_what_is_stored_during_a_sweep_stays(store: Store, clock: Clock) -> None:
    keep(store, "old", *(item("old", number) for number in range(300)))
    clock.on(31)
    written: list[str] = []

    def write() -> None:
        for number in range(0, 300, 20):
            written.extend(keep(store, "new", item("old", number), item("new", number)))

    writer = threading.Thread(target=write)
    writer.start()
    store.sweep(LIMITS)
    writer.join()
    assert there(store, written) == [True] * 30
    assert store.check() == []


def test_swept_pages_are_overwritten(store: Store, clock: Clock) -> None:
    marker = random.Random(1).randbytes(3_000).hex()
    keep(store, "old", Keep("terminal", marker[:50], marker, "ok", str))
    clock.on(31)
    store.sweep(LIMITS)
    assert marker[:50].encode() not in everything(store)


# Use


def test_a_session_is_noted_once_an_hour_and_only_when_it_has_something(store: Store, clock: Clock) -> None:
    keep(store, "s", item("a", 0))
    store.saw("unknown")
    assert rows(store, "sessions") == 1
    before = store.path.read_bytes()
    clock.now += 3_599
    store.saw("s")
    assert store.path.read_bytes() == before
    clock.now += 2
    store.saw("s")
    assert store.path.read_bytes() != before


def test_the_hosts_parents_are_kept_when_the_host_forgets_them(store: Store) -> None:
    keep(store, "grandparent", item("a", 0))
    store.saw("child", ["parent", "grandparent"])
    store.saw("child")
    assert store.ancestry("child") == ["child", "parent", "grandparent"]
    store.saw("grandparent", ["child"])
    assert store.ancestry("grandparent") == ["grandparent"], "no ring"


@pytest.mark.parametrize("odd", ["", "a/b", "../x", "café 🚀", "nul\0", "\ud800", "%' OR 1=1 --", "x" * 10_000])
def test_odd_session_ids_reach_their_own_and_nothing_else(store: Store, clock: Clock, odd: str) -> None:
    (mine,) = keep(store, odd, item("mine", 0))
    (other,) = keep(store, "other", item("other", 0))
    store.link("child", odd, "compression")
    assert store.get(mine, store.ancestry("child")).result == item("mine", 0).result
    with pytest.raises(NotStored):
        store.get(other, store.ancestry("child"))
    with pytest.raises(NotStored):
        store.get(mine, ["other"])
    clock.on(31)
    store.saw(odd)
    assert store.sweep(LIMITS).pointers == (other,)
    assert store.purge(odd).pointers == (mine,)
    assert there(store, [mine, other]) == [False, False]


# Purge


def everything(store: Store) -> bytes:
    """Every byte of every file of the store."""
    return b"".join(path.read_bytes() for path in sorted(store.folder.rglob("*")) if path.is_file())


def secret(name: str, size: int = 6_000) -> Keep:
    """An original in which everything names the session, and compression changes nothing about that."""
    noise = random.Random(name).randbytes(size)
    text = f"{name}-result " + noise.decode("latin-1")
    return Keep(f"{name}-tool", json.dumps({"path": f"{name}-path"}), text, "ok", "[{}]".format)


def parts_of(one: Keep) -> list[bytes]:
    """Short pieces of what the file holds of this result, most of which stand on one page."""
    body = zlib.compress(encode(one.result))
    return [body[at : at + 24] for at in range(16, len(body) - 24, 400)]


@pytest.mark.parametrize("many", [1, 60])
def test_a_purge_leaves_no_byte(store: Store, many: int) -> None:
    gone = [secret(f"gone{number}", size=random.Random(number).randrange(10, 9_000)) for number in range(many)]
    stay = [secret(f"stay{number}", size=random.Random(-number).randrange(10, 9_000)) for number in range(many)]
    for one, other in zip(gone, stay, strict=True):
        keep(store, "gone-session", one)
        keep(store, "stays", other)
    store.add_receipt("gone-session", '{"about": "gone-receipt"}')
    parts = [part for one in gone for part in parts_of(one)]
    before = everything(store)
    assert sum(part in before for part in parts) > 0.9 * len(parts)
    purged = store.purge("gone-session")
    assert (len(purged.pointers), purged.shared, purged.receipts) == (many, 0, 1)
    left = everything(store)
    assert [part for part in parts if part in left] == []
    assert b"gone" not in left
    assert store.check() == []
    for one in stay:
        assert any(found.original == (one.tool, one.arguments, one.result, "ok") for found in store.each("stays"))


def test_a_purge_leaves_what_others_have(store: Store) -> None:
    both, shell, alone = item("both", 0), item("shell", 0), item("alone", 0)
    pointers = keep(store, "s", both, shell, alone)
    keep(store, "other", both)
    keep(store, None, shell)
    assert store.purge("s") == Purged((pointers[2],), 2, 0)
    assert there(store, pointers) == [True, True, False]
    with pytest.raises(NotStored):
        store.get(pointers[0], ["s"])
    assert store.get(pointers[0], ["other"]).result == both.result
    assert store.purge("s") == Purged()


def test_a_purge_between_two_sessions_leaves_them_linked(store: Store) -> None:
    (first,) = keep(store, "first", item("first", 0))
    keep(store, "second", item("second", 0))
    store.link("second", "first", "compression")
    store.link("third", "second", "compression")
    store.purge("second")
    assert store.ancestry("third") == ["third", "first"]
    assert store.get(first, store.ancestry("third")).result == item("first", 0).result


def test_a_purge_reaches_what_was_set_aside_and_the_full_text(store: Store) -> None:
    gone = secret("gone")
    (stays,) = keep(store, "stays", item("stays", 0))
    keep(store, "s", gone)
    data = store.path.read_bytes()
    store.path.write_bytes(bytes(100) + data[100:])
    (store.folder / "search.sqlite3").write_bytes(b"words of gone")
    assert isinstance(store.keep("s", [item("more", 0)])[0], Kept)
    assert len(store.aside()) == 1
    assert len(store.purge("s").pointers) == 2
    assert sorted(path.name for path in store.folder.iterdir()) == [FILE_NAME, f"{FILE_NAME}.lock"]
    assert b"gone" not in everything(store)
    assert there(store, [stays]) == [True]


def test_a_purge_that_cannot_overwrite_says_so_and_may_be_run_again(store: Store, clock: Clock) -> None:
    hurried = Store(store.folder, now=clock, patience_s=0.05)
    keep(store, "s", secret("gone"))
    with closing(sqlite3.connect(store.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM contents").fetchone()
        with pytest.raises(StoreError, match="run it again"):
            hurried.purge("s")
    hurried.purge("s")
    assert b"gone" not in everything(store)


def test_each_gives_every_original_as_it_was_stored(store: Store) -> None:
    values = ["text\ud800\udc00", {"a": [1, 2.5, None]}, [], "x" * 10_000]
    items = [Keep("tool", "{}", value, "ok", "[{}]".format) for value in values]
    pointers = keep(store, "s", *items)
    keep(store, "t", items[0])
    found = list(store.each())
    assert [one.id for one in found] == pointers
    assert [one.original.result for one in found if not isinstance(one.original, StoreError)] == values
    assert found[0].sessions == ("s", "t")
    assert [one.id for one in store.each("t")] == pointers[:1]


def test_stats_count_what_is_there(store: Store, clock: Clock) -> None:
    assert store.stats().originals == 0
    keep(store, "s", Keep("t", "{}", "12345", "ok", str), Keep("t", "{}", "123", "ok", "[{}]".format))
    store.add_receipt("s", "{}")
    found = store.stats()
    assert (found.originals, found.contents, found.chars, found.sessions, found.receipts) == (2, 3, 10, 1, 1)
    assert found.oldest == found.newest == clock.now
    assert found.bytes == store.path.stat().st_size >= found.used_bytes > 0
