"""The judges, and which one is meant."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ConfigError
from ..settings import Settings
from .blocking import ask_blocking
from .endpoints import find_key, resolve_endpoint
from .lexical import Lexical
from .protocol import Answer, Answers, Judge, Question, Request, Subject
from .silent import Silent
from .system_one import SystemOne

__all__ = [
    "Answer",
    "Answers",
    "Judge",
    "Lexical",
    "Question",
    "Request",
    "Silent",
    "Subject",
    "SystemOne",
    "ask_blocking",
    "judge_of",
]


def judge_of(wanted: str | Judge, settings: Settings, environment: Mapping[str, str]) -> Judge:
    """The judge object for a name or an object.

    "auto" is the setting's choice; with the setting "auto" too, Jev when there is a key, else the lexical judge. A
    Jev without a key is a judge that is down. Raises ConfigError for a name or an address that cannot be used.
    """
    if not isinstance(wanted, str):
        return wanted
    name = settings.judge if wanted == "auto" else wanted
    if name == "lexical":
        return Lexical()
    if name not in ("auto", "jev"):
        raise ConfigError(f"judge: {name!r} is unknown; auto, jev or lexical")
    endpoint = resolve_endpoint(environment, settings.base_url or None, settings.model or None)
    found = find_key(endpoint, environment)
    if found is None:
        return Lexical() if name == "auto" else Silent(version=endpoint.model)
    return SystemOne(endpoint, found[0], concurrency=settings.concurrency, request_timeout_s=settings.request_timeout_s)
