"""What a large store costs: 100,000 outputs of some 5,000 characters each, about 500 MB.

    python benchmarks/store_size.py [--outputs 100000] [--sessions 200]

Prints the time to store them, then for the store as it is then: `expand` of one page by a session at the end of a
chain of compactions, what a session's start asks of the store, a pass' own writing, `verify`, and a sweep that finds
nothing. Each beside a yardstick of the same run: opening and closing a SQLite file of the same size with one read.
Takes some 600 MB of disk below the temporary folder, and removes it.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hermes_jev.lineage import seen
from hermes_jev.store import Keep, Kept, Limits, Store
from hermes_jev.tools import Room, expand

CHARS = 5_000
CHAIN = 50
"""Sessions in a row of which each continues the one before."""

BATCH = 100
EXPAND_MS, START_MS = 2.0, 20.0


def outputs(chance: random.Random) -> Callable[[int], str]:
    """Output number n: numbered lines of words of a vocabulary, which compress as logs do."""
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz_", k=chance.randrange(3, 12))) for _ in range(3_000)]

    def output(number: int) -> str:
        lines, length = [], 0
        while length < CHARS:
            line = f"{number:06d} {len(lines):04d} {' '.join(chance.choices(words, k=9))} {chance.random():.6f}"
            lines.append(line)
            length += len(line) + 1
        return "\n".join(lines)[:CHARS]

    return output


def fill(store: Store, count: int, sessions: int) -> dict[str, list[str]]:
    """Store `count` outputs for `sessions` sessions; their pointers by session."""
    output = outputs(random.Random(1))
    pointers: dict[str, list[str]] = {}
    for start in range(0, count, BATCH):
        name = f"session {start // BATCH % sessions}"
        items = [
            Keep("terminal", json.dumps({"command": f"step {n}"}), output(n), "ok", "[stored {}]".format)
            for n in range(start, min(start + BATCH, count))
        ]
        kept = store.keep(name, items)
        pointers.setdefault(name, []).extend(one.id for one in kept if isinstance(one, Kept))
    for number in range(1, sessions):
        if number % CHAIN:
            store.link(f"session {number}", f"session {number - 1}", "compression")
    return pointers


class Times(NamedTuple):
    """Of many pieces of work, in milliseconds: median, 95th percentile, and median of the processor's time."""

    median: float
    late: float
    own: float


def times_of(work: Sequence[Callable[[], object]]) -> Times:
    """Do each piece once and time it. On a machine that is shared, the processor's time tells more."""
    walls, owns = [], []
    for piece in work:
        wall, own = time.perf_counter(), time.thread_time()
        piece()
        walls.append((time.perf_counter() - wall) * 1_000)
        owns.append((time.thread_time() - own) * 1_000)
    return Times(statistics.median(walls), sorted(walls)[int(len(walls) * 0.95)], statistics.median(owns))


def plain_read(store: Store, pointer: str) -> None:
    """The yardstick: open the file, read one row, close it."""
    with closing(sqlite3.connect(f"file:{store.path}?mode=ro", uri=True)) as connection:
        connection.execute("SELECT tool FROM originals WHERE pointer = ?", (pointer,)).fetchone()


def main() -> int:
    """Run it; exit code 1 when expand or a session's start is slower than it may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outputs", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=200)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        start = time.perf_counter()
        pointers = fill(store, asked.outputs, asked.sessions)
        spent = time.perf_counter() - start
        size = store.path.stat().st_size
        print(f"{asked.outputs:,} outputs of {CHARS:,} characters, {asked.outputs * CHARS / 1e6:,.0f} MB,")
        print(
            f"stored in {spent:.0f} s ({spent / asked.outputs * 1_000:.2f} ms each); the file has {size / 1e6:,.0f} MB"
        )
        return measure(store, pointers)


def measure(store: Store, pointers: dict[str, list[str]]) -> int:
    """Print the table; 1 when a limit is not kept."""
    chance = random.Random(2)
    last = f"session {min(len(pointers), CHAIN) - 1}"
    line = store.ancestry(last)
    reachable = [pointer for name in line for pointer in pointers[name]]
    some = [chance.choice(reachable) for _ in range(500)]
    output = outputs(random.Random(3))

    def one_page(pointer: str) -> None:
        reply = expand({"id": pointer}, store, lambda: store.ancestry(last), Room(200_000, 50_000))
        assert "text" in json.loads(reply), reply

    def session_start() -> None:
        seen(store, last, line[1:])
        store.ancestry(last)

    def keep(number: int) -> None:
        (one,) = store.keep(last, [Keep("terminal", "{}", output(number), "ok", "[more {}]".format)])
        assert isinstance(one, Kept)

    yardstick = times_of([lambda pointer=pointer: plain_read(store, pointer) for pointer in some])
    rows = {
        f"expand one page, {len(line)} sessions in a row": [
            lambda pointer=pointer: one_page(pointer) for pointer in some
        ],
        "get of one original": [lambda pointer=pointer: store.get(pointer, None) for pointer in some],
        "a session starts": [session_start] * 100,
        "a pass stores one output": [lambda number=number: keep(number) for number in range(50)],
        "a sweep that finds nothing": [lambda: store.sweep(Limits(30 * 86_400, 10**9))] * 3,
        "stats": [store.stats] * 3,
        "verify, everything hashed": [store.check],
    }
    print(f"{'milliseconds':44}{'median':>10}{'95th':>10}{'own':>10}{'x yardstick':>13}")
    found = {"yardstick: open, read one row, close": yardstick} | {name: times_of(work) for name, work in rows.items()}
    for name, one in found.items():
        print(f"{name:44}{one.median:10.2f}{one.late:10.2f}{one.own:10.2f}{one.own / yardstick.own:13.1f}")
    _, expand_ms, _, start_ms, *_ = (one.median for one in found.values())
    kept = expand_ms < EXPAND_MS and start_ms < START_MS
    print(f"expand under {EXPAND_MS:g} ms and a start under {START_MS:g} ms: {'yes' if kept else 'NO'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
