"""The policies that are compared: baselines by their rules, rankers at a size, the engine as one of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import GOAL, assistant, call, pair, result, text, user
from eval_sessions import case as made_case
from eval_sessions import secret_of, session
from hosts import HOSTS, host_python

from hermes_jev.errors import InputError
from hermes_jev.evals import baselines, engine_policy, rankers
from hermes_jev.evals.case import Case, case_of
from hermes_jev.evals.generic import Generic
from hermes_jev.evals.judges import check_name
from hermes_jev.evals.oracle import Zero, oracle_of
from hermes_jev.evals.plans import carry_out
from hermes_jev.evals.recovery import Bm25, Document, query_of, recovery_of
from hermes_jev.evals.score import loss_of
from hermes_jev.evals.stock import stock_prune
from hermes_jev.evals.texts import size_of
from hermes_jev.judge import Lexical
from hermes_jev.settings import Settings
from hermes_jev.store import Store
from hermes_jev.transcript import Transcript


@pytest.fixture
def case() -> Case:
    found = made_case()
    assert found.measures_loss
    assert len(found.results) == 20
    return found


def freed(case: Case, after: list[Any]) -> int:
    return case.chars - size_of(after)


def contents(after: list[Any]) -> list[str]:
    return [message["content"] for message in after if message["role"] == "tool"]


def whole(case: Case, after: list[Any]) -> int:
    """How many results are there as they were."""
    return len(case.results) - len(loss_of(case, after).cut)


@pytest.mark.parametrize(
    ("name", "left", "count"),
    [("none", 20, 20), ("keep-last-4", 4, 4), ("last-3-stubs", 3, 20), ("last-0-stubs", 0, 20), ("pair-rule", 3, 3)],
)
def test_what_stays(case: Case, name: str, left: int, count: int) -> None:
    after = baselines.policy(name)(case)

    assert whole(case, after) == left
    assert len(contents(after)) == count
    transcript = Transcript.parse(after)
    assert all(exchange.state == "completed" for exchange in transcript.exchanges)
    assert len(transcript.completed) == count
    said = [m["content"] for m in after if m["role"] != "tool"]
    assert said == [m["content"] for m in case.prefix if m["role"] != "tool"]


def test_truncated_results_keep_their_start(case: Case) -> None:
    after = baselines.policy("last-3-truncated")(case)

    old = list(case.results)[:-3]
    assert all(after[at]["content"][:300] == case.prefix[at]["content"][:300] for at in old)
    assert all(len(after[at]["content"]) < 400 for at in old)


def test_protected_tokens_are_the_newest(case: Case) -> None:
    after = baselines.policy("protect-5k-tokens")(case)

    assert whole(case, after) == 6
    assert [at in loss_of(case, after).cut for at in case.results] == [True] * 14 + [False] * 6
    assert whole(case, baselines.policy("protect-40k-tokens")(case)) == 20


@pytest.mark.parametrize("name", ["", "keep-last", "last-x-stubs", "recency", "stub"])
def test_an_unknown_policy_is_an_input_error(name: str) -> None:
    with pytest.raises(InputError, match="unknown; known are"):
        baselines.policy(name)


@pytest.mark.parametrize("name", ["", "oracle+2", "oracle+x", "gpt"])
def test_an_unknown_judge_is_an_input_error(name: str) -> None:
    with pytest.raises(InputError, match="unknown; known are"):
        check_name(name)


# --- the stock prune ----------------------------------------------------------------------------------------------


def test_the_stock_prune_makes_lines_of_old_results_and_shortens_long_arguments() -> None:
    long = {"path": "a.py", "content": "x" * 900}
    messages = [user(GOAL), *pair(1, text(5_000), "write_file", long), *pair(2, text(4_000)), *pair(3, text(4_000))]

    after = stock_prune(messages, tail_messages=2)

    assert after[2]["content"].startswith("[write_file] path=a.py")
    assert "5,000 chars" in after[2]["content"]
    assert len(json.loads(after[1]["tool_calls"][0]["function"]["arguments"])["content"]) < 220
    assert after[4]["content"].startswith("[Duplicate")
    assert after[5] is messages[5]
    assert after[6] is messages[6]
    assert stock_prune(after, tail_messages=2) == after


HOST_PRUNE = """
import json, sys
from agent.context_compressor import ContextCompressor
class Bare(ContextCompressor):
    def __init__(self): pass
given = json.load(sys.stdin)
print(json.dumps([Bare()._prune_old_tool_results(given, protect_tail_count=n, protect_tail_tokens=t)[0]
    for n, t in ((20, None), (4, None), (3, 2000), (20, 4000))]))
