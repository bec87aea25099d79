"""What the store remembers of services: how they stand, and what they cost by day."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from hermes_jev.errors import StoreError
from hermes_jev.store import Services, Spent, Store
from hermes_jev.store.services import MAX_DAYS, NEVER_SEEN, Row

DAY_S = 86_400.0
NOON = 1_796_126_400.0  # 2026-12-01 12:00 UTC


class At:
    """A clock that stands where it is put."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def services(folder: Path, clock: At | None = None) -> Services:
    return Services(Store(folder / "store", now=clock or At()))


def failing(row: Row) -> Row:
    return (row[0] + 1, *row[1:])


def same(row: Row) -> Row:
    return row


def test_nothing_is_made_by_reading(tmp_path: Path) -> None:
    assert services(tmp_path).row("typesafe api.typesafe.ai") == NEVER_SEEN
    assert services(tmp_path).spent() == Spent()
    assert services(tmp_path).days() == []
    assert list(tmp_path.iterdir()) == []


def test_a_change_is_seen_by_everyone_and_by_no_other_service(tmp_path: Path) -> None:
    before = services(tmp_path).record("a", failing)
    again = services(tmp_path).record("a", failing)

    assert (before[0], again[0]) == (0, 1)
    assert services(tmp_path).row("a")[0] == 2
    assert services(tmp_path).row("b") == NEVER_SEEN


def test_spending_adds_up_by_day_and_over_services(tmp_path: Path) -> None:
    clock = At()
    ledger = services(tmp_path, clock)
    ledger.record("a", same, Spent(2, 1_000, 0.25))
    ledger.record("a", same, Spent(1, 500, 0.125))
    ledger.record("b", same, Spent(1, 10, 1.0))
    clock.now += DAY_S
    ledger.record("b", same, Spent(1, 0, 0.5))

    assert ledger.spent() == Spent(1, 0, 0.5)
    assert ledger.spent("2026-12-01") == Spent(4, 1_510, 1.375)
    assert ledger.days() == [("2026-12-02", Spent(1, 0, 0.5)), ("2026-12-01", Spent(4, 1_510, 1.375))]
    assert ledger.row("a") == NEVER_SEEN


def test_the_day_is_that_of_greenwich(tmp_path: Path) -> None:
    assert services(tmp_path, At(NOON + DAY_S / 2 - 1)).today() == "2026-12-01"
    assert services(tmp_path, At(NOON + DAY_S / 2)).today() == "2026-12-02"


def test_old_days_leave(tmp_path: Path) -> None:
    clock = At()
    ledger = services(tmp_path, clock)
    ledger.record("a", same, Spent(1, 1, 1.0))
    with closing(sqlite3.connect(tmp_path / "store" / "truth.sqlite3")) as connection, connection:
        connection.executemany(
            "INSERT INTO spending VALUES (?, 'a', 1, 1, 1.0)", [(f"2020-{n:04d}",) for n in range(MAX_DAYS + 50)]
        )
    clock.now += DAY_S

    ledger.record("a", same, Spent(1, 1, 1.0))

    days = [day for day, _ in ledger.days(10_000)]
    assert len(days) == MAX_DAYS
    assert days[:2] == ["2026-12-02", "2026-12-01"]


def test_a_change_that_fails_leaves_all_as_it_was(tmp_path: Path) -> None:
    ledger = services(tmp_path)
    ledger.record("a", failing, Spent(1, 1, 1.0))

    def broken(row: Row) -> Row:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.record("a", broken, Spent(1, 1, 1.0))

    assert ledger.row("a")[0] == 1
    assert ledger.spent() == Spent(1, 1, 1.0)


def test_two_at_once_count_both(tmp_path: Path) -> None:
    def many() -> None:
        for _ in range(10):
            services(tmp_path).record("a", failing, Spent(1, 1, 0.5))

    threads = [threading.Thread(target=many) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert services(tmp_path).row("a")[0] == 30
    assert services(tmp_path).spent() == Spent(30, 30, 15.0)


@pytest.mark.parametrize(
    "statement",
    ["UPDATE services SET failures = 'x'", "UPDATE services SET open_until = 'soon'", "DROP TABLE services"],
)
def test_damage_is_a_store_error(tmp_path: Path, statement: str) -> None:
    services(tmp_path).record("a", failing)
    with closing(sqlite3.connect(tmp_path / "store" / "truth.sqlite3")) as connection, connection:
        connection.execute(statement)

    with pytest.raises(StoreError):
        services(tmp_path).row("a")
    with pytest.raises(StoreError):
        services(tmp_path).record("a", failing)


def test_damaged_costs_are_a_store_error(tmp_path: Path) -> None:
    services(tmp_path).record("a", same, Spent(1, 1, 0.5))
    with closing(sqlite3.connect(tmp_path / "store" / "truth.sqlite3")) as connection, connection:
        connection.execute("UPDATE spending SET cost = 'dear', tokens = 0.5")

    with pytest.raises(StoreError):
        services(tmp_path).spent()
