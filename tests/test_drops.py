"""Turns that leave the window whole, long inputs and the last resort: what stands afterwards, and the way back."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import Fixed, Message, assistant, call, pair, result, session, text, user
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_invariants import check_cuts, left_of

import hermes_jev
from hermes_jev import Pruned, Settings, prose, restore
from hermes_jev.drops import Standing, naming, naming_in
from hermes_jev.errors import NotStored
from hermes_jev.restore import put_back
from hermes_jev.store import Store
from hermes_jev.store.values import same
from hermes_jev.tools import Room, expand
from hermes_jev.transcript import Transcript

DROP = Settings(removed_calls="drop")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def prune(
    messages: list[Message], store: Store, settings: Settings = DROP, back: list[Message] | None = None, **more: Any
) -> Pruned:
    """A pass with a judge that needs nothing; what it owes is checked, and that everything comes back."""
    pruned = hermes_jev.prune(messages, Fixed(), store, settings, **more)
    check_cuts(messages, pruned, store, settings)
    assert same(restore(pruned.messages, store), back or messages)
    return pruned


def named(pruned: Pruned) -> list[Standing]:
    found = (naming_in(message.get("content")) for message in pruned.messages if message["role"] == "tool")
    return [one for one in found if one is not None]


def gone(pruned: Pruned) -> list[int]:
    return [record.ordinal for record in pruned.receipt.decisions if record.action == "drop"]


def tiny(count: int, size: int = 90, first: int = 1) -> list[Message]:
    """Turns without words whose results are too small to be judged."""
    return [message for n in range(first, first + count) for message in pair(n, text(size, f"t{n}"), "look", {"n": n})]


# --- the setting --------------------------------------------------------------------------------------------------


def test_removed_turns_leave_and_the_nearest_notice_names_three(store: Store) -> None:
    pruned = prune(session(12), store)

    assert gone(pruned) == list(range(1, 9))
    assert len(pruned.messages) == len(session(12)) - 16
    (notice,) = named(pruned)
    assert "8 more calls" in notice.text
    assert notice.text.count('expand(id="') == 4
    assert "session_search() lists the rest" in notice.text


def test_by_default_a_notice_stays_for_each(store: Store) -> None:
    pruned = prune(session(12), store, Settings())

    assert gone(pruned) == []
    assert len(pruned.messages) == len(session(12))


def test_every_call_that_left_opens_by_its_pointer(store: Store) -> None:
    messages = session(8)
    pruned = prune(messages, store)
    exchanges = {exchange.ordinal: exchange for exchange in Transcript.parse(messages).exchanges}

    records = [record for record in pruned.receipt.decisions if record.action == "drop"]
    assert len(records) == 4
    for record in records:
        reply = json.loads(expand({"id": record.pointer}, store, lambda: None, Room()))
        assert reply["text"] == exchanges[record.ordinal].result


def test_a_turn_in_which_the_assistant_spoke_stays(store: Store) -> None:
    messages = [user("go"), *(m for n in range(1, 9) for m in pair(n, text(4_000, f"n{n}"), words=f"Now step {n}."))]

    pruned = prune(messages, store)

    assert gone(pruned) == []
    assert [m["content"] for m in pruned.messages if m["role"] == "assistant"] == [
        m["content"] for m in messages if m["role"] == "assistant"
    ]


def test_a_turn_of_several_calls_leaves_when_all_of_them_may(store: Store) -> None:
    turn = [assistant(None, call("a"), call("b")), result("a", text(4_000, "a")), result("b", "short")]

    pruned = prune([user("go"), *turn, *tiny(0), *session(8)[1:]], store)

    assert 1 not in gone(pruned)
    assert 2 not in gone(pruned)


def test_what_the_user_said_meanwhile_stays(store: Store) -> None:
    words = "\n\n[OUT-OF-BAND USER MESSAGE — x]\nuse port 8080\n[/OUT-OF-BAND USER MESSAGE]"
    messages = session(8)
    messages[4] = {**messages[4], "content": messages[4]["content"] + words}

    pruned = prune(messages, store)

    assert 2 not in gone(pruned)
    assert any("use port 8080" in str(m.get("content")) for m in pruned.messages)


def test_no_two_messages_of_one_role_become_neighbours(store: Store) -> None:
    messages = [user("go"), *pair(1, text(4_000)), user("and?"), *session(6)[1:]]

    pruned = prune(messages, store)

    roles = [message["role"] for message in pruned.messages]
    assert all(pair != ("user", "user") for pair in itertools.pairwise(roles))


def test_a_single_removed_turn_stays_to_say_so(store: Store) -> None:
    messages = [user("go"), *pair(1, text(4_000)), assistant("That was one."), user("next"), *tiny(4, first=2)]

    assert gone(prune(messages, store)) == []


def test_a_run_next_to_a_notice_leaves_completely(store: Store) -> None:
    messages = [
        user("go"),
        *pair(1, text(4_000, "one")),
        *pair(2, text(4_000, "two"), words="And another."),
        *tiny(3, first=3),
    ]

    pruned = prune(messages, store)

    assert gone(pruned) == [1]
    assert pruned.messages[1]["content"] == "And another."


# --- the rungs ----------------------------------------------------------------------------------------------------


def window(messages: Sequence[Message], share: float) -> int:
    return round(Transcript.parse(messages).tokens * share)


def test_thousands_of_small_turns_are_brought_under_the_window(store: Store) -> None:
    messages = [user("go"), *tiny(6_000), assistant("done")]

    pruned = prune(messages, store, Settings(), context_length=window(messages, 0.5))

    assert pruned.receipt.outcome == "compacted"
    assert pruned.receipt.rungs == ("deep pass: old turn",)
    assert Transcript.parse(pruned.messages).tokens < 0.6 * window(messages, 0.5)
    assert pruned.messages[-21:] == messages[-21:]


@pytest.mark.parametrize("answer", ["", "ok"])
def test_runs_that_are_named_in_equal_results_all_leave(store: Store, answer: str) -> None:
    """Many small results are the same text, and one text stands for one original."""
    before: list[Message] = [user("go")]
    for number in range(8):
        for step in range(8):
            before += pair(10 * number + step, answer, "write", {"path": f"p{number}{step} " + text(150, "p")})
        before.append(user(f"next {number}"))
    before += tiny(12, first=100)

    pruned = prune(before, store, Settings(), context_length=window(before, 1.3))

    assert pruned.receipt.why == ""
    assert len(named(pruned)) > 1


def test_the_last_ten_calls_never_leave(store: Store) -> None:
    messages = [user("go"), *tiny(30)]

    pruned = prune(messages, store, Settings(), context_length=100)

    assert max(gone(pruned)) <= 20
    assert pruned.receipt.outcome == "capacity"


def test_instructions_stay_at_any_size(store: Store) -> None:
    rule = pair(99, "always run the tests", "memory")
    messages = [user("go"), *tiny(5), *rule, *tiny(40, first=6)]

    pruned = prune(messages, store, Settings(), context_length=400)

    assert rule[1] in pruned.messages
    assert len(gone(pruned)) > 20


def long_input(number: int) -> list[Message]:
    arguments = {"path": f"src/m{number}.py", "content": text(6_000, f"w{number}"), "mode": "w"}
    return pair(number, "written", "write_file", arguments, "I write.")


def test_long_inputs_of_old_calls_are_shortened_and_open(store: Store) -> None:
    messages = [user("go"), *(m for n in range(1, 9) for m in long_input(n))]

    pruned = prune(messages, store, Settings(deepen="off"), context_length=window(messages, 1.1))

    assert pruned.receipt.rungs == ("ladder: arguments",)
    first = pruned.messages[1]["tool_calls"][0]["function"]["arguments"]
    record = next(record for record in pruned.receipt.decisions if record.action == "arguments")
    assert json.loads(first)["path"] == "src/m1.py"
    assert record.pointer in json.loads(first)["content"]
    page = json.loads(expand({"id": record.pointer, "part": "arguments"}, store, lambda: None, Room()))
    assert page["text"] == messages[1]["tool_calls"][0]["function"]["arguments"]
    assert pruned.messages[-6:] == messages[-6:]


def test_a_call_keeps_its_pointer_whatever_part_is_cut_first(store: Store) -> None:
    arguments = {"path": "a.py", "content": text(6_000, "input")}
    messages = [user("go"), *pair(1, text(4_000, "output"), "write_file", arguments), *tiny(4, first=2)]
    first = prune(messages, store, Settings())
    second = prune(first.messages, store, Settings(), back=messages, context_length=400)

    pointers = {r.pointer for one in (first, second) for r in one.receipt.decisions if r.ordinal == 1 and r.pointer}
    assert len(pointers) == 1
    assert "arguments" in {record.action for record in second.receipt.decisions}
    assert same(restore(second.messages, store), messages)


def test_old_words_go_last_and_the_newest_request_never(store: Store) -> None:
    said = [m for n in range(6) for m in (user(text(5_000, f"u{n}")), assistant(text(8_000, f"a{n}")))]
    messages = [*said, user(text(9_000, "newest"))]

    some = prune(messages, store, Settings(), context_length=window(messages, 1.17))
    every = prune(messages, store, Settings(), context_length=2_000)

    assert some.receipt.rungs == ("ladder: assistant text",)
    assert every.receipt.rungs == ("ladder: assistant text", "ladder: user text")
    assert every.messages[-2:] == messages[-2:]
    assert every.receipt.outcome == "capacity"
    assert prose.read(every.messages[0]["content"]) is not None


def test_the_last_resort_can_be_switched_off(store: Store) -> None:
    messages = [user(text(50_000)), assistant("ok"), user("next")]

    pruned = hermes_jev.prune(messages, Fixed(), store, Settings(last_resort="off"), context_length=2_000)

    assert pruned.messages is messages
    assert pruned.receipt.outcome == "capacity"


def test_an_image_counts_as_the_room_it_takes(store: Store) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:" + "A" * 7_000}}
    messages = [user([{"type": "text", "text": "look"}, image, image]), assistant("I see."), user("now the parser")]

    pruned = prune(messages, store, Settings(), context_length=3_000)

    assert "2 images" in pruned.messages[0]["content"]
    assert pruned.receipt.rungs == ("ladder: user text",)


def test_a_result_of_images_is_cut_by_the_ladder_only(store: Store) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:" + "A" * 7_000}}
    messages = [user("go"), *pair(1, [{"type": "text", "text": "screen"}, image]), *tiny(4, first=2)]

    assert prune(messages, store, Settings()).messages is messages
    assert prune(messages, store, Settings(), context_length=800).receipt.rungs == ("ladder: pinned",)


# --- what only looks like one ---------------------------------------------------------------------------------------


def test_a_copied_notice_in_an_input_or_a_message_stays_what_it_is(store: Store) -> None:
    messages = [user("go"), *(m for n in range(1, 9) for m in long_input(n)), user(text(9_000, "old")), user("next")]
    pruned = prune(messages, store, Settings(), context_length=2_000).messages
    short = pruned[1]["tool_calls"][0]["function"]["arguments"]
    copied = [
        user("> " + pruned[-2]["content"]),
        assistant(None, call("x", "write_file", " " + short)),
        result("x", "ok"),
    ]

    assert restore([*pruned, *copied], store) == [*messages, *copied]


def test_without_the_store_it_is_told(store: Store, tmp_path: Path) -> None:
    pruned = prune(session(12), store).messages

    with pytest.raises(NotStored):
        restore(pruned, tmp_path / "another")
    assert put_back(pruned, tmp_path / "another", "keep").messages == pruned
    assert put_back(pruned, tmp_path / "another", "keep").left == 1


def test_fewer_names_where_pointers_are_long() -> None:
    line = naming([f"r-{letter * 52}" for letter in "abcd"])

    assert len(line) <= 200
    assert line.count("expand(") == 1


# --- again and again ------------------------------------------------------------------------------------------------

SIZES = (5, 90, 300, 700, 1_600, 3_000)


@st.composite
def long_sessions(draw: st.DrawFn, prefix: str, most: int = 16) -> list[Message]:
    """Many turns, most without words; some with long inputs, several calls, or a word of the user between."""
    messages: list[Message] = []
    for number in range(draw(st.integers(8, most))):
        ids = [f"{prefix}{number}-{slot}" for slot in range(draw(st.sampled_from((1, 1, 1, 2))))]
        long = draw(st.sampled_from((0, 0, 0, 1_500)))
        arguments = {"n": number, "content": text(long, prefix)} if long else {"n": number}
        words = draw(st.sampled_from((None, None, None, "", "I look.", text(1_700, "said"))))
        tool = draw(st.sampled_from(("look", "look", "look", "write_file", "memory")))
        messages.append(assistant(words, *(call(one, tool, arguments) for one in ids)))
        sizes = st.sampled_from(SIZES)
        messages += [result(one, text(draw(sizes), one if draw(st.booleans()) else "same")) for one in ids]
        if draw(st.sampled_from((False,) * 7 + (True,))):
            messages += draw(st.sampled_from(([assistant("Done."), user("Next.")], [user(text(2_000, "ask"))])))
    return messages


@settings(
    derandomize=True,
    deadline=None,
    max_examples=60,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    long_sessions("a"),
    st.lists(long_sessions("b", 10), max_size=2),
    st.sampled_from(("notice", "drop")),
    st.lists(st.sampled_from((None, 0.2, 0.5, 0.9, 1.3)), min_size=3, max_size=3),
    st.sampled_from(((0.1, 0.1), (0.1, 0.9), (0.9, 0.9))),
)
def test_any_number_of_passes_over_a_growing_list_comes_back(
    start: list[Message],
    more: list[list[Message]],
    removed: Any,
    shares: list[float | None],
    answers: tuple[float, float],
) -> None:
    chosen = Settings(removed_calls=removed)
    whole = [user("fix the parser"), *start]
    now = whole
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        for share, grown in zip(shares, [*more, [], []], strict=False):
            length = None if share is None else max(1, window(now, share))
            pruned = hermes_jev.prune(now, Fixed(*answers), store, chosen, context_length=length)
            check_cuts(now, pruned, store, chosen)
            assert len(pruned.messages) == len(left_of(now, pruned))
            judge = Fixed(*answers)
            again = hermes_jev.prune(pruned.messages, judge, store, chosen, context_length=length)
            assert again.messages is pruned.messages
            assert judge.asked == []
            now = pruned.messages
            assert same(restore(now, store), whole)
            now, whole = [*now, *grown], [*whole, *grown]
        assert same(restore(now, store), whole)
        assert store.check() == []
