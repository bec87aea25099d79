"""What cuts mean for the provider's prompt cache: arithmetic, the prefix that stays, and passes that do not pay."""

from __future__ import annotations

import itertools
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from builders import ByOrdinal, Fixed, Message, assistant, pair, session, text, user
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev import Settings, prune
from hermes_jev.job import Job, Pruned
from hermes_jev.prompt_cache import CachePrices, Change, Prompt
from hermes_jev.prune import run
from hermes_jev.receipts import CacheRecord, Receipt
from hermes_jev.store import Store
from hermes_jev.transcript import Transcript

PRICES = CachePrices(0.30, 3.75)


def test_the_arithmetic_of_one_change() -> None:
    prompt = Prompt((1_000, 4_000, 10_000, 5_000, 700), sent=4)

    found = prompt.rewrite([Change(2, 8_000)], PRICES)

    assert found is not None
    assert (found.first, found.prefix, found.rewritten, found.freed) == (2, 5_000, 7_000, 8_000)
    assert found.once == pytest.approx(7_000 * 3.45e-6)
    assert found.saved == pytest.approx(8_000 * 0.3e-6)
    assert found.break_even == pytest.approx(1.15 * 7_000 / (0.1 * 8_000))
    assert (found.pays(10), found.pays(11)) == (False, True)


def test_what_was_never_sent_is_written_in_any_case() -> None:
    prompt = Prompt((1_000, 4_000, 10_000, 5_000), sent=2)

    found = prompt.rewrite([Change(2, 8_000), Change(3, 100)], PRICES)

    assert found is not None
    assert (found.rewritten, found.once, found.break_even) == (0, 0.0, 0.0)
    assert found.pays(1)


def test_nothing_changed_is_no_rewrite_and_nothing_freed_never_pays() -> None:
    prompt = Prompt((10, 20, 30), sent=3)
    nothing = prompt.rewrite([Change(0, 0)], PRICES)

    assert prompt.rewrite([], PRICES) is None
    assert prompt.best_start([], PRICES, 50) == 0
    assert nothing is not None
    assert nothing.break_even == math.inf
    assert not nothing.pays(1_000_000)
    assert CacheRecord.of(nothing).break_even_calls is None
    assert "never pays" in CacheRecord.of(nothing).text()


def test_a_provider_without_a_cache_price_makes_every_cut_pay() -> None:
    found = Prompt((10, 20, 30), sent=3).rewrite([Change(0, 1)], CachePrices(3.0, 3.0))

    assert found is not None
    assert found.pays(1)


def test_an_early_cut_that_frees_little_is_left_out() -> None:
    prompt = Prompt((1_000, 500, 40_000, 20_000, 2_000), sent=5)
    small, large = Change(1, 400), Change(3, 19_000)

    assert prompt.best_start([small, large], PRICES, 50) == 3
    assert prompt.best_start([small, large], PRICES, 100_000) == 1


changes = st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 100)), min_size=1, max_size=12)


