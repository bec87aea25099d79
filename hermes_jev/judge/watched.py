"""Ask a judge as `ask_blocking` does and, if it is behind a service, remember between passes how that went.

A service that failed too often, that asked to be left alone, or that would cost more than the day's limit is not asked;
`Answers.declined` says so, and the caller decides who answers. The records are in the store. A store that cannot be
read or written changes nothing: the service is asked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

from ..errors import JudgeBadRequest, JudgeTooLarge, StoreError
from ..store import Services, Spent, Store
from .blocking import ask_blocking
from .circuit import Admission, Standing, admission, after, claimed
from .protocol import Answers, Declined, Judge, Remote, Request

logger = logging.getLogger(__name__)

_LEAST_S = 0.05


class Report(NamedTuple):
    """How a service stands now: the admission, failed passes in a row, seconds until it is asked again, and what all
    services cost today (UTC)."""

    service: str
    admission: Admission
    failures: int
    asked_again_in_s: float
    spent_today: Spent


class Watch(NamedTuple):
    """Where records are kept and what may be spent a day, in US dollars (None: any amount)."""

    services: Services
    daily_limit: float | None = None


def watch_of(store: Store, daily_limit: float | None) -> Watch:
    """The watch over the services of a store."""
    return Watch(Services(store), daily_limit)


def ask_watched(judge: Judge, requests: Sequence[Request], deadline_s: float, watch: Watch) -> Answers:
    """Ask and wait, for at most `deadline_s` seconds and a short grace. Never raises for judge or store."""
    if not isinstance(judge, Remote) or not requests:
        return ask_blocking(judge, requests, deadline_s)
    ends = time.monotonic() + deadline_s
    declined, wait_s = _declined(judge, requests, watch)
    if declined:
        return Answers(judge=judge.name, declined=declined, wait_s=wait_s)
    # A store that had to be waited for is no reason to be late.
    answers = ask_blocking(judge, requests, max(_LEAST_S, ends - time.monotonic()))
    _remember(judge.service, answers, watch)
    return answers


def report(judge: Remote, store: Store) -> Report:
    """How the judge's service stands. Raises StoreError."""
    services = Services(store)
    now, standing = services.now(), Standing(*services.row(judge.service))
    may = admission(standing, now)
    until = {"open": standing.open_until, "wait": standing.wait_until}.get(may, now)
    return Report(judge.service, may, standing.failures, until - now, services.spent())


def spent_today(store: Store) -> float | None:
    """US dollars that all services together cost today (UTC), None when the store cannot be read."""
    try:
        return round(Services(store).spent().cost, 6)
    except StoreError as error:
        logger.debug("what was spent today cannot be read: %s", error)
        return None


def _declined(judge: Remote, requests: Sequence[Request], watch: Watch) -> tuple[Declined, float]:
    """Why the service is not asked, and the seconds it still wants to be left alone."""
    try:
        return _refusal(judge, requests, watch)
    except StoreError as error:
        logger.warning("hermes_jev: what is remembered of the judge's service cannot be used (%s); it is asked", error)
    except JudgeBadRequest:
        logger.debug("a request cannot be priced; asking will say why")
    return "", 0.0


def _refusal(judge: Remote, requests: Sequence[Request], watch: Watch) -> tuple[Declined, float]:
    services, now = watch.services, watch.services.now()
    standing = Standing(*services.row(judge.service))
    may = admission(standing, now)
    if may == "open":
        return "circuit", 0.0
    if may == "wait":
        return "paused", standing.wait_until - now
    if watch.daily_limit is not None:
        price = judge.price(requests)
        if price and services.spent().cost + price > watch.daily_limit:
            return "budget", 0.0
    if may == "try":
        before = services.record(judge.service, lambda row: claimed(Standing(*row), now))
        if admission(Standing(*before), now) != "try":
            return "circuit", 0.0
    return "", 0.0


def _remember(service: str, answers: Answers, watch: Watch) -> None:
    now = watch.services.now()
    spent = Spent(answers.requests, answers.input_tokens, answers.cost)
    answered = _answered(answers)
    try:
        watch.services.record(service, lambda row: after(Standing(*row), now, answered, answers.wait_s), spent)
    except StoreError as error:
        logger.warning("hermes_jev: how the judge's service answered was not remembered: %s", error)


def _answered(answers: Answers) -> bool | None:
    """Whether the service works. One that only finds requests too long does, and says nothing of the next."""
    if answers.by_id:
        return True
    return None if answers.errors and set(answers.errors) == {JudgeTooLarge.code} else False
