"""Between passes a service is remembered: its failures, the wait it asked for, what it cost."""

from __future__ import annotations

import copy
import pickle
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from builders import Fixed, session
from judge_samples import Naps, a_request, judge_at, ok_response
from system_one_server import KEY, SystemOneServer
from test_services import NOON, At

import hermes_jev
from hermes_jev.judge import Judge, Lexical, Remote, Silent, ask_watched, limits_of, report, spent_today, watch_of
from hermes_jev.judge.dialects import encode_system_one, to_bytes
from hermes_jev.judge.protocol import USUAL_LIMITS, Answers, Question, Request
from hermes_jev.judge.splitting import split_to_fit, trim
from hermes_jev.judge.system_one import SystemOne
from hermes_jev.store import Services, Spent, Store

FAR = 30.0


class Service:
    """A service without a network: gives the responses of its script, the last one for ever."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.asked = 0

    def judge(self, **options: Any) -> SystemOne:
        return judge_at(transport=httpx.MockTransport(self._answer), **options)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        found = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(found, httpx.TransportError):
            raise found
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)


GOOD = ok_response(a_request(1))
DOWN = httpx.Response(401, json={})  # a failure that is not asked again within the pass
TOO_LARGE = httpx.Response(413, json={})
BAD = httpx.Response(200, text="<html>")


@pytest.fixture
def clock() -> At:
    return At()


@pytest.fixture
def store(tmp_path: Path, clock: At) -> Store:
    return Store(tmp_path / "store", now=clock)


def ask(judge: Judge, store: Store, limit: float | None = None, requests: Sequence[Request] | None = None) -> Answers:
    return ask_watched(judge, [a_request(1)] if requests is None else requests, FAR, watch_of(store, limit))


# --- the circuit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [DOWN, BAD, httpx.Response(500), httpx.ReadError("reset")], ids=repr)
def test_three_failed_passes_open_the_circuit_and_one_try_closes_it(store: Store, clock: At, fault: Any) -> None:
    service = Service(fault)
    judge = service.judge()
    failed = [ask(judge, store) for _ in range(3)]
    asked = service.asked

    refused = [ask(judge, store) for _ in range(2)]
    clock.now += 300
    service.script = [GOOD]
    tried = ask(judge, store)

    assert all(answers.errors and not answers.declined for answers in failed)
    assert refused == [Answers(judge="jev", declined="circuit")] * 2
    assert (service.asked, len(tried.by_id)) == (asked + 1, 2)
    assert ask(judge, store).by_id


def test_a_failed_try_opens_it_again_at_once(store: Store, clock: At) -> None:
    service = Service(DOWN)
    judge = service.judge()
    for _ in range(3):
        ask(judge, store)
    clock.now += 300

    assert [ask(judge, store).declined for _ in range(2)] == ["", "circuit"]
    assert service.asked == 4


def test_an_answer_in_between_keeps_it_closed(store: Store) -> None:
    judge = Service(DOWN, DOWN, GOOD, DOWN, DOWN, GOOD).judge()

    assert [ask(judge, store).declined for _ in range(6)] == [""] * 6


def test_a_pass_of_which_something_was_answered_is_no_failure(store: Store) -> None:
    service = Service(GOOD, DOWN)
    for _ in range(5):
        service.script = [GOOD, DOWN]
        answers = ask(service.judge(concurrency=1), store, requests=[a_request(1), a_request(2)])
        assert (len(answers.by_id), answers.errors) == (2, ("auth",))

    assert report(service.judge(), store).failures == 0


def test_requests_that_are_too_long_are_not_the_services_failure(store: Store) -> None:
    judge = Service(TOO_LARGE).judge()

    assert [ask(judge, store).errors for _ in range(5)] == [("too_large",)] * 5


def test_copies_processes_and_other_models_share_what_is_known_other_hosts_do_not(store: Store) -> None:
    judge = Service(DOWN).judge()
    for _ in range(3):
        ask(judge, copy.deepcopy(store))

    again = pickle.loads(pickle.dumps(SystemOne(judge.endpoint, judge.key)))
    elsewhere = judge_at("http://127.0.0.1:9", transport=httpx.MockTransport(lambda request: GOOD))

    assert ask(again, Store(store.folder, now=store.now)).declined == "circuit"
    assert (judge.service, elsewhere.service) == ("typesafe api.typesafe.ai", "typesafe 127.0.0.1:9")
    assert ask(elsewhere, store).declined == ""


def test_of_many_at_once_one_tries(store: Store, clock: At) -> None:
    service = Service(DOWN)
    for _ in range(3):
        ask(service.judge(), store)
    clock.now += 300
    service.script, service.asked = [GOOD], 0
    go, found = threading.Barrier(4), []

    def one() -> None:
        go.wait()
        declined = watched_refusal(service.judge(), store)
        found.append(declined)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(found) == ["", "circuit", "circuit", "circuit"]


def watched_refusal(judge: SystemOne, store: Store) -> str:
    """Why it is not asked, without asking: the one that may has not come back yet when the others look."""
    from hermes_jev.judge.watched import _declined

    return _declined(judge, [a_request(1)], watch_of(store, None))[0]


def test_a_clock_that_was_set_back_does_not_keep_it_shut(store: Store, clock: At) -> None:
    service = Service(DOWN)
    for _ in range(3):
        ask(service.judge(), store)
    clock.now -= 10 * 86_400
    service.script = [GOOD]

    assert ask(service.judge(), store).by_id
    assert report(service.judge(), store).admission == "ask"


# --- a wait that was asked for ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers", [{"retry-after": "60"}, {"retry-after-ms": "60000"}, {"retry-after": "60.0"}], ids=str
)
@pytest.mark.parametrize("status", [402, 429, 503, 529])
def test_a_wait_is_remembered_until_it_is_over(store: Store, clock: At, headers: dict[str, str], status: int) -> None:
    service = Service(httpx.Response(status, headers=headers))
    first = ask_watched(service.judge(), [a_request(1)], 10.0, watch_of(store, None))
    asked = service.asked
    clock.now += 50

    second = ask(service.judge(), store)
    clock.now += 11
    service.script = [GOOD]

    assert (first.requests, first.failed) == (asked, 1) == (1, 1)
    assert first.wait_s == pytest.approx(60, abs=5)
    assert (second.declined, second.requests, service.asked) == ("paused", 0, asked)
    assert 0 < second.wait_s <= 10.1
    assert ask(service.judge(), store).by_id


def test_not_being_asked_is_no_failure(store: Store, clock: At) -> None:
    service = Service(httpx.Response(429, headers={"retry-after": "60"}))
    for _ in range(5):
        ask(service.judge(), store)
    clock.now += 61

    assert report(service.judge(), store).failures == 1
    assert ask(service.judge(), store).declined == ""


def test_after_a_long_wait_was_asked_for_nothing_more_is_sent_in_the_pass(store: Store) -> None:
    service = Service(httpx.Response(429, headers={"retry-after": "60"}))

    answers = ask(service.judge(concurrency=2), store, requests=[a_request(n) for n in range(6)])

    assert service.asked <= 2
    assert answers.errors == ("transient",) * 6


def test_a_wait_that_was_kept_within_the_pass_is_over(store: Store) -> None:
    service = Service(httpx.Response(429, headers={"retry-after": "0"}), GOOD)

    assert ask(service.judge(), store).by_id
    assert ask(service.judge(), store).declined == ""


# --- cost ---------------------------------------------------------------------------------------------------------


def test_what_a_pass_cost_is_added_to_the_day(store: Store, clock: At) -> None:
    judge = Service(GOOD).judge()

    answers = [ask(judge, store) for _ in range(2)]

    assert [(one.input_tokens, one.cost) for one in answers] == [(1000, pytest.approx(0.000042))] * 2
    assert Services(store).spent() == (2, 2000, pytest.approx(0.000084))
    assert spent_today(store) == 0.000084
    clock.now += 86_400
    assert spent_today(store) == 0.0


def test_what_failed_is_added_too(store: Store) -> None:
    answers = ask(Service(httpx.Response(500)).judge(), store)

    spent = Services(store).spent()
    assert (answers.by_id, answers.requests) == ({}, 3)
    assert spent == (3, answers.input_tokens, pytest.approx(answers.cost))
    assert spent.cost > 0


def test_without_usage_the_estimate_counts_and_a_routers_price_before_ours(store: Store) -> None:
    body = {"answers": {"t1_call": {"type": "noul", "noul": 0.2}}}
    without = ask(Service(httpx.Response(200, json=body)).judge(), store)
    priced = ask(Service(httpx.Response(200, json={**body, "usage": {"input_tokens": 10, "cost": 0.5}})).judge(), store)

    assert without.input_tokens > 270
    assert without.cost == pytest.approx(without.input_tokens * 0.042e-6)
    assert without.cost == pytest.approx(Service(GOOD).judge().price([a_request(1)]))
    assert (priced.input_tokens, priced.cost) == (10, 0.5)


@pytest.mark.parametrize("limit", [None, 0.0002])
def test_a_day_without_a_limit_or_below_it_is_as_usual(store: Store, limit: float | None) -> None:
    assert ask(Service(GOOD).judge(), store, limit).by_id


def test_what_would_cross_the_limit_is_not_sent_until_the_next_day(store: Store, clock: At) -> None:
    service = Service(GOOD)
    price = service.judge().price([a_request(1)])
    limit = 0.000042 + price * 0.9

    found = [ask(service.judge(), store, limit).declined for _ in range(3)]
    clock.now += 86_400

    assert found == ["", "budget", "budget"]
    assert service.asked == 1
    assert ask(service.judge(), store, limit).declined == ""


def test_a_limit_of_nothing_sends_nothing_that_costs(store: Store) -> None:
    service = Service(GOOD)

    assert ask(service.judge(), store, 0.0).declined == "budget"
    assert service.asked == 0


def test_all_services_share_the_limit(store: Store) -> None:
    Services(store).record("openai api.openai.com", lambda row: row, Spent(1, 10, 1.0))

    assert ask(Service(GOOD).judge(), store, 1.0).declined == "budget"


# --- what is not watched, and a store that fails ------------------------------------------------------------------


@pytest.mark.parametrize("judge", [Lexical(), Silent(), Fixed()], ids=["lexical", "silent", "own"])
def test_a_judge_without_a_service_is_just_asked(store: Store, judge: Judge) -> None:
    for _ in range(4):
        assert ask(judge, store, 0.0).declined == ""

    assert not isinstance(judge, Remote)
    assert limits_of(judge) is USUAL_LIMITS
    assert not store.path.exists()


def test_nothing_asked_is_nothing_remembered(store: Store) -> None:
    ask(Service(GOOD).judge(), store, requests=[])

    assert not store.path.exists()


@pytest.mark.parametrize("damage", ["no database", "a folder", "read-only row"])
def test_a_store_that_cannot_be_used_is_a_closed_circuit(store: Store, damage: str) -> None:
    service = Service(DOWN)
    if damage == "read-only row":
        Services(store).record(service.judge().service, lambda row: (9, *row[1:]))
        with sqlite3.connect(store.path) as connection:
            connection.execute("UPDATE services SET failures = 'many'")
        connection.close()
    else:
        store.folder.mkdir(parents=True)
        store.path.mkdir() if damage == "a folder" else store.path.write_bytes(b"no database at all" * 100)

    answers = [ask(service.judge(), store, 1.0) for _ in range(5)]

    assert [one.errors for one in answers] == [("auth",)] * 5
    assert service.asked == 5
    if damage != "read-only row":
        assert spent_today(store) is None


def test_a_request_that_is_no_json_cannot_be_priced_and_is_said(store: Store) -> None:
    bad = Request({"n": float("nan")}, a_request(1).questions)

    assert ask(Service(GOOD).judge(), store, 1.0, [bad]).errors == ("bad_request",)


# --- what the user sees -------------------------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SystemOneServer]:
    with SystemOneServer() as running:
        monkeypatch.setenv("TYPESAFE_API_KEY", KEY)
        monkeypatch.setenv("TYPESAFE_BASE_URL", running.url)
        yield running


def prune(store: Store, tag: int, **settings: Any) -> hermes_jev.Pruned:
    """A pass over a conversation that no other pass has seen."""
    given = {"judge": "jev", "pass_deadline_s": 5, **settings}
    return hermes_jev.prune(session(6, size=4_000 + tag), store=store, settings=given)


def test_with_the_circuit_open_the_lexical_judge_answers_and_it_is_said(server: SystemOneServer, store: Store) -> None:
    server.key = "apikey_other"
    failed = [prune(store, n).receipt for n in range(3)]
    asked = len(server.requests)
    receipt = prune(store, 3).receipt

    assert [(one.outcome, one.judge) for one in failed] == [("judge_failed", "jev")] * 3
    assert (
        "jev has no key, a refused one or no credit (TYPESAFE_API_KEY or JEV_API_KEY): HTTP 401 authentication_error"
        in failed[0].problems
    )
    assert (receipt.judge, receipt.requests, len(server.requests)) == ("lexical", 0, asked)
    assert receipt.outcome != "judge_failed"
    assert {decision.judge for decision in receipt.decisions} == {"lexical"}
    assert any("failed three passes in a row" in problem for problem in receipt.problems)
    assert any("the lexical judge stood in" in problem for problem in receipt.problems)


def test_over_the_days_limit_the_lexical_judge_answers_and_it_is_said(server: SystemOneServer, store: Store) -> None:
    first = prune(store, 0, daily_cost_limit_usd="none").receipt
    second = prune(store, 1, daily_cost_limit_usd=first.cost * 1.2).receipt

    assert (first.judge, second.judge, second.requests) == ("jev", "lexical", 0)
    assert first.cost > 0
    assert any("daily_cost_limit_usd" in problem for problem in second.problems)
    assert spent_today(store) == pytest.approx(first.cost, abs=1e-6)


def test_a_service_that_asked_to_be_left_alone_keeps_everything(server: SystemOneServer, store: Store) -> None:
    server.mode, server.retry_after = "http_429", "60"
    first, second = prune(store, 0), prune(store, 1)

    assert (first.receipt.requests, second.receipt.requests, len(server.requests)) == (1, 0, 1)
    assert (second.receipt.outcome, second.receipt.judge) == ("judge_failed", "jev")
    assert any("asked to be left alone" in problem for problem in second.receipt.problems)


def test_a_single_call_that_is_too_long_is_judged_by_less_and_the_receipt_says_so(
    server: SystemOneServer, store: Store
) -> None:
    prune(store, 0)
    whole = server.requests[-1].body
    asked = tuple(Question(name, "noul", **rest) for name, rest in without_type(whole["questions"]))
    singles = list(split_to_fit(Request(whole["state"], asked), 2))
    server.mode, server.limit_bytes = "too_large", max(len(on_the_wire(trim(single))) for single in singles) + 50
    assert server.limit_bytes < min(len(on_the_wire(single)) for single in singles)

    receipt = prune(store, 1).receipt

    assert receipt.outcome == "compacted"
    assert {decision.stage for decision in receipt.decisions if decision.judge} == {"trimmed"}


def without_type(asked: dict[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, {key: value for key, value in one.items() if key != "type"}) for name, one in asked.items()]


def on_the_wire(request: Request | None) -> bytes:
    assert request is not None
    return to_bytes(encode_system_one(request, "jev-1.13.0"))


def test_no_key_for_the_chosen_service_is_the_lexical_judge(server: SystemOneServer, store: Store) -> None:
    receipt = prune(store, 0, judge="auto", endpoint="openai").receipt

    assert (receipt.judge, server.requests) == ("lexical", [])


def test_a_service_of_ones_own_needs_no_key(server: SystemOneServer, store: Store) -> None:
    server.key = None

    receipt = prune(store, 0, judge="auto", endpoint="custom", base_url=server.url).receipt

    assert (receipt.judge, receipt.model, receipt.cost) == ("jev", "jev-1.13.0", 0)
    assert all("authorization" not in request.headers for request in server.requests)


def test_the_report_for_the_doctor(store: Store, clock: At) -> None:
    judge = Service(DOWN).judge(sleep=Naps())
    assert report(judge, store) == ("typesafe api.typesafe.ai", "ask", 0, 0.0, Spent())
    for _ in range(3):
        ask(judge, store)
    clock.now += 100

    found = report(judge, store)

    assert (found.admission, found.failures, found.asked_again_in_s, found.spent_today.requests) == (
        "open",
        3,
        200.0,
        3,
    )
    assert NOON == 1_796_126_400.0
