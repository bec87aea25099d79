"""Deciding again from receipts: what changes, what is estimated, and what is said to be missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import ByOrdinal, session, user
from turn_judges import FLAT, Tabled, level

from hermes_jev.cli import main
from hermes_jev.compact import compact
from hermes_jev.errors import InputError
from hermes_jev.prune import prune
from hermes_jev.receipts import Receipt
from hermes_jev.replay import decide_again, read_receipts, scores_of, spend_again
from hermes_jev.settings import Settings
from hermes_jev.store import Store
from hermes_jev.turn_receipts import TurnReceipt

ALL = Settings(pin_last_calls=0)


def pruned(store: Store, outputs: dict[int, float], settings: Settings = ALL) -> Receipt:
    """A pass over six calls, of which these outputs (from 1) got these probabilities; the others no answer."""
    judge = ByOrdinal({at: (1.0, worth) for at, worth in outputs.items()}, (None, None))
    return prune(session(6), judge, store, settings).receipt


def test_another_threshold_moves_what_lies_between(tmp_path: Path) -> None:
    receipt = pruned(Store(tmp_path), {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.6, 5: 0.7, 6: 0.9})
    same = decide_again(receipt, 0.5)
    assert (same.kept, same.shortened, same.changed, same.estimated) == (3, 3, 0, 0)
    assert same.size_after == receipt.chars_after
    lower = decide_again(receipt, 0.25)
    assert (lower.kept, lower.shortened, lower.changed) == (4, 2, 1)
    assert lower.size_after > same.size_after
    higher = decide_again(receipt, 0.65)
    assert (higher.kept, higher.shortened, higher.estimated) == (2, 4, 1)
    really = pruned(
        Store(tmp_path / "other"),
        {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.6, 5: 0.7, 6: 0.9},
        Settings(pin_last_calls=0, output_threshold=0.65),
    )
    assert abs(higher.size_after - really.chars_after) < 200
    assert receipt.requests == 0 or receipt.cost >= 0


def test_what_has_no_score_keeps_its_fate_and_is_counted(tmp_path: Path) -> None:
    receipt = pruned(Store(tmp_path), {1: 0.1, 2: 0.2})
    again = decide_again(receipt, 0.9)
    assert again.missing == 4
    assert again.kept == 4


def run_receipt(tmp_path: Path, target: int = 900) -> TurnReceipt:
    file = tmp_path / "runs.jsonl"
    answers: dict[str, Any] = {f"T{at}": level(at % 5) for at in range(16)} | {"T0": FLAT}
    messages = [user(f"{at:03d} ".ljust(100, "x")) for at in range(20)]
    compact(messages, Tabled(answers.get), target, settings={}, receipt_path=str(file), summary_bytes=0)
    (receipt,) = read_receipts(str(file))
    assert isinstance(receipt, TurnReceipt)
    return receipt


def test_another_budget_keeps_what_a_run_with_it_keeps(tmp_path: Path) -> None:
    receipt = run_receipt(tmp_path)
    same = spend_again(receipt)
    assert (same.changed, same.size_after) == (0, 900)
    for target in (400, 700, 1_300, 5_000):
        (tmp_path / str(target)).mkdir()
        other = run_receipt(tmp_path / str(target), target) if target < 2_000 else None
        again = spend_again(receipt, target)
        assert again.size_after <= max(target, 400)
        if other is not None:
            assert again.kept == sum(1 for record in other.decisions if record.action == "keep")


def test_another_gate_lets_go_of_what_was_doubt(tmp_path: Path) -> None:
    """T0 is a flat answer: doubt raised it over what is sure to be medium."""
    receipt = run_receipt(tmp_path, 1_200)
    assert receipt.decisions[0].action == "keep"
    assert spend_again(receipt, None, 0.0).changed > 0


def test_scores_are_the_newest_by_content(tmp_path: Path) -> None:
    first = pruned(Store(tmp_path / "a"), {1: 0.1})
    second = pruned(Store(tmp_path / "b"), {1: 0.2, 2: 0.3})
    (judged,) = [decision for decision in first.decisions if decision.output is not None]
    found = scores_of([first, second, run_receipt(tmp_path)])
    assert found[judged.content] == {"call": 1.0, "output": 0.2}
    assert sum(1 for score in found.values() if "raw" in score) == 16


def test_receipts_of_a_store_and_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path / "store")
    receipt = pruned(store, dict.fromkeys(range(1, 7), 0.1))
    assert read_receipts(str(tmp_path / "store")) == [receipt]
    assert main(["receipts", str(tmp_path / "store"), "--lines"]) == 0
    file = tmp_path / "copy.jsonl"
    file.write_text(capsys.readouterr().out)
    assert read_receipts(str(file)) == [receipt]
    assert main(["receipts", str(file), "--json"]) == 0
    sums = json.loads(capsys.readouterr().out)
    assert (sums["passes"], sums["shortened"]) == (1, 6)
    assert sums["characters_freed"] == receipt.chars_before - receipt.chars_after
    assert main(["receipts", str(file)]) == 0
    assert "prune    compacted: 6 shortened" in capsys.readouterr().out


def test_jev_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pruned(Store(tmp_path / "store"), {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.6})
    assert main(["replay", str(tmp_path / "store"), "--threshold", "0.25"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("prune ")
    assert "1 decided otherwise" in shown.out
    assert "2 decisions have no score on record" in shown.err
    assert main(["replay", str(tmp_path / "store"), "--target-bytes", "10"]) == 1
    run_receipt(tmp_path)
    assert main(["replay", str(tmp_path / "runs.jsonl"), "--target-bytes", "700", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["way"], row["size_after"]) == ("compact", 700)


@pytest.mark.parametrize("text", ["{", '{"way": "compact"}', '{"outcome": "odd"}', "[1]", "5"])
def test_a_line_that_is_no_receipt_is_named(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text("\n" + text + "\n")
    with pytest.raises(InputError, match="line 2"):
        read_receipts(str(file))
    assert main(["receipts", str(file)]) == 2
    assert main(["receipts", str(tmp_path / "none")]) == 2
    with pytest.raises(SystemExit):
        main(["replay", str(file), "--threshold", "2"])
    capsys.readouterr()


# ------------------------------------------------------------------------------------------- --scores


def saved(tmp_path: Path, messages: list[Any], name: str = "session.json") -> str:
    file = tmp_path / name
    file.write_text(json.dumps(messages), encoding="utf-8")
    return str(file)


def receipts_of(store: Store, tmp_path: Path) -> str:
    file = tmp_path / "receipts.jsonl"
    file.write_text("".join(row.body + "\n" for row in store.receipts()), encoding="utf-8")
    return str(file)


def test_recorded_scores_decide_as_the_judge_did_also_after_a_shift(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, worth = Store(tmp_path / "store"), {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.6, 5: 0.7, 6: 0.9}
    judge = ByOrdinal({at: (1.0, value) for at, value in worth.items()}, (None, None))
    then = prune(session(6), judge, store, ALL)
    path = receipts_of(store, tmp_path)
    shifted = [user("Something came before."), *session(6)]
    again = ["--scores", path, "--store", str(tmp_path / "other"), "--set", "pin_last_calls=0", "--stats", "json"]
    assert main(["prune", saved(tmp_path, shifted), *again]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == [shifted[0], *then.messages]
    receipt = json.loads(err.splitlines()[0])
    assert (receipt["judge"], receipt["requests"], receipt["cost"]) == ("recorded", 0, 0)
    assert main(["prune", saved(tmp_path, shifted), *again, "--set", "output_threshold=0.25"]) == 0
    lower = json.loads(capsys.readouterr().out)
    assert sum(new != old for new, old in zip(lower, shifted, strict=True)) == 2


def test_a_score_that_is_missing_is_said_and_nothing_goes_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "store")
    pruned(store, {1: 0.1, 2: 0.2, 3: 0.3})
    path, messages = receipts_of(store, tmp_path), session(9)
    arguments = ["--scores", path, "--store", str(tmp_path / "other"), "--set", "pin_last_calls=0"]
    assert main(["prune", saved(tmp_path, messages), *arguments]) == 0
    out, err = capsys.readouterr()
    assert "6 have no score on record" in err
    after = json.loads(out)
    assert sum(new != old for new, old in zip(after, messages, strict=True)) == 3
    strictly = ["--scores", path, "--store", str(tmp_path / "third"), "--set", "pin_last_calls=0", "--strict"]
    assert main(["prune", saved(tmp_path, messages), *strictly]) == 3


def test_another_record_is_not_answered_from_the_verdicts_of_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = saved(tmp_path, session(6))
    results = []
    for number, value in enumerate((0.1, 0.9)):
        store = Store(tmp_path / f"store{number}")
        pruned(store, dict.fromkeys(range(1, 7), value))
        arguments = ["--scores", receipts_of(store, tmp_path), "--store", str(tmp_path / "one")]
        assert main(["prune", source, *arguments, "--set", "pin_last_calls=0"]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0] != session(6)
    assert results[1] == session(6)


@pytest.mark.parametrize("source", ["receipt", "score --json"])
def test_a_budget_is_spent_again_by_recorded_scores(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = [user(f"{at:03d} ".ljust(100, "x")) for at in range(20)]
    answers: dict[str, Any] = {f"T{at + 2}": level(at % 5) for at in range(16)} | {"T2": FLAT}
    shifted = [user("new one".ljust(60)), user("new two".ljust(60)), *messages]
    want = compact(shifted, Tabled(answers.get), 900, settings={}, summary_bytes=0)
    old = {f"T{at}": answers[f"T{at + 2}"] for at in range(16)}
    file = tmp_path / "scores.jsonl"
    done = compact(messages, Tabled(old.get), 900, settings={}, receipt_path=str(file))
    if source != "receipt":
        file.write_text("".join(record.model_dump_json() + "\n" for record in done.receipts), encoding="utf-8")
    arguments = ["--scores", str(file), "--target-bytes", "900", "--summary-bytes", "0"]
    assert main(["compact", saved(tmp_path, shifted), *arguments]) == 0
    out, err = capsys.readouterr()
    assert "2 have no score on record" in err
    kept = json.loads(out)
    assert [message for message in kept if message in messages] == [m for m in want.messages if m in messages]


@pytest.mark.parametrize("content", ["", "not json", '{"way": "compact"}', None])
def test_a_record_that_cannot_be_used_is_refused(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scores.jsonl"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    assert main(["compact", saved(tmp_path, session(3)), "--scores", str(file)]) == 2
    assert str(file) in capsys.readouterr().err
