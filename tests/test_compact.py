"""A transcript within a byte budget: the contract, and what holds for any list, any judge and any budget."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from builders import assistant, call, result, system, user
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turn_judges import FLAT, Tabled, Whole, level

import hermes_jev
from hermes_jev.compact import CompactOptions, acompact, compact
from hermes_jev.errors import ConfigError, InputError
from hermes_jev.judge import Answer, Silent

SECRET = "ghp_" + "a1B2c3D4" * 5


@pytest.fixture(autouse=True)
def no_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HERMES_JEV_RECEIPT_PATH", raising=False)


def scored(*places: int | None) -> Tabled:
    """Level by index."""
    return Tabled(lambda name: None if (at := places[int(name[1:])]) is None else level(at))


def sized(count: int, size: int = 100) -> list[dict[str, Any]]:
    return [user(f"{index:03d} ".ljust(size, "x")) for index in range(count)]


def test_the_defaults_are_the_contracts() -> None:
    assert CompactOptions().model_dump() == {
        "target_bytes": 262_144,
        "keep_recent": 4,
        "batch_size": 8,
        "min_confidence": 0.35,
        "summary_bytes": 1024,
        "summary_role": "system",
        "state_message_bytes": 2000,
        "pin_patterns": (),
        "enable_pinning": True,
        "pin_flags": "i",
        "endpoint": None,
        "api_key": None,
        "timeout_s": 15.0,
        "levels": ("none", "low", "medium", "high", "critical"),
        "price_per_million_tokens": 0.042,
        "receipt_path": None,
        "task": None,
        "run_id": None,
    }


def test_under_the_budget_the_very_list_comes_back_and_nobody_is_asked(tmp_path: Path) -> None:
    judge = scored()
    messages = sized(6)
    done = compact(messages, judge, 600, settings={}, receipt_path=str(tmp_path / "r.jsonl"))
    assert done.messages is messages
    assert (done.receipts, judge.sent, list(tmp_path.iterdir())) == ((), [], [])
    assert (done.stats["bytes_before"], done.stats["bytes_after"], done.stats["dropped"]) == (600, 600, 0)


def test_the_most_valuable_stay_then_the_newer_and_a_digest_stands_where_the_first_one_left() -> None:
    """A golden case."""
    long = {place: user(f"{place:03d} short\n".ljust(1_000, "x")) for place in (1, 3, 5, 7, 8)}
    short = {place: user(f"{place:03d} ".ljust(100, "y")) for place in (2, 4, 6, 9, 10)}
    messages = [system("s" * 100), *(found for _, found in sorted({**long, **short}.items()))]
    judge = scored(None, 0, 3, 0, 3, 1, 4, 0, 0, 0, 0)
    done = compact(messages, judge, 1_100, keep_recent=2, settings={}, run_id="r1")
    # 500 bytes are left once the most valuable are in; the digest may take a quarter of them.
    made = {
        "role": "system",
        "content": "[5 messages were left out; lines from them, the most valuable first]\n"
        "user: 005 short\nuser: 008 short\nuser: 007 short",
    }
    assert done.messages == [messages[0], made, *(short[place] for place in (2, 4, 6, 9, 10))]
    assert done.stats == {
        "run_id": "r1",
        "messages_before": 11,
        "messages_after": 7,
        "bytes_before": 5_600,
        "bytes_after": 716,
        "target_bytes": 1_100,
        "kept": 6,
        "dropped": 5,
        "protected": 3,
        "pinned": 0,
        "scored": 8,
        "unscored": 0,
        "digest_bytes": 116,
        "over_budget_bytes": 0,
        "degraded": False,
        "judge": "jev",
        "model": "tabled-1",
        "requests": 1,
        "failed_requests": 0,
        "unsent": 0,
        "errors": [],
        "input_tokens": 1_000,
        "cost_usd": 0.000042,
        "latency_ms": done.stats["latency_ms"],
        "receipt_error": "",
    }
    assert [(record.index, record.value, record.reason, record.action) for record in done.receipts][:4] == [
        (0, None, "system", "keep"),
        (1, 0.0, "value", "drop"),
        (2, 0.75, "value", "keep"),
        (3, 0.0, "value", "drop"),
    ]


def test_survivors_are_the_very_objects() -> None:
    messages = [user(f"{index:03d}\n".ljust(400, "x")) for index in range(30)]
    done = compact(messages, Tabled(lambda name: level(2)), 4_390, settings={})
    originals = {id(message) for message in messages}
    assert [id(message) in originals for message in done.messages].count(False) == 1
    assert done.stats["dropped"] == 30 - (len(done.messages) - 1)


def test_equal_values_go_by_recency() -> None:
    messages = sized(20)
    done = compact(messages, Tabled(lambda name: level(2)), 1_000, summary_bytes=0, settings={})
    assert done.messages == messages[10:]


def test_eight_messages_a_request_one_score_each_with_sentences_for_the_levels() -> None:
    judge = Tabled(lambda name: level(2))
    compact(sized(24), judge, 500, settings={})
    assert [len(request.questions) for request in judge.sent] == [8, 8, 4]
    for question in judge.questions:
        assert question.kind == "score"
        assert list(question.criteria) == ["none", "low", "medium", "high", "critical"]
        assert all(len(text) > 40 for text in question.criteria.values())
    state = judge.sent[0].state
    assert isinstance(state, dict)
    assert state["task"].startswith("Continue the work")


def test_two_thousand_bytes_of_a_message_are_seen() -> None:
    judge = Tabled(lambda name: level(2))
    compact([user("é" * 5_000), user("a" * 9_000), *sized(4)], judge, 500, settings={})
    assert [len(item["text"].encode()) <= 2_000 + 8 for item in judge.turns] == [True, True]
    assert all(len(item["text"].encode()) > 900 for item in judge.turns)


def test_doubt_leans_to_keeping_but_stays_below_what_is_critical() -> None:
    """A flat answer counts 0.75: above a sure "medium", below a sure "critical"."""
    messages = sized(6)
    answers = {"T0": level(4), "T1": FLAT, "T2": level(2), "T3": level(3)}
    for room, left in ((100, [0]), (200, [0, 3]), (300, [0, 1, 3]), (400, [0, 1, 2, 3])):
        judge = Tabled(answers.get)
        done = compact(messages, judge, 200 + room, keep_recent=2, summary_bytes=0, settings={})
        kept = [messages.index(message) for message in done.messages]
        if room == 200:
            # A sure "high" is worth 0.75 as well; the newer one is kept.
            assert kept == [0, 3, 4, 5]
        assert kept == [*left, 4, 5]
    record = compact(messages, Tabled(answers.get), 400, keep_recent=2, settings={}).receipts[1]
    assert (record.value, record.raw, record.confidence) == (0.75, 0.5, 0.0)


def test_a_call_and_its_results_live_or_die_together() -> None:
    messages = [
        user("u" * 100),
        assistant("a" * 40, call("c1"), call("c2")),
        result("c1", "r" * 500),
        user("between" * 10),
        result("c2", "q" * 500),
        *sized(4),
    ]
    for worth in range(5):
        judge = Tabled(lambda name, worth=worth: level(worth if name == "T2" else 1))
        for target in range(0, 2_000, 130):
            done = compact(messages, judge, target, settings={})
            inside = [message in done.messages for message in messages]
            assert inside[1] == inside[2] == inside[4]


def test_pins_system_and_recent_are_never_scored_and_always_stay() -> None:
    pinned = user("see src/ingest/parser.py")
    messages = [system("s"), pinned, *sized(10)]
    judge = Tabled(lambda name: level(4))
    done = compact(messages, judge, 0, settings={})
    assert done.messages == [messages[0], pinned, *messages[-4:]]
    assert {question.id for question in judge.questions} == {f"T{index}" for index in range(2, 8)}
    assert done.stats["over_budget_bytes"] == 425
    assert done.stats["pinned"] == 1
    assert done.receipts[1].reason == "pinned: file path"
    off = compact(messages, judge, 0, enable_pinning=False, settings={})
    assert off.messages == [messages[0], *messages[-4:]]


def test_patterns_of_ones_own_and_their_flags() -> None:
    messages = [user("failed with ENOENT today"), user("that was enoent-ly done"), *sized(8)]
    sensitive = compact(messages, scored(*[0] * 10), 0, pin_patterns=("ENOENT",), pin_flags="", settings={})
    assert messages[0] in sensitive.messages
    assert messages[1] not in sensitive.messages
    folded = compact(messages, scored(*[0] * 10), 0, pin_patterns=("ENOENT",), settings={})
    assert messages[1] in folded.messages


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("pin_patterns", ("(",)),
        ("pin_flags", "q"),
        ("min_confidence", 1.5),
        ("min_confidence", float("nan")),
        ("target_bytes", -1),
        ("target_bytes", True),
        ("batch_size", 0),
        ("summary_role", "tool"),
        ("levels", ("one",)),
        ("levels", ("a", "a")),
        ("timeout_s", 0),
        ("colour", "red"),
    ],
)
def test_options_that_cannot_be_used_are_refused_by_name(option: str, value: Any) -> None:
    given = {"target_bytes": 10, option: value}
    with pytest.raises(ConfigError, match=option):
        compact(sized(3), settings={}, **given)


@pytest.mark.parametrize(
    ("answer", "value"),
    [(Answer(level="high"), 0.75), (Answer(score=2.0), 0.5), (Answer(level="huge"), None), (Answer(), None)],
)
def test_an_answer_that_only_names_a_level_or_gives_a_score_is_accepted(answer: Answer, value: float | None) -> None:
    done = compact(sized(20), Whole(answer), 900, settings={})
    record = done.receipts[0]
    if value is None:
        assert record.reason == "not judged: by recency"
    else:
        assert (record.value, record.confidence, record.reason) == (value, None, "value")


def test_a_list_that_is_none_is_refused() -> None:
    with pytest.raises(InputError):
        compact([{"role": "wizard"}], settings={})


@pytest.mark.parametrize("failing", range(3))
def test_messages_of_a_batch_that_fails_go_by_recency(failing: int) -> None:
    judge = Tabled(lambda name: level(4), fails=lambda number: number == failing)
    done = compact(sized(28), judge, 1_200, settings={})
    assert done.stats["degraded"] is True
    assert done.stats["unscored"] == 8
    assert done.stats["failed_requests"] == 1
    by_recency = {record.index for record in done.receipts if record.reason == "not judged: by recency"}
    assert by_recency == set(range(failing * 8, failing * 8 + 8))


@pytest.mark.parametrize("judge", [Tabled(lambda name: None, fails=lambda number: True), Silent(code="auth")])
def test_with_the_judge_down_recency_decides(judge: Any) -> None:
    messages = sized(40)
    done = compact(messages, judge, 1_000, summary_bytes=0, settings={})
    assert done.messages == messages[30:]
    assert (done.stats["degraded"], done.stats["scored"]) == (True, 0)


def test_a_judge_that_stays_silent_is_not_asked_forever() -> None:
    judge = Tabled(lambda name: None, fails=lambda number: True)
    compact(sized(2_000), judge, 1_000, settings={"concurrency": 1})
    assert len(judge.sent) == 6


def test_the_digest_quotes_whole_lines_best_first_within_its_bytes() -> None:
    lines = [user(f"first line of {index}\nsecond line of {index}\n{'z' * 900}") for index in range(12)]
    judge = Tabled(lambda name: level(3 if name == "T5" else 0))
    done = compact([*lines, *sized(4)], judge, 1_330, settings={})
    text = next(message["content"] for message in done.messages if message["content"].startswith("["))
    shown = text.split("\n")[1:]
    assert shown[:3] == ["user: first line of 5", "  second line of 5", "user: first line of 11"]
    quoted = {line for message in lines for line in message["content"].split("\n")}
    assert all(line.removeprefix("user: ").removeprefix("  ") in quoted for line in shown)
    assert len(text.encode()) <= 1_024
    assert done.stats["digest_bytes"] == len(text.encode())


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_the_digests_role_is_a_choice(role: str) -> None:
    messages = [user(f"{index:03d}\n".ljust(400, "x")) for index in range(40)]
    done = compact(messages, Tabled(lambda name: level(1)), 4_390, summary_role=role, settings={})
    assert [message["role"] for message in done.messages if message not in messages] == [role]


def test_secrets_are_masked_in_what_is_sent_and_absent_from_receipts(tmp_path: Path) -> None:
    file = tmp_path / "receipts.jsonl"
    judge = Tabled(lambda name: level(1))
    messages = [user(f"token {SECRET} here {index}") for index in range(12)]
    compact(messages, judge, 100, task=f"use {SECRET}", settings={}, receipt_path=str(file))
    assert SECRET[6:] not in json.dumps([request.state for request in judge.sent])
    assert SECRET[6:] not in file.read_text()
    assert SECRET not in repr(CompactOptions(api_key=SECRET))


def test_a_receipt_is_one_line_a_run_with_one_record_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "receipts.jsonl"
    monkeypatch.setenv("HERMES_JEV_RECEIPT_PATH", str(file))
    for run in ("one", "two"):
        done = compact(sized(20), Tabled(lambda name: level(2)), 900, settings={}, run_id=run)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["run_id"] for row in rows] == ["one", "two"]
    assert rows[1]["decisions"] == [record.model_dump() for record in done.receipts]
    assert {row["action"] for row in rows[0]["decisions"]} == {"keep", "drop"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_receipt_that_cannot_be_written_is_said_and_changes_nothing(tmp_path: Path) -> None:
    judge = Tabled(lambda name: level(2))
    with_ = compact(sized(20), judge, 900, settings={}, receipt_path=str(tmp_path))
    without = compact(sized(20), judge, 900, settings={})
    assert with_.messages == without.messages
    assert str(tmp_path) in with_.stats["receipt_error"]


def test_cost_is_the_services_or_by_price() -> None:
    done = compact(sized(20), Tabled(lambda name: level(2)), 900, settings={})
    assert (done.stats["requests"], done.stats["input_tokens"]) == (2, 2_000)
    assert done.stats["cost_usd"] == pytest.approx(2_000 * 0.042 / 1e6)


def test_the_function_and_its_async_twin_are_exported() -> None:
    assert hermes_jev.compact(sized(20), "lexical", 900, settings={}).stats["judge"] == "lexical"
    assert asyncio.run(acompact(sized(20), "lexical", 900, settings={})).stats["bytes_after"] <= 900


contents = st.one_of(st.none(), st.text(max_size=40), st.text("ab \n", max_size=400))


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["user", "assistant", "system", "calls", "orphan"]))
        if kind == "calls":
            count = draw(st.integers(1, 3))
            messages.append(assistant(draw(contents), *(call(f"c{number}-{n}") for n in range(count))))
            messages.extend(result(f"c{number}-{n}", draw(contents)) for n in range(draw(st.integers(0, count))))
        elif kind == "orphan":
            messages.append(result(f"lost{number}", draw(contents)))
        else:
            messages.append({"role": kind, "content": draw(contents)})
    return messages


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    conversations(),
    st.integers(0, 1_500),
    st.integers(0, 6),
    st.integers(0, 400),
    st.lists(st.one_of(st.none(), st.just(FLAT), st.integers(0, 4).map(level)), min_size=60, max_size=60),
    st.booleans(),
)
def test_the_promises_hold_for_any_conversation(
    messages: list[Any], target: int, recent: int, summary: int, answers: list[Any], down: bool
) -> None:
    judge = Tabled(lambda name: answers[int(name[1:])], fails=lambda number: down)
    before = json.dumps(messages)
    done = compact(messages, judge, target, keep_recent=recent, summary_bytes=summary, settings={})
    assert json.dumps(messages) == before
    originals = {id(message): index for index, message in enumerate(messages)}
    kept = [originals[id(message)] for message in done.messages if id(message) in originals]
    assert kept == sorted(kept)
    assert len(done.messages) - len(kept) <= 1
    assert all(index in kept for index, message in enumerate(messages) if message["role"] == "system")
    assert all(index in kept for index in range(max(0, len(messages) - recent), len(messages)))
    over = done.stats["over_budget_bytes"]
    assert done.stats["bytes_after"] <= max(target, 0) + over
    # No result without its call, no call without a result that it had, nothing new between them.
    for index, message in enumerate(messages):
        for wanted in message.get("tool_calls") or ():
            answered = [at for at, other in enumerate(messages) if other.get("tool_call_id") == wanted["id"]]
            assert all((at in kept) == (index in kept) for at in answered)
    for place, message in enumerate(done.messages):
        if id(message) not in originals:
            after = done.messages[place + 1] if place + 1 < len(done.messages) else {"role": ""}
            before_it = done.messages[place - 1] if place else {}
            assert not (after["role"] == "tool" and before_it.get("tool_calls"))
