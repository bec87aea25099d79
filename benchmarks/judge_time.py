"""How long judging takes beside one request, and how many bytes it sends.

    python benchmarks/judge_time.py [--delay 0.15] [--chars 5000]

A System One service on loopback answers each request after `--delay` seconds. For 60, 300 and 700 calls the judging of
a pass (asking and reading the answers) is timed as a multiple of one request's time, which is measured with
a single call in the same run: at most 1.5, 3 and 5 are asked for, with 32 calls a request and 8 requests at a time. As
configured by default a pass asks about the 256 largest; "all" lifts that limit.

Bytes are the bodies as they arrived, beside what sending the whole conversation with each request would be (at most a
third is asked for) and beside sending every description with each request, which no pass of two requests can halve.

Last, a service that never answers, one that drips, and a name resolver that hangs: how long a pass takes with a
deadline of one second. Exit code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pass_time import messages
from pydantic import SecretStr
from system_one_server import KEY, SystemOneServer

from hermes_jev.judge import SystemOne
from hermes_jev.judge.endpoints import TYPESAFE, resolve_endpoint
from hermes_jev.prune import prune

TARGETS = {60: 1.5, 300: 3.0, 700: 5.0}
BYTES_TARGET = 1 / 3
DEADLINE_S = 1.0
LATE_S = 1.0
"""Over the deadline a pass may take this long: the grace of the judge, and its own work."""


class Measured(NamedTuple):
    """Seconds of asking, seconds of the whole pass, and the bodies that arrived."""

    seconds: float
    whole: float
    bodies: list[bytes]


def judge(base: str) -> SystemOne:
    """The remote judge, eight requests at a time."""
    return SystemOne(resolve_endpoint({}, base, None, TYPESAFE), SecretStr(KEY), concurrency=8)


def measure(server: SystemOneServer, calls: int, chars: int, most: int) -> Measured:
    """One pass over `calls` old calls, with a store of its own."""
    session = messages(calls + 3, chars)
    server.requests.clear()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        pruned = prune(session, judge(server.url), folder, {"max_candidates": most, "pass_deadline_s": 60})
        spent = time.monotonic() - started
    if pruned.receipt.failed_requests or not pruned.receipt.requests:
        raise SystemExit(f"the pass did not run: {pruned.receipt.summary()}")
    return Measured(pruned.receipt.latency_ms / 1_000, spent, [request.raw for request in server.requests])


def described_with_each(bodies: list[bytes]) -> int:
    """Bytes, had every request carried the descriptions of all calls."""
    states = [json.loads(body)["state"]["items"] for body in bodies]
    items = [len(json.dumps(held, ensure_ascii=False).encode()) for held in states]
    return sum(map(len, bodies)) + (len(bodies) - 1) * sum(items)


def row(server: SystemOneServer, calls: int, chars: int, most: int, one: float, label: str) -> bool:
    """Measure, print, and say whether the targets are met."""
    found = measure(server, calls, chars, most)
    sent = sum(map(len, found.bodies))
    whole = len(found.bodies) * len(json.dumps(messages(calls + 3, chars), ensure_ascii=False).encode())
    ratio, share = found.seconds / one, sent / whole
    beside = sent / described_with_each(found.bodies)
    print(
        f"{calls:5} calls, {label:8}{len(found.bodies):3} requests {ratio:6.2f} × one request"
        f" (at most {TARGETS[calls]}; the whole pass {found.whole / one:4.1f}) {sent:9,} bytes: {share:.3f} of the"
        f" conversation each time (at most {BYTES_TARGET:.3f}), {beside:.3f} of all descriptions each time"
    )
    return ratio <= TARGETS[calls] and share <= BYTES_TARGET


def held(name: str, run: Callable[[], None]) -> bool:
    """Time a pass against a service that does not answer."""
    started = time.monotonic()
    run()
    spent = time.monotonic() - started
    print(f"{name:28} {spent / DEADLINE_S:5.2f} × the deadline of {DEADLINE_S:.0f} s")
    return spent <= DEADLINE_S + LATE_S


def without_answer(base: str) -> None:
    """A pass that gets no answer; it must come back, and with the list it was given."""
    session = messages(60, 5_000)
    with tempfile.TemporaryDirectory() as folder:
        pruned = prune(session, judge(base), folder, {"pass_deadline_s": DEADLINE_S})
    if pruned.messages is not session:
        raise SystemExit("something was cut without an answer")


def hanging_resolver() -> None:
    """Names resolve after the pass is long over."""
    real = socket.getaddrinfo
    release, asked = threading.Event(), threading.Event()

    def slow(host: Any, *more: Any, **named: Any) -> Any:
        if host in ("judge.example", b"judge.example"):
            asked.set()
            release.wait(30)
            raise socket.gaierror("too late")
        return real(host, *more, **named)

    socket.getaddrinfo = slow
    try:
        without_answer("https://judge.example")
    finally:
        release.set()
        socket.getaddrinfo = real
    if not asked.is_set():
        raise SystemExit("the resolver was never asked")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=float, default=0.15)
    parser.add_argument("--chars", type=int, default=5_000)
    options = parser.parse_args()
    met: list[bool] = []
    with SystemOneServer() as server:
        server.delay_s = options.delay
        measure(server, 1, options.chars, 256)  # modules are loaded, names resolved
        one = min(measure(server, 1, options.chars, 256).seconds for _ in range(3))
        print(f"one request: {1_000 * one:.0f} ms, of which the service waits {1_000 * options.delay:.0f} ms")
        for calls in TARGETS:
            met.append(row(server, calls, options.chars, 256, one, "default"))
        for calls in (300, 700):
            met.append(row(server, calls, options.chars, calls, one, "all"))
    for mode, name in (("hang", "a service that hangs"), ("drip", "a service that drips")):
        with SystemOneServer() as server:
            server.mode = mode
            met.append(held(name, partial(without_answer, server.url)))
    met.append(held("a resolver that hangs", hanging_resolver))
    print("all targets are met" if all(met) else "a target is missed")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
