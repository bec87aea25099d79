"""Whether this Hermes runs this engine: each way in which it silently falls back to its own compressor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..redact import redact
from .findings import Finding, note, ok, problem
from .locate import TRIED, Hermes

ENGINE = "hermes_jev"
SELECT = f"hermes config set context.engine {ENGINE}"
ENABLE = f"hermes plugins enable {ENGINE}"

_NAME = re.compile(r"^name:\s*['\"]?([^'\"#\n]*?)['\"]?\s*(?:#.*)?$", re.M)
_OWN = re.compile(rf"\b{ENGINE}\b")


def check(hermes: Hermes) -> list[Finding]:
    """What stands between this Hermes and this engine; a word that it runs where nothing does."""
    found = list(_host(hermes))
    if hermes.config is None:
        return [*found, problem("hermes", "config_unread", f"{hermes.home / 'config.yaml'}: {hermes.config_error}")]
    if not _wanted(hermes):
        text = f"nothing of {ENGINE} is set up in {hermes.home}; the README says how, the library works without"
        return [*found, note("hermes", "not_set_up", text)]
    reasons = [*_config(hermes), *_files(hermes)]
    return [*found, *reasons, *_verdict(hermes, bool([r for r in reasons if r.level == "problem"]))]


def set_up(hermes: Hermes) -> bool:
    """Whether anything in this home says that the engine is meant to run."""
    return hermes.config is not None and _wanted(hermes)


def _wanted(hermes: Hermes) -> bool:
    engine = hermes.at("context", "engine")
    named = isinstance(engine, str) and engine.strip().lower() == ENGINE
    return named or ENGINE in _listed(hermes, "enabled") or bool(_folders(hermes.home))


def _host(hermes: Hermes) -> Iterator[Finding]:
    yield ok("hermes", "home", f"home {hermes.home}")
    if hermes.python is None:
        text = "no Hermes was found to ask (no command `hermes` on the PATH), so only its files were read"
        yield note("hermes", "not_asked", text)
    elif hermes.version in TRIED:
        yield ok("hermes", "version", f"{hermes.version}, {hermes.python}")
    else:
        version = hermes.version or "an unknown version"
        yield note("hermes", "version", f"{version}, {hermes.python}; tried are {' and '.join(TRIED)}")


def _config(hermes: Hermes) -> Iterator[Finding]:
    engine = hermes.at("context", "engine")
    if not isinstance(engine, str) or engine in ("", "compressor"):
        yield problem("hermes", "not_selected", f"context.engine is the built-in compressor; {SELECT}")
    elif engine != ENGINE and engine.strip().lower() == ENGINE:
        yield problem(
            "hermes", "wrong_case", f"context.engine is {engine!r} and must be {ENGINE}, exactly so; {SELECT}"
        )
    elif engine != ENGINE:
        yield problem("hermes", "other_selected", f"context.engine is {redact(engine)!r}; {SELECT}")
    if ENGINE in _listed(hermes, "disabled"):
        yield problem("hermes", "disabled", f"the plugin is in plugins.disabled, which always wins; {ENABLE}")
    elif ENGINE not in _listed(hermes, "enabled"):
        near = [name for name in _listed(hermes, "enabled") if name.lower().replace("-", "_") == ENGINE]
        spelled = f" (it names {near[0]!r})" if near else ""
        yield problem("hermes", "not_enabled", f"the plugin is not in plugins.enabled{spelled}; {ENABLE}")
    if hermes.safe_mode:
        yield problem("hermes", "safe_mode", "HERMES_SAFE_MODE is set: no plugin is loaded; unset it")


def _files(hermes: Hermes) -> Iterator[Finding]:
    folders = _folders(hermes.home)
    if len(folders) > 1:
        yield note("hermes", "twice", f"the plugin is there {len(folders)} times: {', '.join(map(str, folders))}")
    for folder in folders:
        yield from _folder(folder)
    if not folders and hermes.python is None:
        text = f"there is no {hermes.home / 'plugins' / ENGINE}; copy the plugin there, or pip install it into Hermes"
        yield problem("hermes", "missing", text)


def _folder(folder: Path) -> Iterator[Finding]:
    wanted = {"plugin.yaml": "manifest", "__init__.py": "entry", f"{ENGINE}/__init__.py": "package"}
    gone = [name for name in wanted if not (folder / name).is_file()]
    if gone:
        yield problem("hermes", "incomplete", f"{folder} lacks {', '.join(gone)}; install the plugin anew")
    if folder.name != ENGINE:
        yield note("hermes", "folder_name", f"{folder} is best called {ENGINE}: newer hosts go by the folder's name")


def _folders(home: Path) -> list[Path]:
    """Folders of the home that are this plugin, by their name or by what their manifest says."""
    plugins = home / "plugins"
    try:
        inside = sorted(child for child in plugins.iterdir() if child.is_dir())
        below = [child for folder in inside for child in sorted(folder.iterdir()) if child.is_dir()]
    except OSError:
        return []
    return [folder for folder in [*inside, *below] if _is_ours(folder, plugins)]


def _is_ours(folder: Path, plugins: Path) -> bool:
    for name in ("plugin.yaml", "plugin.yml"):
        try:
            found = _NAME.search((folder / name).read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
        return found is not None and found[1] == ENGINE
    return folder.parent == plugins and folder.name == ENGINE


def _listed(hermes: Hermes, name: str) -> list[str]:
    value = hermes.at("plugins", name)
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _verdict(hermes: Hermes, explained: bool) -> Iterator[Finding]:
    """What Hermes itself came to, and where nothing explains it, what it said."""
    if hermes.python is None:
        return
    if hermes.error:
        yield problem("hermes", "asking_failed", f"asking Hermes failed: {redact(hermes.error)}")
    elif hermes.engine == ENGINE and hermes.copied and hermes.at("context", "engine") == ENGINE:
        yield ok("hermes", "runs", f"it takes {ENGINE} as its context engine")
        return
    yield from _why(hermes)
    if hermes.engine not in (None, ENGINE):
        text = f"another plugin registers its engine first: {redact(str(hermes.engine))}; disable that one"
        yield problem("hermes", "another_first", text)
    elif hermes.engine is None and not explained and not _broken(hermes):
        yield problem(
            "hermes", "not_loaded", "Hermes finds no such plugin; copy it there, or pip install it into Hermes"
        )
    yield note("hermes", "falls_back", "so sessions run with the built-in compressor, and only a log line says so")


def _why(hermes: Hermes) -> Iterator[Finding]:
    for line in _broken(hermes):
        yield problem("hermes", "broken", f"the plugin cannot be loaded: {redact(line)}; install it anew")


def _broken(hermes: Hermes) -> list[str]:
    return [line for line in hermes.said if line.startswith("Failed to load plugin") and _OWN.search(line)]
