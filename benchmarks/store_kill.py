"""Kill a process that uses the store, at random moments, many times; then every pointer it had named must expand.

    python benchmarks/store_kill.py [--loops 600] [--seed 1]

The child stores originals, links sessions, writes receipts, sweeps and purges, and names a pointer only when the store
has said that it is kept. Now and then the file is damaged before a round, so that setting aside and saving are killed
too. Prints what was done, and exits with 1 if one pointer does not open exactly, or the store is not sound at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hermes_jev.errors import StoreError
from hermes_jev.store import Keep, Kept, Limits, Store

LONGEST_S = 0.25
"""No child lives longer."""

DAMAGED_EVERY = 100
"""Rounds from one damage to the next: a store leaves at most nine damaged files."""


def item(name: str, number: int) -> Keep:
    """An original that any process can make again, of 100 to 30,000 characters."""
    chance = random.Random(f"{name} {number}")
    text = chance.randbytes(chance.choice((50, 500, 5_000, 15_000))).hex()
    return Keep("terminal", json.dumps({"name": name, "number": number}), text, "ok", f"[{name} {{}}]".format)


def work(folder: Path, name: str, pipe: int) -> None:
    """Use the store until somebody ends it; each line names the number of an original and its pointer."""
    store = Store(folder, say=lambda text: None)
    doomed = Store(folder, now=lambda: time.time() - 60 * 86_400)
    for start in range(0, 1_000_000, 5):
        items = [item(name, number) for number in range(start, start + 5)]
        for number, kept in enumerate(store.keep(name, items), start):
            if isinstance(kept, Kept):
                os.write(pipe, f"{number} {kept.id}\n".encode())
        store.link(f"{name} {start}", name, "compression")
        store.add_receipt(name, "{}")
        if start % 3 == 0:
            doomed.keep(f"doomed {name}", [item(f"doomed {name}", start)])
            store.sweep(Limits(30 * 86_400, 10**9))
        if start % 4 == 0:
            store.keep(f"purged {name}", [item(f"purged {name}", start)])
            store.purge(f"purged {name}")


def child(folder: Path, name: str, pipe: int) -> None:
    """Never returns."""
    try:
        work(folder, name, pipe)
    except StoreError:
        os._exit(3)
    finally:
        os._exit(4)


def opens(store: Store, name: str, number: int, pointer: str) -> bool:
    """Whether this pointer opens for its session and gives what was stored."""
    wanted = item(name, number)
    try:
        back = store.get(pointer, [name])
    except StoreError:
        return False
    return (back.tool, back.arguments, back.result) == (wanted.tool, wanted.arguments, wanted.result)


def round_(store: Store, name: str, wait_s: float) -> tuple[list[tuple[int, str]], bool]:
    """One child, killed after a while: what it named, and whether it was still alive to be killed."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        child(store.folder, name, writing)
    os.close(writing)
    time.sleep(wait_s)
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    with os.fdopen(reading, "rb") as stream:
        lines = [line.split() for line in stream.read().decode().splitlines()]
    return [(int(number), pointer) for number, pointer in lines], os.WIFSIGNALED(status)


def main() -> int:
    """Run the loops; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loops", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    named: dict[str, list[tuple[int, str]]] = {}
    lost: list[str] = []
    killed = damaged = 0
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store", say=lambda text: None)
        for number in range(asked.loops):
            if number % DAMAGED_EVERY == DAMAGED_EVERY - 1:
                damaged += 1
                store.path.write_bytes(bytes(100) + store.path.read_bytes()[100:])
            name = f"round {number}"
            named[name], alive = round_(store, name, chance.uniform(0, LONGEST_S))
            killed += alive
            lost += [f"{name}: {pointer}" for at, pointer in named[name] if not opens(store, name, at, pointer)]
        every = [(name, at, pointer) for name, some in named.items() for at, pointer in some]
        lost += [f"{name}: {pointer}, at the end" for name, at, pointer in every if not opens(store, name, at, pointer)]
        problems = store.check()
        aside = len(store.aside())
    per_round = statistics.mean(map(len, named.values()))
    print(f"{asked.loops} rounds, {killed} children killed while they worked, {damaged} files damaged between rounds")
    print(f"{len(every)} pointers named, {per_round:.1f} a round; {len(lost)} do not open exactly")
    print(f"store at the end: {'sound' if not problems else problems[:3]}; {aside} damaged files left beside it")
    for line in lost[:20]:
        print(f"lost: {line}")
    return 1 if lost or problems or killed < asked.loops else 0


if __name__ == "__main__":
    sys.exit(main())
