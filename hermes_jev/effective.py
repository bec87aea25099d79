"""The settings in force: defaults, the user's file, Hermes' own entry, the environment, flags; a later one wins.

The user's file is TOML, `config.toml` in the user's configuration folder, one setting a line:

    trigger_percent = 0.7
    judge = "lexical"

`HERMES_JEV_CONFIG` names another file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

from .errors import ConfigError
from .settings import Resolved, Settings, Source, environment_source, resolve

FOLDER = "hermes_jev"
FILE = "config.toml"
VARIABLE = "HERMES_JEV_CONFIG"

hermes_entry: ContextVar[Mapping[str, Any] | None] = ContextVar("hermes_entry", default=None)
"""What Hermes' config.yaml says, for commands that run inside Hermes (`hermes jev`)."""


def user_file(environment: Mapping[str, str]) -> Path:
    """Where the user's settings are, whether or not the file exists."""
    if named := environment.get(VARIABLE, "").strip():
        return Path(named).expanduser()
    # A directory plugin installs nothing, and neither host has platformdirs.
    try:
        import platformdirs
    except ModuleNotFoundError:
        home = environment.get("XDG_CONFIG_HOME", "").strip() or "~/.config"
        return Path(home).expanduser() / FOLDER / FILE
    return platformdirs.user_config_path(FOLDER, appauthor=False) / FILE


def user_source(environment: Mapping[str, str]) -> Source:
    """The values of the user's file; none without a file. Raises ConfigError for a file that cannot be read or is not
    TOML, and for a named one that is missing."""
    try:
        file = user_file(environment)
        return Source(str(file), tomllib.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        if environment.get(VARIABLE, "").strip():
            raise ConfigError(f"{file} ({VARIABLE}): there is no such file") from None
        return Source(str(file), {})
    except RuntimeError:
        raise ConfigError(f"the settings file: the home folder in {VARIABLE} does not exist") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not TOML: {error}") from None


def outside(environment: Mapping[str, str], flags: Source | None = None) -> Resolved:
    """The settings of a process outside Hermes. Raises ConfigError for the first value that cannot be used."""
    entry = hermes_entry.get()
    hermes = [Source("config.yaml", entry)] if entry else []
    sources = [user_source(environment), *hermes, environment_source(environment)]
    return resolve([*sources, flags] if flags else sources, strict=True)


def inside(entry: Mapping[str, Any], environment: Mapping[str, str]) -> Resolved:
    """The settings of the engine; `entry` is what Hermes' config.yaml says. Never raises: what is refused keeps its
    default and is among the problems."""
    rest = [Source("config.yaml", entry), environment_source(environment)]
    try:
        found = user_source(environment)
    except ConfigError as error:
        resolved = resolve(rest, strict=False)
        return replace(resolved, problems=(*resolved.problems, str(error)))
    return resolve([found, *rest], strict=False)


def from_environment(environment: Mapping[str, str]) -> Settings:
    """The settings of a library call without any. Raises ConfigError."""
    return outside(environment).settings


def chosen_settings(given: Settings | Mapping[str, Any] | None, environment: Mapping[str, str]) -> Settings:
    """What a library call was given: settings, a mapping of names, or None: the environment's. Raises ConfigError."""
    if isinstance(given, Settings):
        return given
    if given is None:
        return from_environment(environment)
    if not isinstance(given, Mapping):
        raise ConfigError(f"settings: a Settings or a mapping is needed, not {type(given).__name__}")
    return resolve([Source("settings", given)], strict=True).settings
