"""Who judges: the service, its key, how it stands and what it cost today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import ConfigError, StoreError
from ..judge import Judge, Lexical, Remote, Silent, judge_of, key_names, report
from ..judge.endpoints import PRESETS, Endpoint, find_key, resolve_endpoint
from ..settings import Settings
from ..store import Store
from .findings import Finding, note, ok, problem

_LEAST_SHOWN = 24
"""Of a shorter key nothing is shown."""


def check(
    settings: Settings, environment: Mapping[str, str], variables: Mapping[str, str], store: Store
) -> list[Finding]:
    """The judge that these settings lead to. `variables` are those of Hermes' own `.env`, which `environment` holds
    too."""
    try:
        endpoint = resolve_endpoint(
            environment, settings.base_url or None, settings.model or None, PRESETS[settings.endpoint]
        )
        judge = judge_of("auto", settings, environment)
        key = list(_key(endpoint, environment, variables, settings))
    except ConfigError as error:
        return [problem("judge", "cannot_be_reached", str(error))]
    address = ok("judge", "endpoint", f"{endpoint.name}: {endpoint.url}, model {endpoint.model}")
    return [address, *key, _in_effect(judge, settings), *_standing(judge, settings, store)]


def _key(
    endpoint: Endpoint, environment: Mapping[str, str], variables: Mapping[str, str], settings: Settings
) -> Iterator[Finding]:
    found = find_key(endpoint, environment)
    if found is not None:
        key, variable = found
        place = "Hermes' .env" if variable in variables else "the environment"
        yield ok("judge", "key", f"key {masked(key.get_secret_value())} from {variable} of {place}")
    elif endpoint.key_needed and settings.judge == "jev":
        yield problem("judge", "no_key", f"judge is jev and there is no key; set {key_names(settings)}")
    elif endpoint.key_needed:
        yield note("judge", "no_key", f"no key ({key_names(settings)})")
    else:
        yield ok("judge", "key", "no key, and none is needed")


def masked(key: str) -> str:
    """Enough of a key to tell two apart, and no more."""
    return f"{key[:3]}…{key[-2:]} ({len(key)} characters)" if len(key) >= _LEAST_SHOWN else f"of {len(key)} characters"


def _in_effect(judge: Judge, settings: Settings) -> Finding:
    if isinstance(judge, Lexical):
        return ok("judge", "in_effect", "the embedded lexical judge decides; nothing is sent")
    if isinstance(judge, Silent):
        return note("judge", "in_effect", "nobody decides: nothing is cut, until the window is urgently full")
    return ok("judge", "in_effect", f"Jev decides (judge is {settings.judge})")


def _standing(judge: Judge, settings: Settings, store: Store) -> Iterator[Finding]:
    if not isinstance(judge, Remote):
        return
    try:
        found = report(judge, store)
    except StoreError:
        # The checks of the store say what is wrong with it.
        return
    again = f"it is asked again in {found.asked_again_in_s:.0f} s"
    if found.admission == "open":
        text = f"{found.service} failed {found.failures} passes in a row; the lexical judge decides, {again}"
        yield problem("judge", "circuit", text)
    elif found.admission == "wait":
        yield note("judge", "paused", f"{found.service} asked to be left alone; {again}")
    elif found.failures:
        yield note("judge", "failures", f"{found.service} failed the last {found.failures} passes")
    limit, spent = settings.daily_cost_limit_usd, found.spent_today
    of = "" if limit is None else f" of {limit:.4f}"
    text = f"spent today (UTC): ${spent.cost:.4f}{of}, {spent.requests:,} requests, {spent.tokens:,} tokens"
    if limit is not None and spent.cost >= limit:
        yield note("judge", "limit", f"{text}; the lexical judge decides until tomorrow")
    else:
        yield ok("judge", "cost", text)
