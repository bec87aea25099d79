"""Verdicts that outlive a request, what may leave the machine, and what is learned from reported usage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import ByOrdinal, Fixed, pair, session, text
from judge_samples import judge_at
from system_one_server import SystemOneServer
from test_judged import ask, outputs

from hermes_jev import Settings, prune
from hermes_jev.described import COUNTS
from hermes_jev.errors import StoreError
from hermes_jev.judge import Answer, Answers, Lexical, Request
from hermes_jev.judged import METADATA, OFF, _verdict
from hermes_jev.policy import Cuts, Pressure, decide
from hermes_jev.questions import question_ids
from hermes_jev.store import Store
from hermes_jev.store.ledger import MAX_VERDICTS
from hermes_jev.store.notes import note, save_note
from hermes_jev.transcript import Transcript
from hermes_jev.usage import LEAST, MOST, learn, token_factor
from hermes_jev.verdict_cache import SETTLED_BAND, VerdictCache
from hermes_jev.window import REQUEST_OVERHEAD_TOKENS, Fitted

OTHER = "now write the documentation"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


# --- after a new request ------------------------------------------------------------------------------------------

SETTLED = {1: (0.1, 0.1), 2: (0.9, 0.1), 3: (0.5, 0.9), 4: (0.9, 0.75)}
UNSETTLED = {5: (0.1, 0.45), 6: (0.45, 0.1), 7: (0.9, 0.6)}


def test_only_what_is_new_or_near_a_threshold_is_asked_again(store: Store) -> None:
    first = ByOrdinal({**SETTLED, **UNSETTLED})
    ask(session(7), first, store)
    second = ByOrdinal({}, default=(0.9, 0.9))

    found = ask([*session(7), *pair(8, text(4_000, "new"))], second, store, goal=OTHER)

    assert {name.partition("_")[0] for name in second.question_ids} == {"t5", "t6", "t7", "t8"}
    assert outputs(found) == {1: 0.1, 2: 0.1, 3: 0.9, 4: 0.75, **dict.fromkeys((5, 6, 7, 8), 0.9)}
    assert [found.verdicts[n].cached for n in range(1, 9)] == [True] * 4 + [False] * 4


def test_a_second_pass_after_the_new_request_asks_nothing(store: Store) -> None:
    ask(session(7), ByOrdinal({**SETTLED, **UNSETTLED}), store)
    judge = ByOrdinal(UNSETTLED)
    ask(session(7), judge, store, goal=OTHER)
    asked = len(judge.asked)

    ask(session(7), judge, store, goal=OTHER)

    assert len(judge.asked) == asked == 1


@pytest.mark.parametrize(("distance", "again"), [(SETTLED_BAND - 0.01, True), (SETTLED_BAND + 0.01, False)])
@pytest.mark.parametrize("side", [-1, 1])
def test_the_band_around_the_threshold(store: Store, distance: float, again: bool, side: int) -> None:
    settings = Settings(output_threshold=0.4)
    ask(session(1), Fixed(0.95, 0.4 + side * distance), store, settings=settings)
    judge = Fixed()

    ask(session(1), judge, store, goal=OTHER, settings=settings)

    assert bool(judge.asked) is again


def test_a_settled_verdict_too_is_asked_again_after_twenty_calls(store: Store) -> None:
    ask(session(2), Fixed(0.1, 0.1), store)
    judge = Fixed()

    ask([*session(2), *(m for n in range(20) for m in pair(100 + n, f"short {n}"))], judge, store, goal=OTHER)

    assert "t1_call" in judge.question_ids


def test_another_topic_is_asked_about_whatever_was_settled(store: Store) -> None:
    ask(session(2), Fixed(0.1, 0.1), store)
    judge = Fixed()

    ask(session(2), judge, store, goal=OTHER, focus="the lexer")

    assert len(judge.question_ids) == 4


def test_an_embedded_judge_is_asked_anew(store: Store) -> None:
    ask(session(2), Fixed(0.1, 0.1, local=True), store)
    judge = Fixed(0.1, 0.1, local=True)

    ask(session(2), judge, store, goal=OTHER)

    assert len(judge.question_ids) == 4


def test_what_was_told_is_part_of_the_question(store: Store) -> None:
    ask(session(2), Fixed(0.1, 0.1), store)
    judge = Fixed(0.1, 0.1)

    ask(session(2), judge, store, settings=Settings(egress="metadata"))

    assert len(judge.question_ids) == 4


def test_keys_do_not_run_into_each_other(store: Store) -> None:
    def key(goal: str, direction: str, content: str = "c") -> str:
        return VerdictCache(store, Settings(), Fixed(), goal, direction).key(content)

    keys = {key("a", "b"), key("ab", ""), key("", "ab"), key("a", "b", "d")}
    assert len(keys) == 4
    assert MAX_VERDICTS >= 1_000


# --- what may leave -----------------------------------------------------------------------------------------------


def test_with_egress_off_nothing_is_sent_and_the_lexical_judge_answers(store: Store) -> None:
    judge = Fixed()

    found = ask(session(5), judge, store, settings=Settings(egress="off"))

    assert judge.asked == []
    assert {verdict.judge for verdict in found.verdicts.values()} == {"lexical"}
    assert len(found.verdicts) == 5
    assert OFF in found.problems


def test_with_egress_off_no_socket_is_opened(tmp_path: Path) -> None:
    with SystemOneServer() as server:
        pruned = prune(session(20), judge_at(server.url), tmp_path, {"egress": "off"})
        assert server.requests == []
    assert pruned.receipt.judge == "lexical"
    assert OFF in pruned.receipt.problems


def test_an_embedded_judge_needs_no_egress(store: Store) -> None:
    found = ask(session(5), Lexical(), store, settings=Settings(egress="off"))

    assert OFF not in found.problems


def test_what_was_told_without_content_can_only_keep(store: Store) -> None:
    """The higher of the two answers counts: one judge knows no text, the other is the embedded one."""
    sure, unsure = ByOrdinal({1: (1.0, 1.0)}, default=(0.0, 0.0)), Lexical()
    alone = ask(session(4), unsure, Store(store.folder / "other"))

    found = ask(session(4), sure, store, settings=Settings(egress="metadata"))

    assert found.verdicts[1].output == 1.0
    assert {n: found.verdicts[n].output for n in (2, 3, 4)} == {n: alone.verdicts[n].output for n in (2, 3, 4)}
    assert {verdict.stage for verdict in found.verdicts.values()} == {"metadata"}
    assert METADATA in found.problems
    sure.asked.clear()
    assert outputs(ask(session(4), sure, store, settings=Settings(egress="metadata"))) == outputs(found)
    assert sure.asked == []


@pytest.mark.parametrize("stage", ["whole", "head_tail", "metadata", "input_cut", ""])
def test_an_answer_counts_only_when_enough_was_seen(stage: str) -> None:
    """Else its stage is recorded, and its answer is none."""
    (exchange,) = Transcript.parse(session(1)).completed
    given = Answers({name: Answer({"true": 0.1}) for name in question_ids(1)})

    found = _verdict(exchange, given, stage, Fixed())

    assert found is not None
    assert found.stage == stage
    assert (found.call, found.output) == ((0.1, 0.1) if stage in COUNTS else (None, None))
    decided = decide([exchange], {1: found}, Pressure(None, 1, 1, Settings()), Cuts(Settings()))
    assert (decided[0].action == "keep") is (stage not in COUNTS)


# --- what a token costs -------------------------------------------------------------------------------------------


def answers(tokens: int, **more: object) -> Answers:
    return replace(Answers(judge="scripted", requests=1, input_tokens=REQUEST_OVERHEAD_TOKENS + tokens), **more)  # type: ignore[arg-type]


ONE = Fitted((Request(state={}, questions=()),), tokens=1_000)


def test_the_factor_moves_towards_what_is_reported_and_stays_within_bounds(store: Store) -> None:
    judge = Fixed()
    assert token_factor(store, judge) == 1.0

    learn(store, judge, ONE, answers(1_200))
    assert token_factor(store, judge) == pytest.approx(1.06)
    for _ in range(40):
        learn(store, judge, ONE, answers(90_000))
    assert token_factor(store, judge) == MOST
    for _ in range(40):
        learn(store, judge, ONE, answers(1))
    assert token_factor(store, judge) == LEAST
    assert token_factor(store, Fixed(version="another")) == 1.0


@pytest.mark.parametrize(
    "report",
    [answers(2_000, requests=2), answers(2_000, failed=1), answers(2_000, errors=("transient",)), answers(-270)],
)
def test_a_report_that_counts_something_else_teaches_nothing(store: Store, report: Answers) -> None:
    learn(store, Fixed(), ONE, report)

    assert token_factor(store, Fixed()) == 1.0


@pytest.mark.parametrize("noted", ["", "x", "nan", "-3", "1e9"])
def test_a_note_of_any_kind_gives_a_factor_within_bounds(store: Store, noted: str) -> None:
    save_note(store, "token factor:scripted:v1", noted)

    assert LEAST <= token_factor(store, Fixed()) <= MOST


def test_a_store_that_cannot_be_used_teaches_nothing(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")
    store = Store(tmp_path / "store")

    learn(store, Fixed(), ONE, answers(1_200))

    assert token_factor(store, Fixed()) == 1.0
    with pytest.raises(StoreError):
        save_note(store, "key", "text")


def test_notes_are_kept_and_replaced(store: Store) -> None:
    assert note(store, "a") is None
    save_note(store, "a", "one")
    save_note(store, "a", "two")
    save_note(store, "b", "three")

    assert (note(store, "a"), note(store, "b"), note(store, "c")) == ("two", "three", None)


def test_the_factor_is_learned_from_a_service(tmp_path: Path) -> None:
    with SystemOneServer() as server:
        judge = judge_at(server.url)
        prune(session(20), judge, tmp_path)

    assert token_factor(Store(tmp_path), judge) != 1.0
