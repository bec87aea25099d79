"""`prune` as its callers see it: one list in, one list out, and why."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import (
    GOAL,
    ByOrdinal,
    Failing,
    Fixed,
    Message,
    Odd,
    Partial,
    assistant,
    call,
    contents,
    pair,
    result,
    session,
    system,
    text,
    user,
)

import hermes_jev
from hermes_jev import Pruned, Settings
from hermes_jev.errors import ConfigError, InputError, StoreError
from hermes_jev.job import Job
from hermes_jev.judge import Answers, Request
from hermes_jev.notice import read
from hermes_jev.policy import Cuts, Decision, Known, Verdict, rank_order, ranked
from hermes_jev.prune import run
from hermes_jev.store import Keep, Kept, Store
from hermes_jev.transcript import Transcript

ALL = Settings(pin_last_calls=0)


def prune(messages: list[Any], judge: Any = None, store: Any = None, settings: Settings = ALL, **more: Any) -> Pruned:
    """`prune` with a judge that answers low to both and every call unpinned."""
    before = copy.deepcopy(messages)
    pruned = hermes_jev.prune(messages, Fixed() if judge is None else judge, store, settings, **more)
    assert messages == before, "the list that was given has changed"
    return pruned


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def actions(pruned: Pruned) -> list[str]:
    return [decision.action for decision in pruned.decisions]


def changed(before: list[Message], after: list[Message]) -> list[int]:
    assert len(before) == len(after)
    return [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old is not new]


# --- the main job -------------------------------------------------------------------------------------------------


def test_three_fates(store: Store) -> None:
    messages = session(4)
    judge = ByOrdinal({1: (0.9, 0.1), 2: (0.1, 0.1), 3: (0.9, 0.9), 4: (0.1, None)})

    pruned = prune(messages, judge, store)

    assert actions(pruned) == ["truncate", "remove", "keep", "keep"]
    assert changed(messages, pruned.messages) == [2, 4]
    shortened, removed = pruned.messages[2], pruned.messages[4]
    assert shortened["content"].startswith(
        messages[2]["content"][:300] + "\n[hermes_jev: this call ran and returned 4,000"
    )
    assert removed["content"].startswith("[hermes_jev: this call ran; its 4,000 characters are stored")
    for before, after in ((messages[2], shortened), (messages[4], removed)):
        assert {**after, "content": None} == {**before, "content": None}
        pointer = read(after["content"])
        assert pointer is not None
        assert store.get(pointer.id, None).result == before["content"]


def test_untouched_messages_are_the_very_objects_in_a_new_list(store: Store) -> None:
    messages = [system("be kind"), *session(5)]

    pruned = prune(messages, store=store)

    assert pruned.messages is not messages
    assert changed(messages, pruned.messages) == [at for at, m in enumerate(messages) if m["role"] == "tool"]


def test_nothing_to_do_gives_the_very_list(store: Store) -> None:
    for messages in ([], [user("hi")], session(5, 1_500), [*pair(1, None), result("x", text(9_000))]):
        pruned = prune(messages, store=store)
        assert pruned.messages is messages
        assert pruned.decisions == ()
        assert pruned.receipt.outcome == "nothing_to_prune"


def test_pinned_results_are_neither_asked_about_nor_cut(store: Store) -> None:
    judge = Fixed()
    messages = session(7)

    pruned = prune(messages, judge, store, Settings())

    assert sorted({name.split("_")[0] for name in judge.question_ids}) == ["t1", "t2", "t3", "t4"]
    assert changed(messages, pruned.messages) == [2, 4, 6, 8]
    assert pruned.receipt.pinned == {"last_calls": 3}


def test_the_users_words_in_a_result_and_the_hosts_wrapper_stay(store: Store) -> None:
    words = "\n\n[OUT-OF-BAND USER MESSAGE — sent while you work]\nuse port 8080\n[/OUT-OF-BAND USER MESSAGE]"
    page = f'<untrusted_tool_result source="web">\nData follows.\n\n{text(6_000)}\n</untrusted_tool_result>{words}'
    other = text(6_000, "other")
    messages = [user(GOAL), *pair(1, page), *pair(2, f"{other}{words}"), assistant("done")]

    kept = contents(prune(messages, ByOrdinal({1: (0.9, 0.1)}), store).messages)

    assert "</untrusted_tool_result>" in kept[0]
    assert all(words.strip() in content for content in kept)
    assert all(len(content) <= 1_500 for content in kept)


def test_words_of_the_user_that_are_too_long_keep_a_result_whole(store: Store) -> None:
    words = "\n\n[OUT-OF-BAND USER MESSAGE]\n" + text(1_600) + "\n[/OUT-OF-BAND USER MESSAGE]"
    messages = [user(GOAL), *pair(1, text(9_000) + words), assistant("done")]

    pruned = prune(messages, store=store)

    assert pruned.messages is messages
    assert pruned.receipt.pinned == {"unshrinkable": 1}


def test_equal_calls_get_equal_fates_and_one_pointer(store: Store) -> None:
    same = [message for n in range(3) for message in pair(n, text(4_000), arguments={"command": "ls"})]
    messages = [user(GOAL), *same, assistant("done")]

    pruned = prune(messages, store=store)

    assert len(set(contents(pruned.messages))) == 1
    assert len({decision.pointer for decision in pruned.receipt.decisions}) == 1
    assert hermes_jev.restore(pruned.messages, store) == messages


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": text(3_000)}, {"type": "image_url", "image_url": {"url": "data:AAAA"}}],
        {"output": text(3_000), "exit_code": 0, "big": 2**80, "nested": [None, True, 1.5]},
        text(3_000) + "\ud800\udc00\x00\r\n\ufeff",
    ],
    ids=["parts", "object", "odd characters"],
)
def test_results_of_any_kind_are_cut_and_come_back(store: Store, content: Any) -> None:
    messages = [user(GOAL), *pair(1, content), assistant("done")]

    pruned = prune(messages, store=store)

    assert actions(pruned) == ["remove"]
    assert hermes_jev.restore(pruned.messages, store) == messages


@pytest.mark.parametrize(
    "content",
    [
        {"output": text(3_000), "raw": b"bytes"},
        {"output": text(3_000), "pair": (1, 2)},
        {"output": text(3_000), 5: "x"},
    ],
    ids=["bytes", "tuple", "number as key"],
)
def test_what_cannot_be_stored_exactly_stays_whole(store: Store, content: Any) -> None:
    messages = [user(GOAL), *pair(1, content), assistant("done")]

    pruned = prune(messages, store=store)

    assert pruned.messages is messages
    assert pruned.receipt.pinned == {"unshrinkable": 1}


def deep(depth: int) -> Message:
    value: Message = {"output": text(3_000)}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("depth", [90, 150, 900, 5_000])
@pytest.mark.parametrize("place", ["result", "arguments", "beside"])
def test_values_nested_to_any_depth_do_not_stop_a_pass(store: Store, depth: int, place: str) -> None:
    messages = session(3)
    if place == "result":
        messages[2]["content"] = deep(depth)
    elif place == "arguments":
        messages[1]["tool_calls"][0]["function"]["arguments"] = deep(depth)
    else:
        messages[2]["extra"] = deep(depth)

    pruned = hermes_jev.prune(messages, Fixed(), store, ALL)

    assert actions(pruned)[-2:] == ["remove", "remove"]


def test_a_key_of_an_object_that_json_has_not_does_not_stop_a_pass(store: Store) -> None:
    messages = session(3)
    messages[2]["content"] = {("a", "b"): text(3_000)}

    assert actions(prune(messages, store=store))[-2:] == ["remove", "remove"]


@pytest.mark.parametrize("odd", ["\ud800", "\x00", "\udc00\ud800", "\ufeff", "line\nbreak", "x" * 5_000], ids=ascii)
@pytest.mark.parametrize("place", ["tool", "arguments", "goal", "id", "task"])
def test_odd_characters_anywhere_do_not_stop_a_pass(store: Store, odd: str, place: str) -> None:
    where = {"tool": "terminal", "arguments": "{}", "goal": GOAL, "id": "a", "task": "work"} | {place: odd}
    calling = assistant(None, call(where["id"], where["tool"], where["arguments"]))
    messages = [user(where["goal"]), calling, result(where["id"], text(4_000)), assistant("done")]

    pruned = prune(messages, store=store, task=where["task"])

    assert actions(pruned) == ["remove"]
    assert hermes_jev.restore(pruned.messages, store) == messages


def test_pairs_that_are_none_are_left_alone(store: Store) -> None:
    big = text(9_000)
    messages = [
        *(user(GOAL), result("orphan", big)),
        *(assistant(None, call("two")), result("two", big), result("two", big)),
        *(result("early", big), assistant(None, call("early")), user("?")),
        *(assistant(None, call("same"), call("same")), result("same", big), result("same", big)),
        *(assistant(None, call("open")), assistant("done")),
    ]

    pruned = prune(messages, store=store, context_length=100)

    assert pruned.messages is messages


# --- a second pass ------------------------------------------------------------------------------------------------


def again(pruned: Pruned, store: Store, judge: Any = None, settings: Settings = ALL, **more: Any) -> Pruned:
    """A second pass over what the first one left: nothing changes and nobody is asked."""
    second = prune(pruned.messages, judge, store, settings, **more)
    assert second.messages == pruned.messages
    assert second.receipt.requests == 0
    return second


def test_a_second_pass_changes_nothing_and_asks_nobody(store: Store) -> None:
    judge = ByOrdinal({1: (0.9, 0.1), 2: (0.9, 0.9), 5: (0.1, 0.7)})
    pruned = prune(session(8), judge, store)

    assert again(pruned, store, judge).messages is pruned.messages


def test_a_second_pass_asks_nobody_also_with_more_calls_than_one_pass_judges(store: Store) -> None:
    """What one pass leaves unasked must not be cut by the next one over the same conversation."""
    settings = Settings(pin_last_calls=0, max_candidates=4)
    pruned = prune(session(12), Fixed(), store, settings)

    again(pruned, store, settings=settings)


def test_a_second_pass_asks_nobody_when_words_of_the_user_stand_in_what_was_cut(store: Store) -> None:
    words = "\n\n[OUT-OF-BAND USER MESSAGE — sent while you work]\nuse port 8080\n[/OUT-OF-BAND USER MESSAGE]"
    messages = [user(GOAL), *pair(1, text(4_000) + words), *pair(2, text(4_000, "b")), assistant("done")]
    judge = ByOrdinal({2: (0.9, 0.9)})

    pruned = prune(messages, judge, store)

    assert actions(pruned) == ["remove", "keep"]
    again(pruned, store, judge)


def windowed(count: int) -> list[Message]:
    messages = [user(GOAL)]
    for number in range(1, count + 1):
        messages += pair(number, text(1_600 + 173 * (number % 7), f"w{number}"))
    return [*messages, assistant("done")]


@pytest.mark.parametrize("cuts", range(1, 12))
def test_a_second_pass_over_what_a_flat_judge_left_at_the_target_changes_nothing(store: Store, cuts: int) -> None:
    """The window is such that the pass stops right at the target, by its own estimate."""
    settings = Settings(pin_last_calls=0, min_gain_percent=0, expected_calls=1_000_000)
    messages = windowed(20)
    transcript = Transcript.parse(messages)
    costs = Cuts(settings, transcript)
    flat = [Decision(e, "remove", "", Verdict(0.1, 0.1, "whole", "scripted")) for e in transcript.completed]
    order = rank_order(ranked(flat, Known.of(transcript)))
    left = transcript.tokens - sum(costs.gain(decision.exchange, "remove") or 0 for decision in order[:cuts])
    window = next(w for w in range(left * 3, left * 4) if w * settings.target_percent >= left)

    pruned = prune(messages, Fixed(), store, settings, context_length=window)

    assert actions(pruned).count("remove") == cuts
    again(pruned, store, settings=settings, context_length=window)


def test_what_was_cut_keeps_its_bytes_as_the_session_grows(store: Store) -> None:
    messages = session(6)
    settled: dict[int, Any] = {}
    for step in range(4):
        messages = prune(messages, Fixed(0.9 if step % 2 else 0.1, 0.1), store, Settings()).messages
        assert all(messages[at] == content for at, content in settled.items())
        settled |= {at: m for at, m in enumerate(messages) if m["role"] == "tool" and len(m["content"]) <= 1_500}
        messages = [
            *messages,
            *(message for n in range(4) for message in pair(10 * step + n + 20, text(3_000, f"s{n}"))),
        ]
    assert len(settled) > 8


# --- the window ---------------------------------------------------------------------------------------------------


def test_a_window_with_room_asks_nobody(store: Store) -> None:
    judge = Fixed()
    messages = session(8)

    pruned = prune(messages, judge, store, context_length=Transcript.parse(messages).tokens * 4)

    assert pruned.messages is messages
    assert judge.asked == []
    assert pruned.receipt.why == "the window has room"


def test_a_gain_too_small_for_the_cache_asks_nobody(store: Store) -> None:
    judge = Fixed()
    messages = [user(text(60_000)), *session(1, 2_000)]

    pruned = prune(messages, judge, store, context_length=round(Transcript.parse(messages).tokens / 0.7))

    assert pruned.messages is messages
    assert judge.asked == []
    assert "would not free enough" in pruned.receipt.why


def test_a_gain_that_turns_out_too_small_changes_nothing(store: Store) -> None:
    messages = [user(text(60_000)), *session(8, 3_000)]
    window = round(Transcript.parse(messages).tokens / 0.7)

    judge = ByOrdinal({1: (0.1, 0.1)}, default=(0.9, 0.9))
    pruned = prune(messages, judge, store, Settings(deepen="off"), context_length=window)

    assert pruned.messages is messages
    assert pruned.receipt.outcome == "nothing_to_prune"
    assert {(decision.action, decision.reason) for decision in pruned.decisions} == {("keep", "too little to gain")}
    assert {record.chars_before - record.chars_after for record in pruned.receipt.decisions} == {0}


def test_an_urgent_window_ignores_the_guard(store: Store) -> None:
    messages = [user(text(60_000)), *session(8, 3_000)]
    window = round(Transcript.parse(messages).tokens / 0.9)

    pruned = prune(messages, ByOrdinal({1: (0.1, 0.1)}, default=(0.9, 0.9)), store, context_length=window)

    assert changed(messages, pruned.messages)


def test_a_window_too_small_climbs_the_ladder_and_says_so(store: Store) -> None:
    messages = session(8)
    window = Transcript.parse(messages).tokens // 2

    pruned = prune(messages, Fixed(0.9, 0.9), store, Settings(), context_length=window)

    rungs = {record.reason for record in pruned.receipt.decisions if record.action != "keep"}
    assert rungs == {"ladder: unpinned", "ladder: pinned"}
    assert pruned.receipt.outcome == "compacted"
    assert pruned.receipt.used_after < 0.6 * window
    assert hermes_jev.restore(pruned.messages, store) == messages


def test_a_window_too_small_for_everything_is_at_capacity(store: Store) -> None:
    messages = [user(text(90_000)), *session(3)]

    pruned = prune(messages, store=store, settings=ALL.model_copy(update={"last_resort": "off"}), context_length=5_000)

    assert pruned.receipt.outcome == "capacity"
    assert actions(pruned) == ["remove"] * 3
    assert pruned.messages[0] is messages[0]


def test_with_nothing_to_cut_a_full_window_is_at_capacity_and_the_list_the_same(store: Store) -> None:
    messages = [user(text(90_000)), *pair(1, "short"), *pair(2, text(1_600))]

    pruned = prune(messages, Fixed(0.9, 0.9), store, Settings(pin_max_chars=1_700), context_length=5_000)

    assert pruned.messages is messages
    assert pruned.receipt.outcome == "capacity"


def test_cutting_what_costs_no_tokens_does_not_undo_a_pass(store: Store) -> None:
    """One result is a run of line ends, which a prompt hardly feels; the other is worth cutting."""
    messages = [user(GOAL), *pair(1, "\n" * 90_000), *pair(2, text(1_700)), assistant("done")]

    pruned = prune(messages, store=store)

    assert actions(pruned)[1] == "remove"
    assert pruned.receipt.tokens_after < pruned.receipt.tokens_before


# --- judge and store fail -----------------------------------------------------------------------------------------


def test_a_judge_that_is_down_cuts_nothing_and_it_is_said(store: Store) -> None:
    messages = session(8)

    pruned = prune(messages, Failing(), store)

    assert pruned.messages is messages
    assert pruned.receipt.outcome == "judge_failed"
    assert pruned.receipt.problems == ("down could not be reached or did not answer in time",)


def test_a_judge_that_is_down_in_an_urgent_window_is_replaced_and_it_is_said(store: Store) -> None:
    messages = session(8)
    window = round(Transcript.parse(messages).tokens / 0.9)

    pruned = prune(messages, Failing(), store, context_length=window)

    assert changed(messages, pruned.messages)
    assert pruned.receipt.judge == "lexical"
    assert any("stood in" in problem for problem in pruned.receipt.problems)


def test_a_partial_answer_decides_what_was_answered(store: Store) -> None:
    pruned = prune(session(5), Partial([2, 4]), store)

    assert actions(pruned) == ["keep", "remove", "keep", "remove", "keep"]
    assert pruned.receipt.partial
    assert pruned.receipt.outcome == "compacted"


@pytest.mark.parametrize("value", [float("nan"), -1.0, 7.0, "0.1", None])
def test_a_judge_that_answers_nonsense_cuts_nothing(store: Store, value: Any) -> None:
    messages = session(5)

    pruned = prune(messages, Odd({"true": value}), store)

    assert pruned.messages is messages
    assert pruned.receipt.outcome == "judge_failed"


@pytest.mark.parametrize("judge", [Failing(RuntimeError("zanzibar")), Failing(SystemError("zanzibar"))])
def test_a_judge_with_a_defect_does_not_raise(store: Store, judge: Failing, caplog: pytest.LogCaptureFixture) -> None:
    messages = session(5)

    with caplog.at_level(logging.DEBUG):
        pruned = prune(messages, judge, store)

    assert pruned.messages is messages
    assert "zanzibar" not in caplog.text


class Careless(Fixed):
    """Answers well and keeps its books badly."""

    def __init__(self, **books: Any) -> None:
        super().__init__()
        self.books = books

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        return dataclasses.replace(await super().ask(requests, deadline_s), **self.books)


@pytest.mark.parametrize(
    "books",
    [
        {"judge": None},
        {"judge": "\ud800"},
        {"model": 7},
        {"requests": "three"},
        {"failed": None},
        {"errors": (None, 3, "auth")},
        {"errors": ([],)},
        {"cost": "much"},
        {"cost": float("nan")},
        {"input_tokens": 1.5},
        {"latency_ms": "long"},
    ],
    ids=str,
)
def test_a_judge_that_keeps_its_books_badly_does_not_stop_a_pass(store: Store, books: dict[str, Any]) -> None:
    messages = session(5)

    pruned = prune(messages, Careless(**books), store)

    assert hermes_jev.restore(pruned.messages, store) == messages
    (row,) = store.receipts()
    assert json.loads(row.body, parse_constant=pytest.fail)["outcome"] == pruned.receipt.outcome


def test_what_a_judge_calls_an_error_is_no_way_into_a_receipt(store: Store) -> None:
    pruned = prune(session(5), Careless(errors=("the user said: zanzibar",)), store)

    assert "zanzibar" not in pruned.receipt.summary() + store.receipts()[0].body


class Forgetful(Store):
    """Cannot keep every other original."""

    def keep(self, session: str | None, items: Sequence[Keep]) -> list[Kept | StoreError]:
        replies = super().keep(session, items)
        return [StoreError("the disk is full") if place % 2 else reply for place, reply in enumerate(replies)]


def test_what_could_not_be_stored_stays_whole_and_the_rest_is_cut(tmp_path: Path) -> None:
    store, messages = Forgetful(tmp_path / "store"), session(5)

    pruned = prune(messages, store=store)

    assert actions(pruned) == ["remove", "keep", "remove", "keep", "remove"]
    assert changed(messages, pruned.messages) == [2, 6, 10]
    assert {d.reason for d in pruned.decisions if d.action == "keep"} == {"not stored: the disk is full"}
    assert pruned.receipt.why == "2 results stay whole: they could not be stored"
    assert pruned.receipt.tokens_after == Transcript.parse(pruned.messages).tokens
    assert hermes_jev.restore(pruned.messages, store) == messages


def test_without_a_store_every_result_stays_whole(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")
    messages = session(5)

    pruned = prune(messages, store=tmp_path / "store")

    assert pruned.messages is messages
    assert pruned.receipt.outcome == "error"
    assert pruned.receipt.why.startswith("not stored: ")
    assert {decision.action for decision in pruned.decisions} == {"keep"}
    assert any(problem.startswith("receipt not saved") for problem in pruned.receipt.problems)


def test_a_damaged_store_is_set_aside_and_the_pass_goes_on(store: Store) -> None:
    prune(session(5), store=store)
    store.path.write_bytes(b"garbage " * 5_000)
    messages = session(5)

    pruned = prune(messages, store=store)

    assert pruned.messages != messages
    assert hermes_jev.restore(pruned.messages, store) == messages
    assert len(store.aside()) == 1


# --- the call -----------------------------------------------------------------------------------------------------


def test_shadow_judges_and_records_and_cuts_nothing(store: Store) -> None:
    messages = session(5)

    pruned = prune(messages, store=store, settings=Settings(mode="shadow", pin_last_calls=0))

    assert pruned.messages is messages
    assert actions(pruned) == ["remove"] * 5
    assert (pruned.receipt.mode, pruned.receipt.outcome) == ("shadow", "compacted")
    assert pruned.receipt.chars_after == pruned.receipt.chars_before
    assert {record.pointer for record in pruned.receipt.decisions} == {""}
    assert len(store.receipts()) == 1


def test_the_task_is_part_of_the_question(store: Store) -> None:
    judge = Fixed()
    prune(session(5), judge, store)

    pruned = prune(session(5), judge, store, task="release 2.0")

    assert pruned.receipt.requests == 1
    goal = judge.asked[-1].state
    assert isinstance(goal, dict)
    assert goal["goal"] == f"release 2.0\n\n{GOAL}"


def test_a_focus_is_part_of_the_question(store: Store) -> None:
    judge = Fixed()

    run(session(5), Job(ALL, judge, store, focus="the lexer"))
    run(session(5), Job(ALL, judge, store, focus="the parser"))

    assert [request.state["focus"] for request in judge.asked if isinstance(request.state, dict)] == [
        "the lexer",
        "the parser",
    ]


@pytest.mark.parametrize("where", ["path", "text", "store"])
def test_a_store_may_be_a_folder_or_an_object(tmp_path: Path, where: str) -> None:
    folder = tmp_path / "deep" / "store"
    given: Any = {"path": folder, "text": str(folder), "store": Store(folder)}[where]

    pruned = prune(session(5), store=given)

    assert hermes_jev.restore(pruned.messages, given) == session(5)
    assert Store(folder).receipts()


def test_without_a_store_hermes_home_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))

    prune(session(5))

    assert Store(tmp_path / "hermes_jev").receipts()


@pytest.mark.parametrize("judge", ["oracle", "", "JEV"])
def test_an_unknown_judge_is_refused(store: Store, judge: str) -> None:
    with pytest.raises(ConfigError, match="judge: "):
        prune(session(5), judge, store)


def test_the_judge_may_be_named_by_the_environment(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is there, so "auto" would ask Jev; the variable says otherwise."""
    monkeypatch.setenv("TYPESAFE_API_KEY", "apikey_FAKE")
    monkeypatch.setenv("TYPESAFE_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HERMES_JEV_JUDGE", "lexical")

    assert hermes_jev.prune(session(5), store=store).receipt.judge == "lexical"


