"""Why something was cut and what it cost, without a word of the conversation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from builders import ByOrdinal, Failing, Fixed, Message, Partial, assistant, pair, session, system, text, user
from pydantic import ValidationError

from hermes_jev import Pruned, Settings, prune
from hermes_jev.job import Job
from hermes_jev.notice import read
from hermes_jev.policy import Cuts
from hermes_jev.prune import run
from hermes_jev.questions import VERSION
from hermes_jev.receipts import DecisionRecord, Receipt
from hermes_jev.store import Store
from hermes_jev.transcript import Transcript

ALL = Settings(pin_last_calls=0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def stored(store: Store) -> list[Receipt]:
    """All receipts of a store, newest first."""
    return [Receipt.model_validate_json(row.body) for row in store.receipts()]


def test_one_receipt_a_pass_and_it_is_the_one_that_was_given(store: Store) -> None:
    first = prune(session(5), ByOrdinal({1: (0.9, 0.1), 2: (0.1, 0.1)}, default=(0.2, 0.8)), store, ALL)
    second = prune(first.messages, Failing(), store, ALL)

    assert stored(store) == [second.receipt, first.receipt]


def test_a_receipt_counts_what_happened(store: Store) -> None:
    messages = session(5)

    pruned = prune(messages, ByOrdinal({1: (0.9, 0.1), 2: (0.1, 0.1)}, default=(0.2, 0.8)), store, ALL)

    receipt = pruned.receipt
    assert (receipt.count("truncate"), receipt.count("remove"), receipt.count("keep")) == (1, 1, 3)
    assert (receipt.messages, receipt.calls, receipt.requests, receipt.failed_requests) == (len(messages), 5, 1, 0)
    assert (receipt.judge, receipt.model, receipt.question_version) == ("scripted", "v1", VERSION)
    assert (receipt.call_threshold, receipt.output_threshold, receipt.window) == (0.5, 0.5, None)
    sizes = [sum(len(m["content"]) for m in half if m["role"] == "tool") for half in (messages, pruned.messages)]
    assert [receipt.chars_before, receipt.chars_after] == sizes
    assert sum(r.chars_before - r.chars_after for r in receipt.decisions) == sizes[0] - sizes[1]


def test_the_tokens_of_a_receipt_are_those_of_the_lists(store: Store) -> None:
    messages = session(12)

    pruned = prune(messages, Fixed(), store, ALL)

    assert pruned.receipt.tokens_before == Transcript.parse(messages).tokens
    assert pruned.receipt.tokens_after == pytest.approx(Transcript.parse(pruned.messages).tokens, rel=0.02)


def test_a_decision_names_its_content_its_pointer_and_its_reason(store: Store) -> None:
    messages = session(2)
    pruned = prune(messages, ByOrdinal({1: (0.9, 0.1), 2: (0.1, 0.9)}), store, ALL)

    notice = read(pruned.messages[2]["content"])
    assert notice is not None
    exchange = Transcript.parse(messages).exchanges[0]
    assert pruned.receipt.decisions[0] == DecisionRecord(
        ordinal=1,
        tool="terminal",
        content=Cuts(Settings()).content(exchange) or "",
        action="truncate",
        reason="output not needed",
        pointer=notice.id,
        chars_before=4_000,
        chars_after=len(pruned.messages[2]["content"]),
        call=0.9,
        output=0.1,
        stage="head_tail",
        judge="scripted",
        cached=False,
    )
    assert pruned.receipt.decisions[1].pointer == ""


def test_a_second_pass_says_that_its_verdicts_were_known(store: Store) -> None:
    judge = ByOrdinal({1: (0.1, 0.1)}, default=(0.9, 0.9))
    first = prune(session(5), judge, store, ALL)

    second = prune(first.messages, judge, store, ALL)

    assert {record.cached for record in second.receipt.decisions} == {True}
    assert (second.receipt.requests, second.receipt.cost) == (0, 0.0)


def test_receipts_can_be_switched_off(store: Store) -> None:
    pruned = prune(session(5), Fixed(), store, Settings(pin_last_calls=0, receipts=False))

    assert pruned.receipt.outcome == "compacted"
    assert store.receipts() == []


def test_the_session_of_a_receipt(store: Store) -> None:
    run(session(5), Job(ALL, Fixed(), store, session="s1"))

    assert len(store.receipts("s1")) == 1
    assert store.receipts("s2") == []


WORDS = re.compile(r"[A-Za-z]{4,}|\d{5,}")


def spoken(messages: list[Message]) -> set[str]:
    """Words that only the conversation has."""
    return set(WORDS.findall(json.dumps(messages)))


def secretive() -> list[Message]:
    tag = "zanzibar"
    messages = [system(f"{tag}system quokka"), user(f"{tag}user password=hunter2zebra")]
    for number in range(14):
        arguments = {"command": f"{tag}arguments{number}", "token": "hunter2zebra"}
        messages += pair(
            number, f"{tag}result " + text(3_000, f"{tag}{number}"), arguments=arguments, words=f"{tag}said"
        )
    return [*messages, assistant(f"{tag}done")]


@pytest.mark.parametrize(
    ("judge", "window"),
    [
        (Fixed(0.9, 0.1), None),
        (Fixed(), 12_000),
        (Failing(ValueError("zanzibar quokka hunter2zebra")), None),
        (Failing(ValueError("zanzibar quokka hunter2zebra")), 9_000),
        (Partial([2]), None),
        ("lexical", 9_000),
    ],
    ids=["shortened", "flat", "down", "down and urgent", "partial", "lexical"],
)
def test_no_word_of_the_conversation_is_in_a_receipt(
    store: Store, judge: Any, window: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    messages = secretive()
    with caplog.at_level("DEBUG"):
        pruned = prune(messages, judge, store, ALL, task="quokka task", context_length=window)

    (row,) = store.receipts()
    for told in (row.body, pruned.receipt.summary(), caplog.text, " ".join(d.reason for d in pruned.decisions)):
        assert "zanzibar" not in told
        assert "quokka" not in told
        assert "hunter2zebra" not in told


def test_the_words_of_a_receipt_are_few_and_known(store: Store) -> None:
    prune(secretive(), Fixed(0.9, 0.1), store, ALL)
    body = json.loads(store.receipts()[0].body)

    texts = {value for record in body["decisions"] for name, value in record.items() if isinstance(value, str)}
    plain = {value for value in texts if not re.fullmatch(r"[0-9a-f]{64}|r-[a-z2-7]{10}|", value)}
    assert plain == {"terminal", "truncate", "output not needed", "head_tail", "scripted"}


def test_the_goal_is_there_as_a_hash_only(store: Store) -> None:
    first = prune(session(5, goal="find the bug"), Fixed(), store, ALL)
    other = prune(session(5, goal="find the leak"), Fixed(), store, ALL)

    assert re.fullmatch(r"[0-9a-f]{16}", first.receipt.goal_hash)
    assert first.receipt.goal_hash != other.receipt.goal_hash


def test_a_pass_that_asked_nobody_names_no_judge(store: Store) -> None:
    receipt = prune([user("hi")], Fixed(), store, ALL).receipt

    assert (receipt.judge, receipt.question_version, receipt.goal_hash) == ("", "", "")
    assert receipt.why == "nothing but recent, small or protected results"


@pytest.mark.parametrize(
    ("receipt", "expected"),
    [
        (
            Receipt(outcome="nothing_to_prune", why="the window has room"),
            "nothing_to_prune: 0 shortened, 0 removed, 0 left (the window has room)",
        ),
        (
            Receipt(outcome="compacted", judge="jev", requests=2, chars_before=9_000, chars_after=1_200, partial=True),
            "compacted: 0 shortened, 0 removed, 0 left; 9,000 → 1,200 characters; judge jev, 2 requests; partial",
        ),
        (
            Receipt(outcome="judge_failed", problems=("jev: auth", "x")),
            "judge_failed: 0 shortened, 0 removed, 0 left (jev: auth; x)",
        ),
    ],
)
def test_a_summary_is_one_line(receipt: Receipt, expected: str) -> None:
    assert receipt.summary() == expected


def test_a_receipt_is_closed_and_frozen() -> None:
    with pytest.raises(ValidationError):
        Receipt.model_validate({"outcome": "compacted", "text": "words"})
    with pytest.raises(ValidationError):
        Receipt(outcome="compacted").outcome = "error"


def test_a_pruned_result_reads_like_its_documentation(store: Store) -> None:
    pruned = prune(session(5), Fixed(), store, ALL)

    assert isinstance(pruned, Pruned)
    assert Pruned._fields[:3] == ("messages", "decisions", "receipt")


def test_a_key_in_the_name_of_a_tool_stays_out_of_the_receipt(store: Store) -> None:
    key = "ghp_" + "Ab3dEf6hIj9lMn2pQr5tUv8xAb3dEf6hIj9l"
    messages = [user("go"), *pair(1, text(4_000), tool=f"run {key} " + "x" * 500), assistant("done")]

    pruned = prune(messages, Fixed(), store, Settings(pin_last_calls=0))

    assert pruned.receipt.decisions[0].action == "remove"
    assert key not in pruned.receipt.to_json()
    assert len(pruned.receipt.decisions[0].tool) <= 100
