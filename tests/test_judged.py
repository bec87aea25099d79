"""Where a verdict comes from: the store, the judge, or, when it is urgent and the judge is down, the embedded one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import GOAL, ByOrdinal, Failing, Fixed, Message, Odd, Partial, assistant, pair, session, text, user

from hermes_jev.egress import Gate, gate
from hermes_jev.errors import JudgeAuth, JudgeTransient
from hermes_jev.judge import Judge, Silent
from hermes_jev.judge.protocol import Answer, Answers, Request
from hermes_jev.judged import ASK_AGAIN_CALLS, PUT_OFF, Bench, Judged, judged
from hermes_jev.policy import Cuts
from hermes_jev.settings import Settings
from hermes_jev.store import Store, StoredVerdict
from hermes_jev.transcript import Transcript


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def ask(
    messages: list[Message],
    judge: Judge,
    store: Store,
    *,
    goal: str = GOAL,
    focus: str = "",
    task: str = "",
    urgent: bool = False,
    settings: Settings | None = None,
    through: Gate | None = None,
) -> Judged:
    """Verdicts about all calls of a list."""
    transcript = Transcript.parse(messages)
    contents = {exchange.ordinal: Cuts(Settings()).content(exchange) or "" for exchange in transcript.completed}
    bench = Bench(judge, store, settings or Settings(), through or Gate(), goal, focus, (), task)
    return judged(transcript, transcript.completed, contents, bench, urgent)


def outputs(found: Judged) -> dict[int, float | None]:
    return {ordinal: verdict.output for ordinal, verdict in sorted(found.verdicts.items())}


# --- the cache ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("local", [False, True])
def test_a_second_pass_asks_nothing(store: Store, local: bool) -> None:
    judge = ByOrdinal({2: (0.8, 0.3)}, default=(0.6, 0.9), local=local)
    first = ask(session(5), judge, store)
    asked = len(judge.asked)

    second = ask(session(5), judge, store)

    assert len(judge.asked) == asked == first.answers.requests == 1
    assert second.answers.requests == 0
    assert outputs(second) == outputs(first) == {1: 0.9, 2: 0.3, 3: 0.9, 4: 0.9, 5: 0.9}
    assert {v.cached for v in first.verdicts.values()} == {False}
    assert {v.cached for v in second.verdicts.values()} == {True}
    assert [(v.call, v.stage, v.judge) for v in first.verdicts.values()] == [
        (v.call, v.stage, v.judge) for v in second.verdicts.values()
    ]
    assert not second.failed
    assert not second.partial


def test_only_what_is_new_is_asked_about(store: Store) -> None:
    judge = Fixed()
    ask(session(5), judge, store)
    judge.asked.clear()

    ask([*session(5), *pair(6, text(4_000, "new"))], judge, store)

    assert judge.question_ids == ["t6_call", "t6_output"]


@pytest.mark.parametrize(
    "change",
    [
        {"focus": "the lexer"},
        {"task": "release 2.0"},
        {"judge": Fixed(version="v2")},
        {"judge": ByOrdinal({}, version="v3")},
    ],
    ids=["focus", "task", "version", "judge"],
)
def test_another_question_is_asked_again(store: Store, change: dict[str, Any]) -> None:
    ask(session(5), Fixed(), store)
    again = {"judge": Fixed(), **change}

    found = ask(session(5), store=store, **again)

    assert len(again["judge"].question_ids) == 10
    assert not any(verdict.cached for verdict in found.verdicts.values())


def test_goal_and_focus_do_not_run_into_each_other(store: Store) -> None:
    ask(session(5), Fixed(), store, goal="one", focus="two")
    judge = Fixed()

    ask(session(5), judge, store, goal="onetwo", focus="")

    assert judge.asked


@pytest.mark.parametrize("goal", ["\ud800 broken", "", "漢字"])
def test_any_goal_has_a_hash(store: Store, goal: str) -> None:
    ask(session(3), Fixed(), store, goal=goal)
    judge = Fixed()

    ask(session(3), judge, store, goal=goal)

    assert judge.asked == []


@pytest.mark.parametrize(("later", "again"), [(ASK_AGAIN_CALLS - 1, False), (ASK_AGAIN_CALLS, True)])
def test_a_verdict_is_asked_again_after_twenty_calls(store: Store, later: int, again: bool) -> None:
    ask(session(5), Fixed(), store)
    judge = Fixed()

    ask([*session(5), *(message for n in range(later) for message in pair(100 + n, f"short {n}"))], judge, store)

    assert ASK_AGAIN_CALLS == 20
    assert ("t1_call" in judge.question_ids) is again


def test_equal_exchanges_are_asked_about_once_and_share_the_verdict(store: Store) -> None:
    same = [message for n in range(4) for message in pair(n, text(4_000), arguments={"command": "ls"})]
    judge = Fixed(0.2, 0.7)

    found = ask([user(GOAL), *same, *pair(9, text(4_000), arguments={"command": "ls -l"})], judge, store)

    assert len(judge.question_ids) == 4
    assert outputs(found) == dict.fromkeys(range(1, 6), 0.7)


def test_verdicts_outlive_the_place_of_a_call(store: Store) -> None:
    """Nothing is kept by index: the same call elsewhere in another list is known."""
    ask([user(GOAL), *pair(1, text(4_000, "a")), *pair(2, text(4_000, "b"))], ByOrdinal({1: (0.1, 0.2)}), store)
    judge = Fixed()

    found = ask([user(GOAL), assistant("hm"), *pair(2, text(4_000, "b")), *pair(1, text(4_000, "a"))], judge, store)

    assert judge.asked == []
    assert outputs(found) == {1: 0.1, 2: 0.2}


# --- how much is asked --------------------------------------------------------------------------------------------


def test_the_largest_are_asked_about_first(store: Store) -> None:
    messages = [user(GOAL)]
    for number, size in enumerate((2_000, 9_000, 4_000, 9_000, 3_000), 1):
        messages += pair(number, text(size, f"n{number}"))
    judge = Fixed()

    found = ask(messages, judge, store, settings=Settings(max_candidates=3))

    assert [name for name in judge.question_ids if name.endswith("call")] == ["t2_call", "t4_call", "t3_call"]
    assert sorted(found.verdicts) == [2, 3, 4]


def test_what_one_pass_does_not_ask_about_waits_until_the_session_goes_on(store: Store) -> None:
    """A second pass over the same conversation asks nothing; after one more call the next ones are asked about."""
    judge, settings = Fixed(), Settings(max_candidates=3)
    first = ask(session(5), judge, store, settings=settings)
    second = ask(session(5), judge, store, settings=settings)
    third = ask([*session(5), *pair(6, "short")], judge, store, settings=settings)

    assert [sorted(found.verdicts) for found in (first, second, third)] == [[1, 2, 3], [1, 2, 3], [1, 2, 3, 4, 5, 6]]
    assert len(judge.asked) == 2
    assert judge.question_ids[6:] == [name for n in (4, 5, 6) for name in (f"t{n}_call", f"t{n}_output")]


def test_with_no_candidates_nobody_is_asked(store: Store) -> None:
    judge = Failing()

    found = ask([user(GOAL)], judge, store)

    assert judge.asked == []
    assert found.verdicts == {}
    assert not found.failed


# --- a judge that does not do its work ----------------------------------------------------------------------------


def test_a_partial_answer_is_told(store: Store) -> None:
    found = ask(session(5), Partial([2, 3]), store)

    assert outputs(found) == {2: 0.1, 3: 0.1}
    assert found.partial
    assert not found.failed


def test_what_was_not_answered_is_asked_again_and_the_rest_is_not(store: Store) -> None:
    ask(session(5), Partial([2, 3]), store)
    judge = Partial([])

    ask(session(5), judge, store)

    assert [name for name in judge.question_ids if name.endswith("call")] == ["t1_call", "t4_call", "t5_call"]


def test_without_the_answer_about_the_output_there_is_no_verdict(store: Store) -> None:
    judge = ByOrdinal({1: (0.3, None), 2: (None, 0.4), 3: (None, None)}, default=(0.1, 0.1))

    for found in (ask(session(4), judge, store), ask(session(4), judge, store)):
        assert {n: (v.call, v.output) for n, v in found.verdicts.items()} == {
            2: (None, 0.4),
            4: (0.1, 0.1),
        }
        assert found.partial or found.answers.requests == 1


@pytest.mark.parametrize(
    "error", [JudgeTransient("down"), JudgeAuth("no"), ValueError("a defect"), asyncio.CancelledError()]
)
def test_a_judge_that_raises_gives_no_verdicts_and_is_named(store: Store, error: Any) -> None:
    found = ask(session(5), Failing(error), store)

    assert found.verdicts == {}
    assert found.failed
    assert not found.partial
    assert any(problem.startswith("down ") for problem in found.problems)
    assert "defect" not in str(found.problems)


def test_a_judge_that_is_down_leaves_what_is_known(store: Store) -> None:
    ask(session(5), Fixed(0.2, 0.3), store)
    failing = Failing()
    failing.name, failing.version = Fixed().name, Fixed().version

    found = ask([*session(5), *pair(6, text(4_000, "new"))], failing, store)

    assert outputs(found) == dict.fromkeys(range(1, 6), 0.3)
    assert found.failed


def test_a_judge_that_is_down_is_not_replaced_while_there_is_time(store: Store) -> None:
    assert ask(session(5), Failing(), store, urgent=False).verdicts == {}


@pytest.mark.parametrize("judge", [Failing(), Silent()], ids=["down", "no key"])
def test_a_judge_that_is_down_is_replaced_when_it_is_urgent(store: Store, judge: Judge) -> None:
    found = ask(session(5), judge, store, urgent=True)

    assert sorted(found.verdicts) == [1, 2, 3, 4, 5]
    assert {verdict.judge for verdict in found.verdicts.values()} == {"lexical"}
    assert found.answers.judge == "lexical"
    assert not found.failed
    assert any("the lexical judge stood in" in problem for problem in found.problems)
    assert found.answers.errors


def test_a_partial_answer_is_not_replaced(store: Store) -> None:
    found = ask(session(5), Partial([2]), store, urgent=True)

    assert sorted(found.verdicts) == [2]
    assert not any("stood in" in problem for problem in found.problems)


def test_what_a_judge_said_before_it_went_down_still_counts_when_it_is_urgent(store: Store) -> None:
    """The embedded judge stands in for answers that are missing, not for those that are there."""
    ask(session(5), Fixed(0.9, 0.97), store)
    failing = Failing()
    failing.name, failing.version = Fixed().name, Fixed().version

    found = ask([*session(5), *pair(6, text(4_000, "new"))], failing, store, urgent=True)

    assert {n: found.verdicts[n].output for n in range(1, 6)} == dict.fromkeys(range(1, 6), 0.97)
    assert found.verdicts[6].judge == "lexical"


@pytest.mark.parametrize(
    "probabilities",
    [
        {},
        {"yes": 0.1},
        {"true": float("nan")},
        {"true": float("inf")},
        {"true": -0.2},
        {"true": 1.2},
        {"true": "0.1"},
        {"true": None},
        {"true": True},
        {"true": [0.1]},
        None,
    ],
    ids=str,
)
def test_an_answer_that_is_no_probability_is_no_answer(store: Store, probabilities: Any) -> None:
    """The protocol is open to judges of other people: what they get wrong must neither raise nor cut."""
    found = ask(session(5), Odd(probabilities), store)

    assert all(verdict.output is None and verdict.call is None for verdict in found.verdicts.values())


class Strange(Fixed):
    """Answers with something that is no `Answers`, or holds what it should not."""

    def __init__(self, reply: Any) -> None:
        super().__init__()
        self.reply = reply

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        answers: Answers = self.reply
        return answers


@pytest.mark.parametrize(
    "reply",
    [
        None,
        {"t1_call": 0.1},
        Answers(by_id=None),  # type: ignore[arg-type]
        Answers(by_id={"t1_call": 0.1, "t1_output": 0.1}),  # type: ignore[dict-item]
        Answers(by_id={"t1_call": None, "t1_output": None}),  # type: ignore[dict-item]
    ],
    ids=["nothing", "a dict", "no map", "numbers", "nulls"],
)
def test_a_reply_of_another_form_is_no_answer(store: Store, reply: Any) -> None:
    found = ask(session(3), Strange(reply), store)

    assert all(verdict.output is None for verdict in found.verdicts.values())


def test_answers_to_questions_nobody_asked_are_ignored(store: Store) -> None:
    more = {"t99_output": Answer({"true": 0.0}), "t99_call": Answer({"true": 0.0}), "": Answer({"true": 0.0})}

    assert ask(session(3), Strange(Answers(by_id=more)), store).verdicts == {}


# --- a store that does not do its work ----------------------------------------------------------------------------


def test_without_a_store_verdicts_are_made_and_not_kept(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")

    found = ask(session(3), Fixed(), Store(tmp_path / "store"))

    assert sorted(found.verdicts) == [1, 2, 3]
    assert any(problem.startswith("verdicts not saved: ") for problem in found.problems)


def test_a_damaged_store_does_not_stop_a_pass(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    ask(session(3), Fixed(), store)
    store.path.write_bytes(b"no database at all " * 500)

    found = ask(session(3), Fixed(), store)

    assert sorted(found.verdicts) == [1, 2, 3]
    assert [file.name for file in store.folder.glob("*.damaged*")]


# --- what is not sent ---------------------------------------------------------------------------------------------


def test_what_cannot_be_redacted_is_not_asked_and_is_told(store: Store) -> None:
    def refuse(text: str) -> str:
        if "cursed" in text:
            raise ValueError(text)
        return text

    messages = [user(GOAL), *pair(1, text(3_000)), *pair(2, "cursed " + text(3_000))]

    found = ask(messages, Fixed(), store, through=gate([refuse]))

    assert sorted(found.verdicts) == [1]
    assert "not asked: cannot be redacted" in found.problems
    assert not found.partial


def test_a_local_judge_needs_no_redaction(store: Store) -> None:
    def refuse(text: str) -> str:
        raise ValueError(text)

    found = ask(session(3), Fixed(local=True), store, through=gate([refuse]))

    assert sorted(found.verdicts) == [1, 2, 3]


def test_problems_hold_no_words_of_the_transcript(store: Store) -> None:
    messages = [user("the word zanzibar"), *pair(1, "zanzibar " + text(3_000)), *pair(2, "zanzibar " * 900)]

    for judge in (Failing(ValueError("zanzibar")), Partial([1]), Odd({"true": 0.1})):
        assert "zanzibar" not in " ".join(ask(messages, judge, store, urgent=True).problems)


@pytest.mark.parametrize(
    ("seen", "now", "stage", "stands"),
    [
        (10, 10, "whole", True),
        (10, 29, "whole", True),
        (10, 30, "whole", False),
        (60, 10, "whole", True),
        (10, 10, PUT_OFF, True),
        (10, 11, PUT_OFF, False),
    ],
)
def test_how_long_a_stored_verdict_stands(store: Store, seen: int, now: int, stage: str, stands: bool) -> None:
    """Also in another session with the same goal, where fewer calls were made: there nothing is known of its age."""
    judge = Fixed(0.9, 0.9)
    messages = session(now)
    contents = {content_of(e): e for e in Transcript.parse(messages).completed}
    bench = Bench(judge, store, Settings(), Gate(), GOAL, "", ())
    store.save_verdicts(
        {bench.key(content, judge): StoredVerdict(0.9, 0.9, stage, seen, "fixed") for content in contents}
    )

    judged(
        Transcript.parse(messages), tuple(contents.values()), {e.ordinal: c for c, e in contents.items()}, bench, False
    )

    assert (judge.asked == []) is stands


def content_of(exchange: Any) -> str:
    return Cuts(Settings()).content(exchange) or ""