@settings(derandomize=True, deadline=None)
@given(changes, st.integers(1, 400), st.floats(0, 5), st.floats(0, 5), st.floats(0, 1))
def test_no_other_start_gains_more_and_none_as_good_stands_later(
    given_sizes: list[tuple[int, int]], calls: int, read: float, written: float, sent: float
) -> None:
    prompt = Prompt([size for size, _ in given_sizes], round(sent * len(given_sizes)))
    found = [Change(at, size * share // 100) for at, (size, share) in enumerate(given_sizes) if share > 20]
    prices = CachePrices(read, written)
    start = prompt.best_start(found, prices, calls)

    def gain(first: int) -> float:
        rewrite = prompt.rewrite([change for change in found if change.at >= first], prices)
        return rewrite.gain(calls) if rewrite is not None else -math.inf

    if found:
        assert all(gain(change.at) <= gain(start) for change in found if change.at <= start)
        assert all(gain(change.at) < gain(start) for change in found if change.at > start)


# --- whole passes -------------------------------------------------------------------------------------------------


def window_of(messages: list[Message], fill: float) -> int:
    return round(Transcript.parse(messages).tokens / fill)


def pass_over(messages: list[Message], store: Store, chosen: Settings, fill: float = 0.7, **more: Any) -> Pruned:
    judge = more.pop("judge", Fixed())
    return run(messages, Job(chosen, judge, store, window=window_of(messages, fill), **more))


def early_and_late() -> list[Message]:
    """One small result at the beginning, much talk, and large results at the end."""
    talk = [m for n in range(12) for m in (user(text(4_000, f"u{n}")), assistant(text(4_000, f"a{n}")))]
    late = [m for n in range(2, 8) for m in pair(n, text(12_000, f"late{n}"))]
    return [user("go"), *pair(1, text(1_900, "early")), *talk, *late, *session(3, 200)[1:]]


def test_a_pass_leaves_the_early_cut_out_and_keeps_the_prefix(tmp_path: Path) -> None:
    messages, chosen = early_and_late(), Settings(deepen="off")

    pruned = pass_over(messages, Store(tmp_path), chosen)

    changed = [at for at, (a, b) in enumerate(zip(messages, pruned.messages, strict=True)) if a is not b]
    assert min(changed) > 20
    assert {d.reason for d in pruned.decisions if d.exchange.ordinal == 1} == {"the cached prefix is worth more"}
    cache = pruned.receipt.cache
    assert cache is not None
    assert cache.first_changed == changed[0]
    assert cache.prefix_tokens == sum(Transcript.parse(messages).sizes[: changed[0]])
    assert cache.freed_tokens == pruned.receipt.tokens_before - pruned.receipt.tokens_after
    assert f"{cache.prefix_tokens:,} tokens stay" in pruned.receipt.summary()
    assert Receipt.model_validate_json(pruned.receipt.to_json()) == pruned.receipt


@pytest.mark.parametrize(
    "more", [{"forced": True}, {"overflow": True}, {"fill": 0.9}], ids=["force", "overflow", "urgent"]
)
def test_where_room_is_what_counts_the_early_cut_is_made(tmp_path: Path, more: dict[str, Any]) -> None:
    messages = early_and_late()

    pruned = pass_over(messages, Store(tmp_path), Settings(deepen="off"), **more)

    assert pruned.messages[2] is not messages[2]


def poor() -> list[Message]:
    """A large result far in front of much talk."""
    talk = [m for n in range(30) for m in (user(text(4_000, f"u{n}")), assistant(text(4_000, f"a{n}")))]
    return [user("go"), *pair(1, text(20_000, "early")), *talk]


def test_a_pass_that_does_not_pay_is_none_and_says_so(tmp_path: Path) -> None:
    messages, chosen = poor(), Settings(deepen="off", pin_last_calls=0, min_gain_percent=0)

    pruned = pass_over(messages, Store(tmp_path), chosen)

    assert pruned.messages is messages
    assert pruned.receipt.outcome == "nothing_to_prune"
    assert "pay only after" in pruned.receipt.why
    assert pruned.receipt.cache is not None
    assert pruned.receipt.cache.break_even_calls is not None
    assert pruned.receipt.cache.break_even_calls > chosen.expected_calls
    assert {decision.action for decision in pruned.decisions} == {"keep"}


@pytest.mark.parametrize(
    ("chosen", "more"),
    [
        ({"expected_calls": 1_000}, {}),
        ({"cache_write_price": 0.3}, {}),
        ({}, {"forced": True}),
        ({}, {"fill": 0.9}),
    ],
    ids=["more calls", "no dearer writes", "force", "urgent"],
)
def test_what_makes_it_pay_or_overrides_it(tmp_path: Path, chosen: dict[str, Any], more: dict[str, Any]) -> None:
    messages = poor()

    pruned = pass_over(
        messages, Store(tmp_path), Settings(deepen="off", pin_last_calls=0, min_gain_percent=0, **chosen), **more
    )

    assert pruned.messages is not messages


@pytest.mark.parametrize("price", [0, 3])
def test_where_writing_costs_no_more_than_reading_nothing_is_left_out(tmp_path: Path, price: float) -> None:
    """A local model costs nothing either way; its window fills all the same."""
    messages = early_and_late()
    free = Settings(deepen="off", cached_input_price=price, cache_write_price=price)

    pruned = pass_over(messages, Store(tmp_path), free)

    assert pruned.messages[2] is not messages[2]
    assert pruned.receipt.count("keep") == 0


def test_where_reading_costs_nothing_a_pass_never_pays_and_says_so(tmp_path: Path) -> None:
    chosen = Settings(deepen="off", cached_input_price=0, min_gain_percent=0)

    pruned = pass_over(early_and_late(), Store(tmp_path), chosen)

    assert pruned.receipt.why == "writing the cache again would never pay"


def test_without_a_window_nothing_is_weighed(tmp_path: Path) -> None:
    messages = poor()

    pruned = prune(messages, Fixed(), tmp_path, Settings(pin_last_calls=0))

    assert pruned.messages[2] is not messages[2]


# --- the deep pass ------------------------------------------------------------------------------------------------


def busy() -> list[Message]:
    """Calls with long inputs, some with large results, and turns in between of which the assistant says nothing."""
    found = [user("go")]
    for number in range(1, 31):
        given = {"path": f"src/m{number}.py", "content": text(3_000, f"in{number}")}
        large = number % 3 == 0
        found += pair(
            number, text(4_000 if large else 600, f"out{number}"), "write_file" if number % 2 else "terminal", given
        )
    return [*found, assistant("So far.")]


def rungs(pruned: Pruned) -> tuple[str, ...]:
    return tuple(rung.removeprefix("deep pass: ") for rung in pruned.receipt.rungs)


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        ("off", ()),
        ("inputs", ("long input",)),
        ("turns", ("long input", "old turn")),
    ],
)
def test_each_depth_cuts_what_it_names(tmp_path: Path, depth: Any, expected: tuple[str, ...]) -> None:
    messages = busy()
    chosen = Settings(deepen=depth, target_percent=0.05, min_gain_percent=0)

    pruned = pass_over(messages, Store(tmp_path), chosen, judge=Fixed(0.9, 0.9))

    assert set(rungs(pruned)) == set(expected)
    assert all(record.action == "keep" for record in pruned.receipt.decisions if record.ordinal % 3 == 0)
    words = [m["content"] for m in messages if m["role"] != "tool" and m["content"]]
    assert [m["content"] for m in pruned.messages if m["role"] != "tool" and m["content"]] == words
    assert pruned.messages[-7:] == messages[-7:]


