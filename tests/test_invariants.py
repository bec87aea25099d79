"""What must hold for every transcript, judge, setting and window."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import odd_sessions as odd
from builders import GOAL, Fixed, Message, assistant, pair, session, text, user
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hermes_jev import Pruned, Settings, prose, prune, restore
from hermes_jev.drops import naming_in
from hermes_jev.job import Job
from hermes_jev.judge import Answer, Judge
from hermes_jev.notice import cut_in, read
from hermes_jev.policy import CLEARLY_SHORTER
from hermes_jev.prune import run
from hermes_jev.store import Store
from hermes_jev.store.values import same
from hermes_jev.tokens import CHARS_PER_IMAGE, content_text, images_in
from hermes_jev.tools import Room, expand
from hermes_jev.transcript import Transcript

ROOT = Path(__file__).resolve().parent.parent
MakeJudge = Callable[[], Judge]

few = settings(
    derandomize=True,
    deadline=None,
    max_examples=50,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],
)


@contextmanager
def a_store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        yield Store(Path(folder))


def window_of(messages: Sequence[Message], share: float | None) -> int | None:
    return None if share is None else max(1, round(Transcript.parse(messages).tokens * share))


def size(content: Any) -> int:
    """Characters of a result, however it is held."""
    return len(content_text(content) if isinstance(content, str | list) else json.dumps(content, ensure_ascii=False))


def left_of(before: Sequence[Message], pruned: Pruned) -> list[int]:
    """Positions of the messages that did not leave with their turn."""
    exchanges = {exchange.ordinal: exchange for exchange in Transcript.parse(before).exchanges}
    gone = [exchanges[record.ordinal] for record in pruned.receipt.decisions if record.action == "drop"]
    places = {at for exchange in gone for at in (exchange.call_at, exchange.result_at)}
    return [at for at in range(len(before)) if at not in places]


def cut_places(before: Sequence[Message], pruned: Pruned) -> dict[int, Message]:
    """What stands now where something else stood, by the position it had."""
    left = left_of(before, pruned)
    assert len(pruned.messages) == len(left)
    return {at: new for at, new in zip(left, pruned.messages, strict=True) if before[at] is not new}


def check_cuts(before: list[Message], pruned: Pruned, store: Store, chosen: Settings) -> None:
    """Everything that a pruned list owes to the one it came from."""
    places = cut_places(before, pruned)
    records = pruned.receipt.decisions
    for at, new in places.items():
        old = before[at]
        assert list(new) == list(old)
        check_result(old, new, store, chosen) if old["role"] == "tool" else check_words(old, new, records)
    check_what_left(before, pruned, store, chosen)
    assert bool(places or any(record.action == "drop" for record in records)) is (pruned.messages is not before)
    kept = [before[at] for at in left_of(before, pruned)]
    assert pairs(pruned.messages) == pairs(kept)
    assert len(json.dumps(pruned.messages)) <= len(json.dumps(before))


def pairs(messages: Sequence[Message]) -> list[Any]:
    return [(e.state, e.ordinal, e.tool, e.call_at, e.result_at) for e in Transcript.parse(messages).exchanges]


def check_result(old: Message, new: Message, store: Store, chosen: Settings) -> None:
    assert all(new[key] is old[key] for key in old if key != "content")
    assert isinstance(new["content"], str)
    assert len(new["content"]) <= chosen.pin_max_chars
    names = naming_in(new["content"])
    notice = read(names.bare if names else new["content"])
    if names is None or notice is not None:
        assert names is not None or bulk(old["content"]) - len(new["content"]) >= CLEARLY_SHORTER
        assert notice is not None
        assert notice.whole
        assert same(store.get(notice.id, None).result, old["content"]) or names is not None


def bulk(content: Any) -> int:
    return size(content) + CHARS_PER_IMAGE * images_in(content)


def check_words(old: Message, new: Message, records: Sequence[Any]) -> None:
    """Words and inputs change only in a rung that names itself."""
    changed = {key for key in old if new[key] is not old[key]}
    assert changed <= {"content", "tool_calls"}
    if "content" in changed:
        assert f"ladder: {old['role']} text" in {record.reason for record in records if record.action == "text"}
        assert prose.read(new["content"]) is not None
    if "tool_calls" in changed:
        assert {"ladder: arguments", "deep pass: long input"} & {
            record.reason for record in records if record.action == "arguments"
        }
        for was, now in zip(old["tool_calls"], new["tool_calls"], strict=True):
            if was is not now:
                assert (
                    json.loads(now["function"]["arguments"]).keys() == json.loads(was["function"]["arguments"]).keys()
                )
                assert {**now, "function": None} == {**was, "function": None}


def check_what_left(before: Sequence[Message], pruned: Pruned, store: Store, chosen: Settings) -> None:
    exchanges = {exchange.ordinal: exchange for exchange in Transcript.parse(before).exchanges}
    for record in pruned.receipt.decisions:
        if record.action == "drop":
            exchange = exchanges[record.ordinal]
            assert record.reason in ("ladder: drop", "deep pass: old turn") or chosen.removed_calls == "drop"
            assert not before[exchange.call_at].get("content")
            original = store.get(record.pointer, None)
            # A part that was cut before is what it was before that.
            assert cut_in(exchange.result) or naming_in(exchange.result) or same(original.result, exchange.result)
            assert "[hermes_jev: " in exchange.arguments or original.arguments == exchange.arguments


@few
@given(odd.transcripts(), odd.judges(), odd.settings, odd.windows)
def test_words_order_and_pairs_stay_and_every_cut_comes_back(
    messages: list[Message], make: MakeJudge, chosen: Settings, share: float | None
) -> None:
    given_messages, shallow = copy.deepcopy(messages), list(messages)
    with a_store() as store:
        pruned = prune(messages, make(), store, chosen, context_length=window_of(messages, share))

        assert same(messages, given_messages)
        assert all(now is then for now, then in zip(messages, shallow, strict=True))
        check_cuts(messages, pruned, store, chosen)
        assert same(restore(pruned.messages, store), given_messages)


engine_jobs = st.fixed_dictionaries(
    {
        "focus": st.sampled_from(("", "\ud800 the parser")),
        "used": st.sampled_from((None, 0.7, 1.4)),
        "forced": st.booleans(),
        "overflow": st.booleans(),
    }
)


@few
@given(odd.transcripts(), odd.judges(), odd.settings, odd.windows, engine_jobs)
def test_a_pass_of_the_engine_holds_to_the_same(
    messages: list[Message], make: MakeJudge, chosen: Settings, share: float | None, more: dict[str, Any]
) -> None:
    """As above with what only the engine has: a counted prompt, force, an overflow, a focus and a session."""
    with a_store() as store:
        counted = {**more, "window": window_of(messages, share), "used": window_of(messages, more["used"])}
        pruned = run(messages, Job(chosen, make(), store, session="s", **counted))

        check_cuts(messages, pruned, store, chosen)
        assert same(restore(pruned.messages, store), messages)
        for record in pruned.receipt.decisions:
            if record.pointer:
                assert same(store.get(record.pointer, ["s"]), store.get(record.pointer, None))


@settings(few, max_examples=25)
@given(odd.transcripts(), odd.settings, st.sampled_from((None, 1_500, 9_000)))
def test_the_pages_of_every_pointer_are_the_original(
    messages: list[Message], chosen: Settings, window: int | None
) -> None:
    room = Room(window)
    with a_store() as store:
        pruned = prune(messages, Fixed(), store, chosen)
        for at, new in cut_places(messages, pruned).items():
            named = naming_in(new["content"])
            notice = read(named.bare if named else new["content"])
            assert notice is not None
            pages: list[Any] = []
            offset: int | None = 0
            while offset is not None:
                reply = expand({"id": notice.id, "offset": offset}, store, lambda: None, room)
                assert len(reply) <= room.chars
                pages.append(json.loads(reply))
                offset = pages[-1]["next_offset"]
            whole = "".join(page["text"] for page in pages)
            original = messages[at]["content"]
            assert pages[0]["format"] == ("text" if isinstance(original, str) else "json")
            assert same(whole if isinstance(original, str) else json.loads(whole), original)


@few
@given(odd.transcripts(), odd.judges(), odd.settings, odd.windows)
def test_a_second_pass_changes_nothing_and_asks_nothing_that_was_answered(
    messages: list[Message], make: MakeJudge, chosen: Settings, share: float | None
) -> None:
    window = window_of(messages, share)
    with a_store() as store:
        first = prune(messages, make(), store, chosen, context_length=window)
        judge: Any = make()
        second = prune(first.messages, judge, store, chosen, context_length=window)

        assert second.messages is first.messages
        answered = {
            d.exchange.ordinal
            for d in first.decisions
            if d.verdict is not None and (d.verdict.call is not None or d.verdict.output is not None)
        }
        assert not answered & {int(name[1:].split("_")[0]) for name in judge.question_ids}


@few
@given(odd.transcripts(), odd.judges(), odd.settings, odd.windows)
def test_the_same_input_gives_the_same_bytes(
    messages: list[Message], make: MakeJudge, chosen: Settings, share: float | None
) -> None:
    window = window_of(messages, share)
    with a_store() as one, a_store() as other:
        first = prune(messages, make(), one, chosen, context_length=window)
        second = prune(copy.deepcopy(messages), make(), other, chosen, context_length=window)

    assert same(first.messages, second.messages)
    assert first.receipt.model_copy(update={"latency_ms": 0}) == second.receipt.model_copy(update={"latency_ms": 0})


@few
@given(odd.transcripts("a", 4), odd.transcripts("b", 3), odd.judges(), odd.settings, odd.windows, odd.windows)
def test_what_is_settled_stays_as_the_session_grows(
    messages: list[Message],
    more: list[Message],
    make: MakeJudge,
    chosen: Settings,
    share: float | None,
    later: float | None,
) -> None:
    with a_store() as store:
        first = prune(messages, make(), store, chosen, context_length=window_of(messages, share))
        grown = [*first.messages, *more]
        second = prune(grown, make(), store, chosen, context_length=window_of(grown, later))

        changed = cut_places(grown, second)
        for at, message in enumerate(first.messages):
            if all(message is not one for one in messages) and at in changed:
                reasons = {record.reason for record in second.receipt.decisions if record.action != "keep"}
                assert any(reason.startswith(("ladder: ", "deep pass: ")) for reason in reasons)
        check_cuts(grown, second, store, chosen)
        assert same(restore(second.messages, store), [*messages, *more])


@few
@given(odd.transcripts(), odd.judges(), odd.settings)
def test_bytes_before_the_first_change_are_the_same(messages: list[Message], make: MakeJudge, chosen: Settings) -> None:
    """The provider's cached prefix survives up to there."""
    with a_store() as store:
        pruned = prune(messages, make(), store, chosen)
    after, left = pruned.messages, left_of(messages, pruned)
    changed = [at for at in range(len(messages)) if at not in left or at in cut_places(messages, pruned)]
    first = changed[0] if changed else len(messages)

    before = json.dumps(messages)
    assert len(json.dumps(after)) <= len(before)
    assert json.dumps(after[:first]) == json.dumps(messages[:first])