def test_without_a_key_the_embedded_judge_decides_and_jev_by_name_is_down(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("TYPESAFE_API_KEY", "JEV_API_KEY"):
        monkeypatch.delenv(variable, raising=False)

    assert prune(session(5), "auto", store).receipt.judge == "lexical"
    down = prune(session(5), "jev", store)
    assert (down.receipt.judge, down.receipt.outcome, down.receipt.requests) == ("jev", "judge_failed", 0)


@pytest.mark.parametrize(
    "messages",
    [
        None,
        "text",
        {"messages": []},
        (user("x"),),
        ["x"],
        [None],
        [{"content": "x"}],
        [{"role": "robot"}],
        [[user("x")]],
    ],
    ids=str,
)
def test_what_is_no_list_of_messages_is_refused(store: Store, messages: Any) -> None:
    with pytest.raises(InputError, match="messages: "):
        hermes_jev.prune(messages, Fixed(), store)


async def test_the_plain_function_works_inside_a_running_loop(store: Store) -> None:
    assert prune(session(5), store=store).receipt.outcome == "compacted"


async def test_the_twin_leaves_the_loop_free(store: Store) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    messages = session(5)
    pruned = await hermes_jev.aprune(messages, Fixed(), store, ALL)
    ticking.cancel()

    assert ticks > 1
    assert pruned.messages == prune(messages, store=store).messages


def test_many_messages_and_large_results(store: Store) -> None:
    messages = [user(GOAL), *(m for n in range(2_000) for m in pair(n, f"short {n}")), *pair(1, text(5_000_000))]
    messages += [assistant("done")]

    pruned = prune(messages, "lexical", store)

    assert len(pruned.messages) == len(messages)
    assert hermes_jev.restore(pruned.messages, store) == messages