"""


@pytest.mark.host
def test_the_stock_prune_cuts_what_the_host_cuts() -> None:
    given = session(calls=20).messages
    child = subprocess.run(
        [str(host_python(next(iter(HOSTS)))), "-c", HOST_PRUNE],
        input=json.dumps(given), capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip

    for theirs, (count, budget) in zip(
        json.loads(child.stdout.splitlines()[-1]), ((20, 0), (4, 0), (3, 2_000), (20, 4_000)), strict=True
    ):
        ours = stock_prune(given, budget, count)
        assert [a == b for a, b in zip(ours, given, strict=True)] == [
            a == b for a, b in zip(theirs, given, strict=True)
        ]
        assert abs(size_of(ours) - size_of(theirs)) < 0.02 * size_of(given)


# --- at a size ----------------------------------------------------------------------------------------------------


RANKERS: dict[str, rankers.Ranker] = {
    "recency": rankers.recency,
    "size x age": rankers.size_and_age,
    "chance": rankers.by_chance(1),
    "oracle": rankers.oracle,
}


@pytest.mark.parametrize("name", list(RANKERS))
@pytest.mark.parametrize("share", [0.3, 0.55, 0.8])
def test_rankers_free_what_is_asked_for(case: Case, name: str, share: float) -> None:
    wanted = share * case.tool_chars
    worth = RANKERS[name](case)

    over = freed(case, carry_out(case, rankers.plan_to(case, worth, wanted)))
    exact = freed(case, carry_out(case, rankers.plan_to(case, worth, wanted, exactly=True)))

    largest = max(exchange.size for exchange in case.results.values())
    assert wanted <= over <= wanted + largest
    assert wanted <= exact <= wanted + 2 or exact == over


def test_recency_lets_the_oldest_go_and_the_oracle_what_nobody_needs(case: Case) -> None:
    half = 0.5 * case.tool_chars
    recency = loss_of(case, carry_out(case, rankers.plan_to(case, rankers.recency(case), half)))
    oracle = loss_of(case, carry_out(case, rankers.plan_to(case, rankers.oracle(case), half)))

    assert {secret_of(2), secret_of(5), secret_of(9)} <= {need.text for need in recency.lost}
    assert secret_of(18) not in {need.text for need in recency.lost}
    assert not oracle.lost


def test_chance_is_drawn_again_alike(case: Case) -> None:
    assert rankers.by_chance(3)(case) == rankers.by_chance(3)(case)
    assert rankers.by_chance(3)(case) != rankers.by_chance(4)(case)


# --- the engine ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.2, 0.5, 0.75])
def test_the_engine_cuts_down_to_a_size(case: Case, tmp_path: Path, share: float) -> None:
    after = engine_policy.prune_to(case.prefix, share, Lexical(), Settings(), Store(tmp_path))

    wanted = share * case.tool_chars
    assert wanted <= freed(case, after) <= wanted + 3_200
    for old, new in zip(case.prefix, after, strict=True):
        assert old is new or (old["role"] == "tool" and len(new["content"]) <= 1_500)


def test_more_than_the_pins_allow_is_not_cut(case: Case, tmp_path: Path) -> None:
    after = engine_policy.prune_to(case.prefix, 0.999, Lexical(), Settings(fact_chars=0), Store(tmp_path))

    assert freed(case, after) == case.bound
    assert all(case.prefix[at] is after[at] for at in list(case.results)[-3:])


def test_a_judge_that_knows_loses_nothing_and_loses_more_the_more_it_errs(tmp_path: Path) -> None:
    """Over several sessions, since chance decides in one, and without facts, which find what is needed alone."""
    lost: list[int] = []
    noises = (0.0, 0.35, 0.7, 1.0)
    cases = [made_case(24, (2, 5, 9, 11, 14), f"s{n}") for n in range(12)]
    for noise in noises:
        total = 0
        for number, found in enumerate(cases):
            judge = oracle_of(found, noise, seed=1)
            store = Store(tmp_path / f"{noise}-{number}")
            after = engine_policy.prune_to(found.prefix, 0.5, judge, Settings(fact_chars=0), store)
            total += len(loss_of(found, after).lost)
        lost.append(total)

    assert lost[0] == 0
    assert lost == sorted(lost)
    assert lost[-1] > 10


def test_a_judge_that_needs_nothing_cuts_all_that_may_go(case: Case, tmp_path: Path) -> None:
    pruned = engine_policy.prune_by_default(case.prefix, Zero(), Settings(fact_chars=0), Store(tmp_path))

    assert freed(case, pruned.messages) == case.bound


# --- recovery -----------------------------------------------------------------------------------------------------


def test_the_query_has_no_word_of_what_is_missing(case: Case) -> None:
    need = next(need for need in case.needs if need.text == secret_of(5))

    query = query_of(case, need.used_at, [need])

    assert secret_of(5) not in query
    assert "open" in query


def test_bm25_prefers_rare_words_and_shows_what_stands_around_them() -> None:
    documents = [Document(n, text(3_000, f"part{n}") + (" zebra crossing" if n == 3 else "")) for n in range(6)]

    hits = Bm25()(documents, "value zebra crossing", 4)

    assert hits[0].at == 3
    assert len(hits) == 4
    assert all(len(hit.excerpt) <= 2_500 for hit in hits)
    assert Bm25()(documents, "", 4) == []
    assert Bm25()([], "zebra", 4) == []


@pytest.mark.parametrize(
    ("finds", "found"),
    [(lambda documents, query, most: [], 0), (lambda documents, query, most: Bm25()(documents, query, most), 1)],
    ids=["nothing", "bm25"],
)
def test_recovery_counts_steps_and_takes_any_searcher(finds: Callable[..., Any], found: int) -> None:
    past = [user(GOAL), *pair(1, f"the meteorological harbour\n{secret_of(1)}\n{text(3_000)}"), *pair(2, text(2_000))]
    past += [*pair(3, text(900)), *pair(4, text(900)), *pair(5, text(900))]
    step = [assistant("harbour now", call("z", "terminal", {"command": f"{secret_of(1)} meteorological"}))]
    after = [*step, result("z", "ok"), assistant("a"), user("b"), assistant("c")]
    held = session()
    messages = [*past, *after]
    share = size_of(past) / size_of(messages) - 0.001
    case = case_of(type(held)("s", "k", "s", "s", False, messages), share, Generic(), Settings())
    assert case is not None

    loss = loss_of(case, baselines.policy("last-3-stubs")(case))

    assert recovery_of(case, loss, finds)._asdict() == {"steps": 1, "found": found, "shown": found}