@settings(few, max_examples=25)
@given(odd.transcripts(), odd.settings, odd.windows)
def test_a_store_that_cannot_be_used_changes_nothing(
    messages: list[Message], chosen: Settings, share: float | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        blocked = Path(folder) / "store"
        blocked.write_text("a file where the folder should be")
        pruned = prune(messages, Fixed(), blocked, chosen, context_length=window_of(messages, share))

    assert pruned.messages is messages
    assert {decision.action for decision in pruned.decisions} <= {"keep"}


HOSTILE: st.SearchStrategy[Any] = st.sampled_from(
    (0.1, 0.9, -1.0, 2.0, float("nan"), float("inf"), "0.1", None, True, [], {})
)


class Hostile(Fixed):
    """Answers with whatever it was given, in turn, and leaves out every third question."""

    def __init__(self, values: Sequence[Any]) -> None:
        super().__init__()
        self.values = values

    def answer(self, question: Any) -> Any:
        number = len(question.id) + int(question.id[1:].split("_")[0])
        return None if number % 3 == 0 else Answer({"true": self.values[number % len(self.values)]})


@settings(few, max_examples=30)
@given(odd.transcripts(), st.lists(HOSTILE, min_size=1, max_size=4), odd.settings, odd.windows)
def test_whatever_a_judge_answers_nothing_is_lost(
    messages: list[Message], values: list[Any], chosen: Settings, share: float | None
) -> None:
    with a_store() as store:
        pruned = prune(messages, Hostile(values), store, chosen, context_length=window_of(messages, share))

        check_cuts(messages, pruned, store, chosen)
        assert same(restore(pruned.messages, store), messages)


# --- in any process -----------------------------------------------------------------------------------------------

CHILD = """
import hashlib, json, sys, tempfile
from builders import Fixed, ByOrdinal
from hermes_jev import Settings, prune
digests = []
for messages in json.load(sys.stdin):
    for judge in ("lexical", Fixed(0.9, 0.1), ByOrdinal({1: (0.9, 0.1), 3: (None, 0.7)})):
        for window in (None, 9_000):
            with tempfile.TemporaryDirectory() as folder:
                pruned = prune(messages, judge, folder, Settings(pin_last_calls=1), context_length=window)
            receipt = pruned.receipt.model_copy(update={"latency_ms": 0}).model_dump_json()
            digests.append(hashlib.sha256((json.dumps(pruned.messages) + receipt).encode()).hexdigest())
print(json.dumps(digests))
"""


def samples() -> list[list[Message]]:
    mixed = [user(GOAL)]
    for number, size in enumerate((1_600, 9_000, 2_400, 70_000, 3_000), 1):
        mixed += pair(
            number, text(size, f"m{number}") + "\ud800漢é", "read_file", {"path": f"src/m{number}.py"}, "I look."
        )
    return [session(14, 3_000), [*mixed, assistant("done")], [user("hi")]]


def digests(seed: str, zone: str) -> Any:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("HERMES_", "TYPESAFE_", "JEV_"))},
        "PYTHONHASHSEED": seed,
        "TZ": zone,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests"))),
    }
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(samples()),
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    return json.loads(child.stdout)


def test_another_process_with_another_seed_and_clock_gives_the_same_bytes() -> None:
    one, other = digests("1", "UTC"), digests("4242", "Asia/Kathmandu")

    assert one == other
    assert len(set(one)) > 10
    assert all(len(digest) == hashlib.sha256().digest_size * 2 for digest in one)
