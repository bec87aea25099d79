"""The judges, and which one is meant."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ConfigError
from ..settings import Settings
from .blocking import ask_blocking
from .endpoints import PRESETS, find_key, resolve_endpoint
from .lexical import Lexical
from .protocol import Answer, Answers, Judge, Limits, Question, Remote, Request, Subject, limits_of
from .silent import Silent
from .system_one import SystemOne
from .watched import Watch, ask_watched, report, spent_today, watch_of

__all__ = [
    "Answer",
    "Answers",
    "Judge",
    "Lexical",
    "Limits",
    "Question",
    "Remote",
    "Request",
    "Silent",
    "Subject",
    "SystemOne",
    "Watch",
    "ask_blocking",
    "ask_watched",
    "judge_of",
    "key_names",
    "limits_of",
    "report",
    "spent_today",
    "watch_of",
]


def judge_of(wanted: str | Judge, settings: Settings, environment: Mapping[str, str]) -> Judge:
    """The judge object for a name or an object.

    "auto" is the setting's choice; with the setting "auto" too, Jev when there is a key, else the lexical judge. A
    Jev without the key that its endpoint needs is a judge that is down. Raises ConfigError for a name or an address
    that cannot be used.
    """
    if not isinstance(wanted, str):
        return wanted
    name = settings.judge if wanted == "auto" else wanted
    if name == "lexical":
        return Lexical()
    if name not in ("auto", "jev"):
        raise ConfigError(f"judge: {name!r} is unknown; auto, jev or lexical")
    preset = PRESETS[settings.endpoint]
    endpoint = resolve_endpoint(environment, settings.base_url or None, settings.model or None, preset)
    key, _ = find_key(endpoint, environment) or (None, "")
    if key is None and endpoint.key_needed:
        return Lexical() if name == "auto" else Silent(version=endpoint.version)
    return SystemOne(endpoint, key, concurrency=settings.concurrency, request_timeout_s=settings.request_timeout_s)


def key_names(settings: Settings) -> str:
    """The variables that hold the key of the endpoint in force, for messages."""
    return " or ".join(PRESETS[settings.endpoint].key_variables) or "none is needed"
