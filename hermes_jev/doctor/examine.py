"""All checks, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import stores
from ..effective import outside
from ..errors import ConfigError
from ..judge import judge_of
from ..settings import Resolved, Settings
from ..store import Store
from . import judging, logs, running, selected, storing
from .findings import Finding, note, ok, problem
from .locate import Hermes, find
from .probe import Exchange, probe


@dataclass(frozen=True)
class Examined:
    """Everything found. `settings` are those in force: inside Hermes where the engine is set up there, else outside.
    `exchanges` are those of a probe."""

    findings: tuple[Finding, ...]
    settings: Resolved
    exchanges: tuple[Exchange, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return all(finding.level != "problem" for finding in self.findings)


def examine(environment: Mapping[str, str], store: Path | None = None, ask: bool = False) -> Examined:
    """Look at everything and change nothing; with `ask`, ask the judge one question.

    `store` is the folder to look at instead of the one in force. Never raises for what is found.
    """
    hermes = find(environment)
    engaged = hermes is not None and selected.set_up(hermes)
    variables = hermes.variables if hermes is not None and engaged else {}
    environment = {**environment, **variables}
    settings, findings = _settings(hermes if engaged else None, environment)
    kept = Store((store or _folder(settings.settings, hermes if engaged else None, environment)).expanduser())
    findings += judging.check(settings.settings, environment, variables, kept)
    findings += storing.check(kept)
    findings += _hermes(hermes)
    if not ask:
        return Examined(tuple(findings), settings)
    probed, exchanges = _probe(settings.settings, environment, kept)
    return Examined((*findings, probed), settings, exchanges)


def _settings(hermes: Hermes | None, environment: Mapping[str, str]) -> tuple[Resolved, list[Finding]]:
    try:
        found = outside(environment) if hermes is None else running.settings_in(hermes, environment)
    except ConfigError as error:
        return Resolved(Settings(), {}), [problem("settings", "refused", f"{error}; the defaults are looked at")]
    findings = [problem("settings", "refused", f"{text}; the default counts") for text in found.problems]
    place = "in Hermes" if hermes is not None else "outside Hermes"
    findings.append(ok("settings", "in_force", f"{place}: {len(found.origins)} of them are not the defaults"))
    if not found.settings.enabled:
        text = f"enabled is false ({found.origins.get('enabled', 'default')}): the engine leaves every list as it is"
        findings.append(problem("settings", "switched_off", text))
    elif found.settings.mode == "shadow":
        findings.append(note("settings", "shadow", "mode is shadow: passes are judged and recorded, nothing is cut"))
    return found, findings


def _folder(settings: Settings, hermes: Hermes | None, environment: Mapping[str, str]) -> Path:
    if settings.store_dir:
        return Path(settings.store_dir)
    return stores.default_folder(environment) if hermes is None else hermes.home / stores.FOLDER


def _hermes(hermes: Hermes | None) -> list[Finding]:
    if hermes is None:
        return [note("hermes", "absent", "no Hermes is here; library and command line work without")]
    found = selected.check(hermes)
    if not selected.set_up(hermes):
        return found
    runs = any(finding.code == "runs" for finding in found)
    return [*found, *running.check(hermes), *logs.check(hermes.home, runs)]


def _probe(settings: Settings, environment: Mapping[str, str], store: Store) -> tuple[Finding, tuple[Exchange, ...]]:
    try:
        judge = judge_of("auto", settings, environment)
    except ConfigError as error:
        return problem("probe", "not_asked", f"nothing was asked: {error}"), ()
    probed = probe(judge, settings.pass_deadline_s, store)
    return probed.finding, probed.exchanges
