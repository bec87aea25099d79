"""The demo: the main job on a bundled real session, offline."""

from __future__ import annotations

import json
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from .errors import InputError
from .notice import read
from .policy import Action, Decision
from .prune import Pruned, prune
from .restore import restore
from .store import Store
from .transcript import Transcript

Write = Callable[[str], Any]
WIDTH = 79


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
    size = sum(exchange.size for exchange in before.completed)
    left = sum(exchange.size for exchange in after.completed)
    write(f"A recorded Hermes session: {len(messages)} messages, {len(before.completed)} tool calls.\n\n")
    write(f"{'':34}{'before':>12}{'after':>12}\n")
    write(f"{'characters of tool output':34}{size:>12,}{left:>12,}\n")
    write(f"{'tokens of the prompt, estimated':34}{before.tokens:>12,}{after.tokens:>12,}\n\n")
    _decisions(pruned, write)
    words = sum(1 for message in messages if message["role"] != "tool")
    same = all(old is new for old, new in zip(messages, pruned.messages, strict=True) if old["role"] != "tool")
    write(f"\nMessages of user, assistant and system that changed: {0 if same else 'SOME'} of {words}.\n")
    exact = _read_back(messages, pruned.messages, store, write)
    write("\nNext: `jev prune FILE` for a transcript of your own, or the README for Hermes.\n")
    return 0 if same and exact else 1


_DONE: Mapping[Action, str] = {"keep": "kept", "truncate": "shortened", "remove": "removed"}


def _decisions(pruned: Pruned, write: Write) -> None:
    receipt = pruned.receipt
    pinned = sum(receipt.pinned.values())
    write(f"{pinned} results were not judged: small or recent. About each of the others the\n")
    write("lexical judge, which runs in this process and sends nothing, says how likely it\n")
    write(f"is that the call still matters and that its output is needed ({receipt.latency_ms} ms in all):\n\n")
    write(f"  {'':10}{'characters':>10}  {'call':>4}  {'output':>6}  what was called\n")
    for decision in pruned.decisions:
        write(_row(decision))
    counts = Counter(decision.action for decision in pruned.decisions)
    write("  " + ", ".join(f"{counts[action]} {word}" for action, word in _DONE.items()) + "\n")


def _row(decision: Decision) -> str:
    exchange, verdict = decision.exchange, decision.verdict
    call = f"{verdict.call:.2f}" if verdict and verdict.call is not None else "-"
    output = f"{verdict.output:.2f}" if verdict and verdict.output is not None else "-"
    asked = f"{exchange.tool} {' '.join(exchange.arguments.split())}"
    return f"  {_DONE[decision.action]:10}{exchange.size:>10,}  {call:>4}  {output:>6}  {asked[:38]}\n"


def _read_back(messages: list[Any], shorter: list[Any], store: Store, write: Write) -> bool:
    cut = [at for at, (old, new) in enumerate(zip(messages, shorter, strict=True)) if old is not new]
    if not cut:
        raise InputError("the bundled session has nothing to cut")
    at = max(cut, key=lambda place: len(messages[place]["content"]))
    found = read(shorter[at]["content"])
    pointer = found.id if found else ""
    original = store.get(pointer, None).result
    write(f"\nWhat now stands in message {at + 1}:\n\n")
    for line in shorter[at]["content"].split("\n"):
        write(textwrap.fill(line, WIDTH, initial_indent="  | ", subsequent_indent="  | ") + "\n")
    exact = bool(original == messages[at]["content"])
    write(f"\nexpand {pointer}: {len(original):,} characters, ")
    write(f"{'byte for byte the original' if exact else 'NOT THE ORIGINAL'}.\n")
    whole = restore(shorter, store) == messages
    write(f"restore: {'the whole session is back as it was' if whole else 'NOT THE SAME'}.\n")
    return exact and whole
