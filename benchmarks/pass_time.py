"""What a pass costs of this machine's own time, beside a yardstick measured in the same run.

    python benchmarks/pass_time.py [--calls 56] [--chars 5000] [--rounds 5]

Prints milliseconds and the ratio to one JSON round trip of the same messages. "plain" is a pass with a judge that
answers at once (parse, pin, decide, store, cut, check, record), "described" adds what a remote judge would be sent
(redaction included), "lexical" is the embedded judge, cold: a fresh process for each round.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hermes_jev.judge import Answer, Answers, Request
from hermes_jev.prune import prune

WORDS = "order total import currency rate parse handler error value index retry queue token path config 12 4096 0.25"


class Low:
    """Answers at once, low to everything. Remote or local, so that describing can be measured or left out."""

    name, version = "low", "1"

    def __init__(self, local: bool) -> None:
        self.local = local

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        asked = {question.id: Answer({"true": 0.1}) for request in requests for question in request.questions}
        return Answers(by_id=asked, judge=self.name, model=self.version, requests=len(requests))


def messages(calls: int, chars: int) -> list[dict[str, Any]]:
    """A made-up session with `calls` results of `chars` characters, the same in every process."""
    dice = random.Random(7)
    vocabulary = WORDS.split()
    made: list[dict[str, Any]] = [{"role": "user", "content": "Find why the nightly import fails and fix it."}]
    for at in range(calls):
        lines: list[str] = []
        while sum(map(len, lines)) < chars:
            lines.append(f"{at:03}:{len(lines):04} " + " ".join(dice.choices(vocabulary, k=9)) + "\n")
        call = {"name": "terminal", "arguments": json.dumps({"command": f"step {at}"})}
        made.append({"role": "assistant", "content": None, "tool_calls": [{"id": f"c{at}", "function": call}]})
        made.append({"role": "tool", "tool_call_id": f"c{at}", "content": "".join(lines)[:chars]})
    return made


def one(kind: str, calls: int, chars: int) -> tuple[float, float]:
    """Seconds of CPU of the yardstick and of one pass, in this process."""
    session = messages(calls, chars)
    started = time.process_time()
    json.loads(json.dumps(session))
    yardstick = time.process_time() - started
    judge: Any = "lexical" if kind == "lexical" else Low(local=kind == "plain")
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        pruned = prune(session, judge=judge, store=folder)
        spent = time.process_time() - started
    if pruned.receipt.outcome != "compacted":
        raise SystemExit(f"the pass did not run: {pruned.receipt.summary()}")
    return yardstick, spent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=56)
    parser.add_argument("--chars", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{arguments.calls} calls of {arguments.chars:,} characters, median of {arguments.rounds} fresh processes")
    context = multiprocessing.get_context("spawn")
    for kind in ("plain", "described", "lexical"):
        rounds = []
        for _ in range(arguments.rounds):
            with context.Pool(1) as pool:
                rounds.append(pool.apply(one, (kind, arguments.calls, arguments.chars)))
        yardstick = statistics.median(base for base, _ in rounds)
        spent = statistics.median(cost for _, cost in rounds)
        print(f"{kind:10} {1_000 * spent:7.0f} ms   {spent / yardstick:6.1f} × one JSON round trip")


if __name__ == "__main__":
    main()
