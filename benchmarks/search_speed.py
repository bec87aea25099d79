"""How long a search takes in a large store.

    python benchmarks/search_speed.py                      100,000 outputs of 5,000 characters in 200 sessions
    python benchmarks/search_speed.py --outputs 5000       fewer
    python benchmarks/search_speed.py --sessions 1         all of one session, the worst there is

The texts are made from words whose frequencies fall as in a language, with identifiers, paths and numbers that stand
in one output only. The store is filled through its own `keep`, the index built once (`jev store rebuild`), then timed:
searches within the lineage of one session, of three words each, one of them rare. Everything goes to a temporary folder
(about 1 GB for 100,000 outputs) and is removed. Nothing else may use the disk meanwhile for the figures to mean much.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hermes_jev.paging import Room  # noqa: E402 - a script finds its own package first
from hermes_jev.search import search  # noqa: E402
from hermes_jev.session_search import Scope, answer  # noqa: E402
from hermes_jev.state_db import StateDb  # noqa: E402
from hermes_jev.store import Keep, Store  # noqa: E402
from hermes_jev.store.index import Index  # noqa: E402

WORDS = 20_000
BATCH = 200


def output(number: int, chars: int, chance: random.Random, words: list[str], weights: list[float]) -> str:
    """A tool result of about `chars` characters."""
    lines = []
    size = 0
    while size < chars:
        line = " ".join(chance.choices(words, cum_weights=weights, k=8))
        line += f" src/part{number % 997}/file_{chance.randrange(10**6)}.py:{chance.randrange(2_000)}"
        lines.append(line)
        size += len(line) + 1
    lines.insert(len(lines) // 2, f"the marker_{number} stands here")
    return "\n".join(lines)


def fill(store: Store, outputs: int, sessions: int, chars: int) -> None:
    """Store all outputs, each session's in order."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 10))) for _ in range(WORDS)]
    weights = [0.0]
    for rank in range(1, WORDS + 1):
        weights.append(weights[-1] + 1 / rank)
    for start in range(0, outputs, BATCH):
        numbers = range(start, min(start + BATCH, outputs))
        items = [
            Keep(
                "terminal",
                f'{{"command": "run {n}"}}',
                output(n, chars, chance, words, weights[1:]),
                "ok",
                f"{n} {{}}".format,
            )
            for n in numbers
        ]
        store.keep(f"session-{start * sessions // outputs}", items)


class Times(NamedTuple):
    """Milliseconds of each run: of the clock, and of this process' own work, which other processes do not lengthen."""

    clock: list[float]
    work: list[float]

    def run(self, call: Callable[[], Any]) -> Any:
        """What `call` returns."""
        clock, work = time.perf_counter(), time.process_time()
        result = call()
        self.clock.append(1e3 * (time.perf_counter() - clock))
        self.work.append(1e3 * (time.process_time() - work))
        return result


def timed(store: Store, outputs: int, sessions: int, searches: int) -> dict[str, Times]:
    """Searches within a lineage, alone and as the reply of the tool."""
    chance = random.Random(2)
    alone, reply = Times([], []), Times([], [])
    for _ in range(searches):
        number = chance.randrange(outputs)
        session = f"session-{(number - number % BATCH) * sessions // outputs}"
        query = f"marker_{number} part{number % 997} the"
        scope = Scope(session, lambda session=session: [session], store, StateDb(store.folder / "none"), Room(), 0.0)
        hits = alone.run(lambda query=query, session=session: search(store, query, [session], 6)).hits
        assert f"marker_{number} " in hits[0].text
        said = reply.run(lambda query=query, scope=scope: answer({"query": query}, scope))
        assert f"marker_{number} " in said
    return {"search": alone, "session_search": reply}


def main() -> None:
    """Fill, index, time, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--chars", type=int, default=5_000)
    parser.add_argument("--searches", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        start = time.perf_counter()
        fill(store, options.outputs, options.sessions, options.chars)
        print(f"stored {options.outputs:,} outputs in {time.perf_counter() - start:,.0f} s")
        start = time.perf_counter()
        Index(store).rebuild()
        took = time.perf_counter() - start
        print(f"indexed in {took:,.0f} s, {1e3 * took / options.outputs:.2f} ms an output")
        for file in sorted(Path(folder).iterdir()):
            print(f"{file.name}: {file.stat().st_size / 1e6:,.0f} MB")
        for name, times in timed(store, options.outputs, options.sessions, options.searches).items():
            late = sorted(times.clock)[int(0.95 * len(times.clock))]
            print(
                f"{name} within a lineage of {options.outputs // options.sessions:,} of {options.outputs:,}: median "
                f"{statistics.median(times.clock):.1f} ms (own work {statistics.median(times.work):.1f} ms), "
                f"95th percentile {late:.1f} ms"
            )


if __name__ == "__main__":
    main()