def test_it_stops_at_the_target(tmp_path: Path) -> None:
    messages = busy()

    pruned = pass_over(messages, Store(tmp_path), Settings(target_percent=0.5), judge=Fixed(0.9, 0.9))

    window = pruned.receipt.window or 0
    assert 0.4 * window < pruned.receipt.used_after <= 0.5 * window
    assert rungs(pruned) == ("long input",)


@pytest.mark.parametrize("answer", [(None, None), (0.9, 0.9), (0.1, 0.9)])
def test_a_call_whose_result_is_kept_or_unanswered_stays_whole(tmp_path: Path, answer: Any) -> None:
    messages = busy()
    judge = ByOrdinal({3: answer}, default=(0.1, 0.1))

    pruned = pass_over(messages, Store(tmp_path), Settings(target_percent=0.05), judge=judge)

    held = [message for message in pruned.messages if "out3 " in str(message) or "in3 " in str(message)]
    assert held == [message for message in messages if "out3 " in str(message) or "in3 " in str(message)]
    assert len(pruned.messages) < len(messages)


def test_recent_calls_stay_however_many_are_pinned(tmp_path: Path) -> None:
    messages = busy()
    chosen = Settings(target_percent=0.05, pin_last_calls=25)

    pruned = pass_over(messages, Store(tmp_path), chosen, judge=Fixed(0.9, 0.9), forced=True)

    assert pruned.messages is not messages
    assert pruned.messages[-51:] == messages[-51:]


def test_the_call_of_a_pinned_result_stays_whole(tmp_path: Path) -> None:
    plan = {"todos": text(3_000, "plan")}
    messages = [user("go"), *pair(99, text(2_000, "list"), "memory", plan), *busy()[1:]]

    pruned = pass_over(messages, Store(tmp_path), Settings(target_percent=0.05))

    assert "deep pass: long input" in pruned.receipt.rungs
    assert pruned.messages[1:3] == messages[1:3]


