"""What the engine asks of Hermes: its home, settings, secrets, redactor, and who a session's parents are.

Beside `engine.py` the only module that imports the host. Everything is read when it is needed, never at import, since
homes and profiles change between sessions of one process.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent.redact import redact_sensitive_text
from agent.secret_scope import get_secret
from gateway.session_context import get_session_env
from hermes_cli.config import get_env_value, load_config
from hermes_constants import get_hermes_home

from .egress import gate
from .errors import ConfigError
from .judge import Judge, Lexical, Silent, judge_of, key_names
from .judged import OFF
from .notes import Notes
from .settings import Resolved, Settings
from .surroundings import Surroundings

logger = logging.getLogger(__name__)


def home() -> Path:
    """The Hermes home of the current profile."""
    return Path(get_hermes_home())


def plugin_settings() -> Mapping[str, Any]:
    """`plugins.entries.hermes_jev.settings` of config.yaml; empty when there is none or it cannot be read."""
    try:
        config: Any = load_config()
    except (OSError, ValueError, RuntimeError) as error:
        logger.warning("hermes_jev: config.yaml cannot be read (%s); defaults are used", type(error).__name__)
        return {}
    for key in ("plugins", "entries", "hermes_jev", "settings"):
        config = config.get(key) if isinstance(config, Mapping) else None
    return config if isinstance(config, Mapping) else {}


class Secrets(Mapping[str, str]):
    """Environment variables as the host scopes them to a profile: a key comes from the profile's own secrets."""

    def __getitem__(self, name: str) -> str:
        value = self._read(name)
        if value is None:
            raise KeyError(name)
        return value

    def _read(self, name: str) -> str | None:
        try:
            value = get_secret(name) or get_env_value(name)
        except RuntimeError:
            # Several profiles run in this process and none is in scope: no key is better than another profile's.
            return None
        return value if isinstance(value, str) and value else None

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def judge(settings: Settings, notes: Notes) -> Judge:
    """Who judges under these settings, with the keys of the profile; what is odd about it is noted."""
    try:
        found = judge_of("auto", settings, Secrets())
    except ConfigError as error:
        notes.say(f"the judge cannot be reached: {error}")
        return Silent(code="bad_request")
    if settings.egress == "off" and not found.local:
        notes.say(OFF, logging.INFO)
        return Lexical()
    if settings.judge == "auto" and isinstance(found, Lexical):
        notes.say(f"no key for Jev ({key_names(settings)}): the lexical judge decides", logging.INFO)
    if isinstance(found, Silent):
        notes.say(f"judge is jev and there is no key ({key_names(settings)})")
    return found


def redact(text: str) -> str:
    """The host's redactor at its strictest."""
    safe = redact_sensitive_text(text, force=True, redact_url_credentials=True)
    return str(safe)


def environment() -> Mapping[str, str]:
    """The process environment, for settings (not for secrets)."""
    return os.environ


def session() -> str:
    """The id of the session at hand, empty where the host does not say. In a gateway it may be another chat's."""
    return str(get_session_env("HERMES_SESSION_ID", "") or "")


def surroundings(resolved: Callable[[], Resolved]) -> Surroundings:
    """What the rest of the plugin may ask of this host."""
    return Surroundings(
        home=home,
        config=plugin_settings,
        resolved=resolved,
        judge=lambda settings: judge(settings, Notes()),
        session=session,
        gate=lambda: gate([redact]),
    )
