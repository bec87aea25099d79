"""The demo: the main job on a bundled real session, offline."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from .errors import InputError
from .notice import read
from .policy import Decision
from .prune import prune
from .restore import restore
from .store import Store
from .transcript import Transcript

Write = Callable[[str], Any]


def session() -> list[dict[str, Any]]:
    """The bundled session: recorded from a real Hermes run with real tool output."""
    text = (files(__package__) / "data" / "demo_session.json").read_text(encoding="utf-8")
    messages: list[dict[str, Any]] = json.loads(text)["messages"]
    return messages


def run(folder: Path | None, write: Write) -> int:
    """Prune the bundled session with the lexical judge and show what happened. Returns an exit code."""
    if folder is not None:
        return _show(Store(folder), write)
    with tempfile.TemporaryDirectory(prefix="hermes_jev_demo_") as scratch:
        return _show(Store(Path(scratch)), write)


def _show(store: Store, write: Write) -> int:
    messages = session()
    before = Transcript.parse(messages)
    pruned = prune(messages, judge="lexical", store=store)
    after = Transcript.parse(pruned.messages)
    receipt = pruned.receipt
    size = sum(exchange.size for exchange in before.completed)
    left = sum(exchange.size for exchange in after.completed)
    write(f"a recorded Hermes session: {len(messages)} messages, {len(before.completed)} tool calls\n\n")
    write(f"{'':24}{'before':>12}{'after':>12}\n")
    write(f"{'tool output, characters':24}{size:>12,}{left:>12,}\n")
    write(f"{'prompt, tokens (est.)':24}{before.tokens:>12,}{after.tokens:>12,}\n\n")
    write(f"judge: {receipt.judge}, {receipt.latency_ms} ms, {receipt.requests} requests, nothing left this machine\n")
    actions = Counter(decision.action for decision in pruned.decisions)
    write(f"{actions['keep']} kept, {actions['truncate']} shortened, {actions['remove']} removed; ")
    write(f"pinned: {', '.join(f'{count} {pin}' for pin, count in sorted(receipt.pinned.items()))}\n\n")
    for decision in pruned.decisions:
        write(_row(decision))
    words = sum(1 for message in messages if message["role"] != "tool")
    same = all(old is new for old, new in zip(messages, pruned.messages, strict=True) if old["role"] != "tool")
    write(f"\nuser, assistant and system messages unchanged: {words if same else 'NO'}\n")
    return _read_back(messages, pruned.messages, store, write) if same else 1


def _row(decision: Decision) -> str:
    exchange, verdict = decision.exchange, decision.verdict
    output = f"{verdict.output:.2f}" if verdict and verdict.output is not None else "-"
    call = f"{verdict.call:.2f}" if verdict and verdict.call is not None else "-"
    asked = " ".join(exchange.arguments.split())[:40]
    return f"  {decision.action:8} {exchange.size:>7,}  call {call}  output {output}  {exchange.tool} {asked}\n"


def _read_back(messages: list[Any], shorter: list[Any], store: Store, write: Write) -> int:
    cut = [at for at, (old, new) in enumerate(zip(messages, shorter, strict=True)) if old is not new]
    if not cut:
        raise InputError("the bundled session has nothing to cut")
    at = max(cut, key=lambda place: len(messages[place]["content"]))
    found = read(shorter[at]["content"])
    pointer = found.id if found else ""
    original = store.get(pointer, None).result
    write(f"\nwhat now stands in message {at + 1}:\n{shorter[at]['content']}\n\n")
    exact = original == messages[at]["content"]
    write(f"expand {pointer}: {len(original):,} characters, {'byte for byte the original' if exact else 'NOT EQUAL'}\n")
    whole = restore(shorter, store) == messages
    write(f"restore: {'the whole session is back as it was' if whole else 'NOT EQUAL'}\n")
    return 0 if exact and whole else 1