def test_turns_that_take_less_than_the_line_that_names_them_stay(tmp_path: Path) -> None:
    small = [m for n in range(40) for m in (*pair(n, "ok", "ls", "{}"), *pair(n + 50, "ok", "ls", "{}"), user("on"))]
    messages = [user("go"), *small, *pair(200, text(2_000, "old")), *session(12, 1_000)]

    pruned = pass_over(messages, Store(tmp_path), Settings(), judge=Fixed(0.9, 0.9))

    assert [m for m in pruned.messages[: len(small) + 1] if m not in messages] == []
    assert pruned.messages[: len(small) + 1] == messages[: len(small) + 1]


@pytest.mark.parametrize("depth", ["off", "inputs", "turns"])
@pytest.mark.parametrize("share", [0.5, 0.8, 1.05])
def test_a_pass_over_what_an_overflow_left_changes_nothing(tmp_path: Path, depth: Any, share: float) -> None:
    messages, store, chosen = busy(), Store(tmp_path), Settings(deepen=depth)
    window = window_of(messages, 1 / share)

    first = prune(messages, Fixed(0.9, 0.9), store, chosen, context_length=window)
    second = prune(first.messages, Fixed(0.9, 0.9), store, chosen, context_length=window)

    assert first.messages is not messages
    assert second.messages is first.messages


def test_what_leaves_with_its_turn_is_not_told_as_shortened_too(tmp_path: Path) -> None:
    """Inputs go first in the deep pass; then the ladder takes the whole turn."""
    messages = busy()

    pruned = pass_over(messages, Store(tmp_path), Settings(deepen="inputs"), fill=8, judge=Fixed(0.9, 0.9))

    done = [(record.ordinal, record.action) for record in pruned.receipt.decisions if record.action != "keep"]
    gone = {ordinal for ordinal, action in done if action == "drop"}
    assert gone
    assert not gone & {ordinal for ordinal, action in done if action == "arguments"}


def test_a_rolling_pass_climbs_no_ladder(tmp_path: Path) -> None:
    """A host that waits after passes that changed nothing offers it also above the trigger."""
    messages = session(30, 6_000)

    pruned = pass_over(messages, Store(tmp_path), Settings(), fill=0.95, judge=Fixed(0.1, 0.1), rolling=True)

    assert pruned.messages is not messages
    assert pruned.receipt.rungs == ()
    assert pruned.receipt.outcome == "compacted"


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    st.lists(st.sampled_from((600, 1_900, 4_000, 9_000)), min_size=4, max_size=14),
    st.lists(st.sampled_from((0, 0, 700, 5_000)), min_size=4, max_size=14),
    st.sampled_from((0.35, 0.5, 0.7, 0.84, 0.95)),
    st.sampled_from(("off", "inputs", "turns")),
    st.sampled_from((1, 10, 25, 50, 200)),
    st.sampled_from((0.0, 0.05)),
    st.sampled_from((Fixed(), Fixed(0.9, 0.9), ByOrdinal({2: (0.9, 0.9), 5: (0.9, 0.1), 7: (0.2, 0.8)}))),
)
def test_a_pass_over_its_own_output_changes_nothing_and_asks_nothing(
    results: list[int], talk: list[int], fill: float, depth: Any, calls: int, least: float, judge: Any
) -> None:
    """Whatever is left out for the prefix, or cut for the target, stays so."""
    messages = [user("go")]
    for number, (size, words) in enumerate(zip(results, itertools.cycle(talk), strict=False), 1):
        given = {"path": f"m{number}.py", "content": text(words, f"in{number}")}
        messages += pair(number, text(size, f"out{number}"), "write_file", given, words=text(words, "w") or None)
    messages.append(assistant("done"))
    chosen = Settings(deepen=depth, expected_calls=calls, min_gain_percent=least, pin_last_calls=1)
    window = window_of(messages, fill)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        first = prune(messages, judge, store, chosen, context_length=window)
        judge.asked.clear()
        second = prune(first.messages, judge, store, chosen, context_length=window)

    assert second.messages is first.messages
    assert judge.asked == []
