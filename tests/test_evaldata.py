"""The promises of a pass on the public transcripts: nothing lost, everything back, and how much is cut.

`-s` shows a table of the characters removed beside the bound: what the pins let go, each result down to a notice.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from builders import Fixed

from hermes_jev import Pruned, Settings, prune, restore
from hermes_jev import notice as notices
from hermes_jev.facts import GROWTH
from hermes_jev.pieces import LONGEST
from hermes_jev.pins import pins
from hermes_jev.policy import Action, Cuts
from hermes_jev.signals import signal_of, template
from hermes_jev.store import Store
from hermes_jev.transcript import Exchange, Transcript
from hermes_jev.wrapping import unwrap

FOLDER = Path(__file__).resolve().parent.parent.parent / "shared" / "evaldata"
LEAST_SHARE = 0.90


def _loader() -> ModuleType:
    """The kit's own loader, which honours HERMES_JEV_EVALDATA."""
    spec = importlib.util.spec_from_file_location("evaldata_loader", FOLDER / "loader.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


@pytest.fixture(scope="module")
def sessions() -> list[dict[str, Any]]:
    if not (FOLDER / "loader.py").is_file():
        message = f"no evaluation data in {FOLDER.name}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    found = list(_loader().load())
    assert found, "the evaluation data holds no transcript"
    return found


class Row(NamedTuple):
    """Characters of one transcript: of all its tool results, removed, and the most that the pins let go."""

    kind: str
    results: int
    removed: int
    bound: int


def size(content: Any) -> int:
    return len(content) if isinstance(content, str) else 0


def removed_chars(before: list[Any], after: list[Any]) -> int:
    return sum(size(old.get("content")) - size(new.get("content")) for old, new in zip(before, after, strict=True))


def most_to_remove(transcript: Transcript) -> int:
    """All results that no pin holds, each down to a notice."""
    held = pins(transcript, Settings())
    free: Iterator[Exchange] = (exchange for exchange in transcript.completed if exchange.ordinal not in held)
    return sum(exchange.size - len(notices.removed(exchange, "r-" + "a" * 10)) for exchange in free)


def check(before: list[Any], pruned: Pruned, store: Store) -> None:
    """Words untouched, pairs whole, every result back."""
    after = pruned.messages
    assert pruned.receipt.outcome in ("compacted", "nothing_to_prune", "capacity")
    for old, new in zip(before, after, strict=True):
        assert old is new or (old["role"] == "tool" and {**old, "content": None} == {**new, "content": None})
        assert size(new.get("content")) <= size(old.get("content"))
    shape = [(e.state, e.tool, e.arguments, e.result_at) for e in Transcript.parse(before).exchanges]
    assert [(e.state, e.tool, e.arguments, e.result_at) for e in Transcript.parse(after).exchanges] == shape
    assert restore(after, store) == before


def table(rows: list[Row]) -> str:
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in rows:
        for name in (row.kind, "all"):
            for column, value in enumerate((1, *row[1:])):
                totals[name][column] += value
    lines = [
        f"{'kind':20}{'sessions':>9}{'tool output':>14}{'removed':>12}{'bound':>12}{'of bound':>10}{'of output':>10}"
    ]
    for name, (count, results, removed, bound) in sorted(totals.items(), key=lambda item: (item[0] == "all", item[0])):
        shares = f"{removed / max(1, bound):>10.1%}{removed / max(1, results):>10.1%}"
        lines.append(f"{name:20}{count:>9}{results:>14,}{removed:>12,}{bound:>12,}{shares}")
    return "\n".join(lines)


def test_a_judge_that_needs_nothing_leaves_little(sessions: list[dict[str, Any]], tmp_path: Path) -> None:
    store, rows = Store(tmp_path / "store"), []
    for session in sessions:
        messages = session["messages"]
        transcript = Transcript.parse(messages)
        judge = Fixed(local=True)

        pruned = prune(messages, judge, store)
        check(messages, pruned, store)
        asked = len(judge.asked)
        again = prune(pruned.messages, judge, store)
        assert again.messages == pruned.messages
        assert len(judge.asked) == asked
        assert again.receipt.requests == 0

        results = sum(exchange.size for exchange in transcript.completed)
        rows.append(Row(session["kind"], results, removed_chars(messages, pruned.messages), most_to_remove(transcript)))

    print("\n" + table(rows))
    assert sum(row.removed for row in rows) >= LEAST_SHARE * sum(row.bound for row in rows)


@pytest.mark.parametrize("share", [0.8, 1.15], ids=["overflow", "urgent"])
def test_the_embedded_judge_in_a_window_that_is_full(
    sessions: list[dict[str, Any]], tmp_path: Path, share: float
) -> None:
    """At 0.8 of its tokens a transcript does not fit, at 1.15 it fills 87 % of the window."""
    store, changed = Store(tmp_path / "store"), 0
    for session in sessions[:: 2 if share > 1 else 3]:
        messages = session["messages"]
        window = max(1, round(Transcript.parse(messages).tokens * share))

        pruned = prune(messages, "lexical", store, context_length=window)
        check(messages, pruned, store)
        assert pruned.receipt.judge in ("lexical", "")
        if share > 1:
            again = prune(pruned.messages, "lexical", store, context_length=window)
            assert again.messages == pruned.messages
            assert again.receipt.requests == 0
        changed += pruned.messages is not messages

    assert changed


def test_a_remote_judge_is_sent_what_fits(sessions: list[dict[str, Any]], tmp_path: Path) -> None:
    """The largest transcripts through redaction and fitting: what no rule settles is asked about once."""
    largest = sorted(sessions, key=lambda session: sum(size(m.get("content")) for m in session["messages"]))[-4:]
    for number, session in enumerate(largest):
        judge = Fixed(0.9, 0.1)
        pruned = prune(session["messages"], judge, tmp_path / str(number))

        assert len(set(judge.question_ids)) == len(judge.question_ids)
        answered = {decision.exchange.ordinal for decision in pruned.decisions if decision.verdict is not None}
        ruled = {d.exchange.ordinal for d in pruned.decisions if d.reason.startswith("rule:")}
        assert answered.isdisjoint(ruled)
        assert answered | ruled == {decision.exchange.ordinal for decision in pruned.decisions}


LEAST_TOLD = 0.95
POINTER = "r-" + "a" * 10
CUTS: tuple[Action, Action] = ("truncate", "remove")


def kinds_of_errors(payload: str) -> set[str]:
    """The distinct errors and failed tests of a text: numbers, quoted names and paths make no difference. Longer lines
    are shown in parts, and only their first part says that they are errors."""
    lines = (line for line in payload.split("\n") if len(line) <= LONGEST)
    return {template(line) for line in lines if signal_of(line) in ("error", "failed test")}


def test_errors_stay_visible_and_facts_stay_small(sessions: list[dict[str, Any]]) -> None:
    told, every, results = 0, 0, 0
    for session in sessions:
        if session["composed"]:
            continue
        transcript = Transcript.parse(session["messages"])
        cuts, bare, held = Cuts(Settings(), transcript), Cuts(Settings()), pins(transcript, Settings())
        for exchange in transcript.completed:
            if exchange.ordinal in held:
                continue
            errors = kinds_of_errors(unwrap(exchange.text).payload)
            for action in CUTS:
                left, without = cuts.render(exchange, action, POINTER), bare.render(exchange, action, POINTER)
                assert len(left) <= Settings().pin_max_chars
                assert notices.read(left) == notices.Notice(POINTER, True)
                told += len(errors & kinds_of_errors(left))
                every += len(errors)
                if not errors and not any(signal_of(line) for line in left.split("\n")):
                    assert len(left) - len(without) <= GROWTH * exchange.size + 20
            results += 1

    print(f"\n{results} results, {every // 2} distinct errors, still told: {told / every:.1%}")
    assert results > 200
    assert every > 100
    assert told >= LEAST_TOLD * every


def test_the_shipped_weights_of_the_line_picker_are_what_the_fit_prints() -> None:
    if not (FOLDER / "loader.py").is_file():
        assert os.environ.get("CI") != "true", "the evaluation kit is missing"
        pytest.skip("the evaluation kit is not here")
    script = Path(__file__).resolve().parent.parent / "benchmarks" / "fit_facts.py"
    run = subprocess.run(
        [sys.executable, str(script), "--kit", str(FOLDER), "--check"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
