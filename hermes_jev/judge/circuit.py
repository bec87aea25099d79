"""When a failing service is left alone: pure rules over what is remembered of it.

Three failed passes in a row open the circuit for five minutes; then one pass tries, and closes or opens it again. A
service that says how long to stay away is not asked before. Every span has a beginning and an end: a clock that was set
back before its beginning is not in it, so nothing stays shut for longer than it should.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

FAILURES = 3
OPEN_S = 300.0
LONGEST_WAIT_S = 3_600.0
"""The longest wait a service is granted, in seconds: some name days."""

Admission = Literal["ask", "open", "wait", "try"]


class Standing(NamedTuple):
    """What is remembered of a service. Times are seconds since 1970; a span of no length is none.

    `failures` counts failed passes in a row; the circuit is open from `open_from` to `open_until`, and the service
    asked to be left alone from `wait_from` to `wait_until`.
    """

    failures: int = 0
    open_from: float = 0.0
    open_until: float = 0.0
    wait_from: float = 0.0
    wait_until: float = 0.0


def admission(standing: Standing, now: float) -> Admission:
    """Whether a pass may ask: "ask", "try" (one may, once it is `claimed`), not while "open", not before a "wait"."""
    tripped = standing.failures >= FAILURES
    if tripped and standing.open_from <= now < standing.open_until:
        return "open"
    if standing.wait_from <= now < standing.wait_until:
        return "wait"
    return "try" if tripped else "ask"


def claimed(standing: Standing, now: float) -> Standing:
    """The standing once a pass has taken the one try: for the others the circuit stays open."""
    return standing._replace(open_from=now, open_until=now + OPEN_S) if admission(standing, now) == "try" else standing


def after(standing: Standing, now: float, answered: bool | None, wait_s: float) -> Standing:
    """The standing after a pass that got answers, got none, or (None) says nothing about the service's health."""
    if answered:
        standing = Standing()
    elif answered is False:
        failures = min(standing.failures, FAILURES) + 1
        standing = standing._replace(failures=failures)
        if failures >= FAILURES:
            standing = standing._replace(open_from=now, open_until=now + OPEN_S)
    if wait_s > 0:
        standing = standing._replace(wait_from=now, wait_until=now + min(wait_s, LONGEST_WAIT_S))
    return standing
