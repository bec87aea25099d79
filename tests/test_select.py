"""Which turns a digest keeps, shortens and drops: the contract, and what holds for any list and any judge."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from builders import assistant, call, result, system, user
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turn_judges import Tabled, Whole, fate

import hermes_jev
from hermes_jev.compact import compact
from hermes_jev.digest import digest
from hermes_jev.errors import ConfigError, InputError
from hermes_jev.judge import Answer, Silent
from hermes_jev.select import REQUEST_CHARS, aselect, select
from hermes_jev.turns import turns_of

OPENAI_KEY = "sk-proj-" + "Ab3dEf6h" * 6


def talk(count: int) -> list[dict[str, Any]]:
    return [user(f"turn {index}") if index % 2 == 0 else assistant(f"turn {index}") for index in range(count)]


def by_table(**fates: Any) -> Tabled:
    """Answers by question id; every other turn is summarize."""
    return Tabled(lambda name: fates.get(name, fate("summarize")))


def test_the_contract_to_the_letter() -> None:
    """A golden case: fates as text, counts, digest, and nothing else."""
    messages = [
        system("You are careful."),
        user("Use port 8443, never 80."),
        assistant("x" * 450),
        user("hello there"),
        assistant(""),
        {"role": "assistant", "content": None},
        user([{"type": "text", "text": "Last"}, {"type": "text", "text": "words"}]),
    ]
    judge = by_table(T1=fate("keep"), T3=fate("drop"))
    chosen = select(messages, judge, keep_last=1, settings={})
    assert chosen.to_dict() == {
        "status": "ok",
        "fates": {"0": "keep", "1": "keep", "2": "summarize", "3": "drop", "6": "keep"},
        "counts": {"keep": 3, "summarize": 1, "drop": 1},
        "unjudged": [],
        "jev_calls": 1,
        "errors": [],
        "latency_ms": chosen.latency_ms,
        "judge": "jev",
        "digest": "[KEEP VERBATIM] system: You are careful.\n\n"
        "[KEEP VERBATIM] user: Use port 8443, never 80.\n\n"
        f"[background] assistant: {'x' * 400} […]\n\n"
        "[KEEP VERBATIM] user: Last\nwords",
    }
    assert [question.id for question in judge.questions] == ["T1", "T2", "T3"]
    assert {question.kind for question in judge.questions} == {"choice"}
    assert set(judge.questions[0].criteria) == {"keep", "summarize", "drop"}


def test_the_function_and_its_async_twin_are_exported() -> None:
    assert hermes_jev.select(talk(8), "lexical", settings={}).status == "ok"
    assert asyncio.run(aselect(talk(8), "lexical", settings={})).status == "ok"


def test_system_turns_and_the_last_ones_are_never_asked_about() -> None:
    judge = Tabled(lambda name: fate("drop"))
    chosen = select([system("a"), *talk(10), {"role": "developer", "content": "b"}], judge, settings={})
    assert [question.id for question in judge.questions] == [f"T{index}" for index in range(1, 6)]
    assert {index for index, kept in chosen.fates.items() if kept == "keep"} == {"0", "6", "7", "8", "9", "10", "11"}


@pytest.mark.parametrize(("sure", "expected"), [(0.79, "summarize"), (0.81, "drop"), (1.0, "drop")])
def test_a_drop_needs_confidence(sure: float, expected: str) -> None:
    """0.7 as the service defines it: 0.8 of the probability among three options."""
    chosen = select(talk(3), Tabled(lambda name: fate("drop", sure)), keep_last=0, settings={})
    assert set(chosen.fates.values()) == {expected}
    assert chosen.status == "ok"


def test_a_long_turn_is_judged_on_both_ends() -> None:
    judge = by_table()
    select([user("A" * 5_000 + "Z" * 5_000), *talk(6)], judge, settings={})
    text = judge.turns[0]["text"]
    assert text == "A" * 350 + " … " + "Z" * 350


def test_requests_hold_forty_turns_and_forty_thousand_characters() -> None:
    judge = by_table()
    select(talk(106), judge, settings={})
    assert [len(request.questions) for request in judge.sent] == [40, 40, 20]
    wide = by_table()
    select([user('\n"é' * 400) for _ in range(120)], wide, settings={})
    for request in wide.sent:
        assert isinstance(request.state, dict)
        assert len(json.dumps(request.state["turns"], ensure_ascii=False)) <= REQUEST_CHARS


def test_the_task_goes_with_every_request() -> None:
    judge = by_table()
    select(talk(100), judge, task="ship the parser", settings={})
    assert len(judge.sent) == 3
    for request in judge.sent:
        assert isinstance(request.state, dict)
        assert request.state["task"] == "ship the parser"
    without = by_table()
    select(talk(10), without, settings={})
    assert isinstance(without.sent[0].state, dict)
    assert "task" not in without.sent[0].state


def test_a_turn_with_a_secret_is_not_sent_and_stays_as_a_gist() -> None:
    judge = Tabled(lambda name: fate("drop"))
    chosen = select([user(f"the key is {OPENAI_KEY}"), *talk(9)], judge, settings={})
    assert OPENAI_KEY[12:] not in json.dumps([request.state for request in judge.sent])
    assert "T0" not in {question.id for question in judge.questions}
    assert (chosen.fates["0"], chosen.unjudged, chosen.status) == ("summarize", (0,), "partial")


@pytest.mark.parametrize("egress", ["off", "metadata"])
def test_nothing_is_sent_where_no_text_may_leave(egress: str) -> None:
    judge = by_table()
    chosen = select(talk(20), judge, settings={"egress": egress})
    assert (judge.sent, chosen.judge, chosen.status) == ([], "lexical", "ok")


def test_secrets_in_the_task_are_masked() -> None:
    judge = by_table()
    select(talk(9), judge, task=f"use {OPENAI_KEY}", settings={})
    assert OPENAI_KEY[12:] not in json.dumps([request.state for request in judge.sent])


@pytest.mark.parametrize("failing", range(3))
def test_a_batch_that_fails_leaves_its_turns_summarized(failing: int) -> None:
    judge = Tabled(lambda name: fate("drop"), fails=lambda number: number == failing)
    chosen = select(talk(106), judge, settings={})
    lost = tuple(range(failing * 40, min(100, failing * 40 + 40)))
    assert (chosen.status, chosen.unjudged) == ("partial", lost)
    assert {chosen.fates[str(index)] for index in lost} == {"summarize"}
    assert chosen.counts == {"keep": 6, "summarize": len(lost), "drop": 100 - len(lost)}
    assert chosen.errors == ("transient",)


@pytest.mark.parametrize("judge", [Tabled(lambda name: None, fails=lambda number: True), Silent(code="auth")])
def test_when_nobody_answers_every_open_turn_is_summarized(judge: Any) -> None:
    chosen = select(talk(20), judge, settings={})
    assert chosen.status == "fail_open"
    assert chosen.counts == {"keep": 6, "summarize": 14, "drop": 0}
    assert chosen.unjudged == tuple(range(14))


def test_an_answer_that_names_no_fate_is_no_answer() -> None:
    chosen = select(talk(8), Tabled(lambda name: {"perhaps": 1.0} if name == "T0" else fate("drop")), settings={})
    assert (chosen.fates["0"], chosen.fates["1"], chosen.unjudged) == ("summarize", "drop", (0,))


@pytest.mark.parametrize(("level", "expected"), [("keep", "keep"), ("summarize", "summarize"), ("drop", "summarize")])
def test_a_fate_without_probabilities_is_no_drop(level: str, expected: str) -> None:
    chosen = select(talk(3), Whole(Answer(level=level)), keep_last=0, settings={})
    assert (set(chosen.fates.values()), chosen.status) == ({expected}, "ok")


@pytest.mark.parametrize(
    "probabilities",
    [
        {"keep": None},
        {"keep": "a"},
        {"keep": True},
        {"keep": 1.0},
        {"keep": 2.0},
        {"zz": 1.0},
        fate("keep", 0.0) | {"summarize": 0.0, "drop": 0.0},
    ],
)
def test_a_bad_answer_is_no_answer(probabilities: Any) -> None:
    chosen = select(talk(9), Whole(Answer(probabilities)), settings={})
    assert (chosen.status, set(chosen.unjudged)) == ("fail_open", {0, 1, 2})
    done = compact(talk(9), Whole(Answer(probabilities)), 20, settings={})
    assert (done.stats["degraded"], done.stats["scored"]) == (True, 0)


def test_without_open_turns_nobody_is_asked() -> None:
    judge = by_table()
    for messages in ([], [system("only")], talk(6), [assistant(None, call("c")), result("c", "")]):
        chosen = select(messages, judge, settings={})
        assert (chosen.status, chosen.jev_calls, chosen.unjudged) == ("ok", 0, ())
    assert judge.sent == []


def test_without_a_key_the_lexical_judge_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TYPESAFE_API_KEY", "JEV_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    chosen = select([user("thanks!"), *talk(20)], settings={})
    assert (chosen.status, chosen.judge, chosen.jev_calls) == ("ok", "lexical", 0)


def test_what_cannot_be_used_is_refused() -> None:
    for wrong in ({"keep_last": -1}, {"limit": -5}, {"limit": 1.5}, {"keep_last": True}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            select(talk(3), settings={}, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="list"):
        select({"role": "user"}, settings={})  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        select(talk(3), judge="oracle", settings={})


# -- the digest -----------------------------------------------------------------------------------------------------


def test_a_digest_that_is_too_long_loses_whole_turns_oldest_background_first() -> None:
    turns = turns_of([user("a" * 90), assistant("b" * 90), user("c" * 90), assistant("d" * 90)])
    fates: dict[int, Any] = {0: "keep", 1: "summarize", 2: "summarize", 3: "keep"}
    whole = digest(turns, fates, 10_000)
    assert digest(turns, fates, len(whole)) == whole
    one = digest(turns, fates, len(whole) - 1)
    assert one.startswith("[1 earlier turn left out to fit]\n\n[KEEP VERBATIM] user: aaa")
    assert "bbb" not in one
    assert "ccc" in one
    three = digest(turns, fates, 180)
    assert three.startswith("[3 earlier turns left out to fit]\n\n[KEEP VERBATIM] assistant: ddd")
    assert digest(turns, fates, 60) == "[4 earlier turns left out to fit]"
    assert digest(turns, fates, 5) == ""


roles = st.sampled_from(["system", "user", "assistant", "tool"])
texts = st.one_of(st.none(), st.text(max_size=60), st.text("ab\n", min_size=300, max_size=900))
odd_answers = st.one_of(
    st.none(),
    st.sampled_from(["keep", "summarize", "drop"]).flatmap(lambda n: st.floats(0.34, 1).map(lambda p: fate(n, p))),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.builds(lambda role, text: {"role": role, "content": text}, roles, texts), max_size=30),
    st.integers(0, 8),
    st.integers(0, 3_000),
    st.lists(odd_answers, min_size=30, max_size=30),
    st.booleans(),
)
def test_the_promises_hold_for_any_turns(
    messages: list[Any], keep_last: int, limit: int, answers: list[Any], down: bool
) -> None:
    judge = Tabled(lambda name: answers[int(name[1:])], fails=lambda number: down)
    chosen = select(messages, judge, keep_last, limit, settings={})
    spoken = [index for index, message in enumerate(messages) if (message["content"] or "").strip()]
    assert [int(index) for index in chosen.fates] == spoken
    assert sum(chosen.counts.values()) == len(spoken)
    safe = {index for index in spoken if messages[index]["role"] == "system"}
    safe |= set(spoken[max(0, len(spoken) - keep_last) :] if keep_last else [])
    assert all(chosen.fates[str(index)] == "keep" for index in safe)
    for index in set(spoken) - safe:
        answer = None if down else answers[index]
        if answer is None:
            assert (chosen.fates[str(index)], index in chosen.unjudged) == ("summarize", True)
        if chosen.fates[str(index)] == "drop":
            assert answer is not None
            assert answer["drop"] >= 0.8 - 1e-9
    assert len(chosen.digest) <= limit
    json.dumps(chosen.to_dict())
