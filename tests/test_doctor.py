"""`jev doctor` where no Hermes is installed beside it: settings, judge, store, and the files of a home."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from builders import session
from host_run import install
from hosts import ROOT
from system_one_server import KEY, SystemOneServer
from test_serve import serving

import hermes_jev
from hermes_jev.cli.main import compact_main, main
from hermes_jev.doctor import Examined, examine
from hermes_jev.doctor.judging import masked
from hermes_jev.doctor.locate import home_of
from hermes_jev.judge import Lexical
from hermes_jev.judge.circuit import Standing, after
from hermes_jev.store import Services, Spent, Store

CHOSEN = {"context": {"engine": "hermes_jev"}, "plugins": {"enabled": ["hermes_jev"]}}


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with nothing in it, and an environment without a command."""
    user = tmp_path / "user"
    user.mkdir()
    for name in ("HERMES_HOME", "HERMES_JEV_CONFIG", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TYPESAFE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("PATH", str(tmp_path))
    return user


@pytest.fixture
def service() -> Iterator[SystemOneServer]:
    with SystemOneServer(decide=lambda *_: 0.9) as running:
        yield running


def look(tmp_path: Path, *, ask: bool = False, store: Path | None = None, **more: str) -> Examined:
    """Examine with an environment of these variables alone."""
    return examine({"PATH": str(tmp_path), **more}, store, ask)


def codes(found: Examined, level: str = "problem") -> list[str]:
    return [finding.code for finding in found.findings if finding.level == level]


def said(found: Examined, code: str) -> str:
    (text,) = [finding.text for finding in found.findings if finding.code == code]
    return text


def home(tmp_path: Path, config: Any = CHOSEN, plugin: bool = True) -> Path:
    folder = tmp_path / "hermes"
    folder.mkdir()
    (folder / "config.yaml").write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    if plugin:
        install(ROOT, folder / "plugins" / "hermes_jev")
    return folder


# --- without Hermes ---------------------------------------------------------------------------------------------------


def test_without_hermes_the_library_is_healthy_and_it_is_said(tmp_path: Path) -> None:
    found = look(tmp_path)

    assert found.healthy
    assert codes(found, "note") == ["no_key", "absent"]
    assert "lexical judge decides" in said(found, "in_effect")
    assert "nothing is stored yet" in said(found, "empty")
    assert list((tmp_path / "user").rglob("*")) == []


def test_the_command_tells_it_and_says_so_by_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert told.endswith("\nhealthy\n")
    assert "trigger_percent = 0.6 (default)" in told

    monkeypatch.setenv("HERMES_JEV_JUDGE", "jev")
    monkeypatch.setenv("HERMES_JEV_TRIGGER_PERCENT", "0.7")
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "PROBLEM  judge is jev and there is no key" in told
    assert "trigger_percent = 0.7 (environment)" in told
    assert told.endswith("\nnot healthy: 1 problem\n")


def test_the_same_under_the_other_command_and_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert compact_main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["healthy"] is True
    assert report["settings"]["judge"] == {"value": "auto", "origin": "default"}
    assert {"level", "area", "code", "text"} == set(report["findings"][0])


def test_a_setting_that_is_refused_is_a_problem_and_no_end(tmp_path: Path) -> None:
    found = look(tmp_path, HERMES_JEV_TRIGGER_PERCENT="7")

    assert codes(found) == ["refused"]
    assert "HERMES_JEV_TRIGGER_PERCENT" in said(found, "refused")


# --- judge ------------------------------------------------------------------------------------------------------------


def test_a_key_is_named_by_its_variable_and_never_told(tmp_path: Path) -> None:
    found = look(tmp_path, JEV_API_KEY=KEY)

    assert found.healthy
    text = said(found, "key")
    assert "JEV_API_KEY of the environment" in text
    assert f"{len(KEY)} characters" in text
    assert not any(KEY[at : at + 8] in repr(found) for at in range(len(KEY) - 8))


@pytest.mark.parametrize("key", ["k", "short-key-123", "x" * 23])
def test_of_a_short_key_nothing_is_told(key: str) -> None:
    assert masked(key) == f"of {len(key)} characters"


def test_an_address_that_cannot_be_used_is_a_problem(tmp_path: Path) -> None:
    found = look(tmp_path, HERMES_JEV_BASE_URL="http://example.com", TYPESAFE_API_KEY=KEY)

    assert codes(found) == ["cannot_be_reached"]
    assert "use https://" in said(found, "cannot_be_reached")


def test_a_service_that_failed_too_often_is_a_problem(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    services = Services(store)
    for _ in range(3):
        services.record("typesafe api.typesafe.ai", lambda row: after(Standing(*row), store.now(), False, 0.0))

    found = look(tmp_path, store=tmp_path / "store", TYPESAFE_API_KEY=KEY)

    assert codes(found) == ["circuit"]
    assert "failed 3 passes in a row" in said(found, "circuit")
    assert codes(look(tmp_path, store=tmp_path / "store")) == []


def test_what_the_day_cost_and_its_limit(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    Services(store).record("typesafe api.typesafe.ai", lambda row: row, Spent(3, 5_000, 0.021))
    given = {"store": tmp_path / "store", "TYPESAFE_API_KEY": KEY}

    assert "$0.0210, 3 requests, 5,000 tokens" in said(look(tmp_path, **given), "cost")  # type: ignore[arg-type]
    limited = look(tmp_path, HERMES_JEV_DAILY_COST_LIMIT_USD="0.02", **given)  # type: ignore[arg-type]
    assert limited.healthy
    assert "the lexical judge decides until tomorrow" in said(limited, "limit")


# --- probe ------------------------------------------------------------------------------------------------------------


def test_a_probe_asks_one_question_and_shows_the_exchange(tmp_path: Path, service: SystemOneServer) -> None:
    store = tmp_path / "store"
    found = look(tmp_path, ask=True, store=store, TYPESAFE_API_KEY=KEY, TYPESAFE_BASE_URL=service.url)

    assert found.healthy
    assert "answered 0.90" in said(found, "answered")
    (exchange,) = found.exchanges
    assert (exchange.url, exchange.status) == (f"{service.url}/v1/systemone", 200)
    assert json.loads(exchange.sent) == service.requests[0].body
    assert list(json.loads(exchange.sent)["questions"]) == ["t1_output"]
    assert json.loads(exchange.received)["answers"]["t1_output"]["noul"] == 0.9
    assert Services(Store(store)).spent().requests == 1
    assert KEY not in repr(found)


def test_a_probe_with_a_wrong_key(
    service: SystemOneServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TYPESAFE_API_KEY", "apikey_" + "w" * 40)
    monkeypatch.setenv("TYPESAFE_BASE_URL", service.url)

    assert main(["doctor", "--probe"]) == 1

    told = capsys.readouterr().out
    assert "PROBLEM  jev did not answer: auth" in told
    assert "401\n" in told
    assert f"POST {service.url}/v1/systemone" in told
    assert "wwww" not in told


def test_what_a_service_says_back_is_redacted(tmp_path: Path, service: SystemOneServer) -> None:
    secret = "sk-live-" + "a1B2" * 10
    service.mode, service.raw = "raw", {"t1_output": {"type": "noul", "noul": 2, "note": secret}}

    found = look(tmp_path, ask=True, TYPESAFE_API_KEY=KEY, TYPESAFE_BASE_URL=service.url)

    assert codes(found) == ["no_answer"]
    assert found.exchanges[0].status == 200
    assert '"note"' in found.exchanges[0].received
    assert secret not in repr(found)


def test_a_probe_of_nobody(tmp_path: Path) -> None:
    found = look(
        tmp_path,
        ask=True,
        TYPESAFE_API_KEY=KEY,
        TYPESAFE_BASE_URL="http://127.0.0.1:9",
        HERMES_JEV_PASS_DEADLINE_S="2",
    )

    assert codes(found) == ["no_answer"]
    assert "transient" in said(found, "no_answer")
    assert {exchange.status for exchange in found.exchanges} == {0}


def test_a_probe_of_the_embedded_judge_sends_nothing(tmp_path: Path) -> None:
    found = look(tmp_path, ask=True)

    assert found.healthy
    assert said(found, "answered").startswith(f"lexical ({Lexical.version}) answered 0.")
    assert found.exchanges == ()


def test_a_probe_of_the_served_judge(tmp_path: Path) -> None:
    with serving() as server:
        found = look(tmp_path, ask=True, TYPESAFE_API_KEY=KEY, TYPESAFE_BASE_URL=server.url)
    inside = look(tmp_path, ask=True)

    assert said(found, "answered").split()[3] == said(inside, "answered").split()[3]


# --- store ------------------------------------------------------------------------------------------------------------


def test_a_store_is_sound_and_counted(tmp_path: Path) -> None:
    pruned = hermes_jev.prune(session(12), judge="lexical", store=tmp_path / "store")
    pointers = [row.pointer for row in pruned.receipt.decisions if row.pointer]

    found = look(tmp_path, store=tmp_path / "store")

    assert found.healthy
    assert len(pointers) > 1
    assert f": {len(pointers):,} originals, " in said(found, "sound")


def test_a_damaged_store_is_a_problem(tmp_path: Path) -> None:
    hermes_jev.prune(session(12), judge="lexical", store=tmp_path / "store")
    (file,) = (tmp_path / "store").glob("*.sqlite3")
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(file.read_bytes())
    data[8_192:] = bytes(len(data) - 8_192)
    file.write_bytes(data)

    found = look(tmp_path, store=tmp_path / "store")

    assert not found.healthy
    assert set(codes(found)) <= {"damaged", "unusable"}


def test_a_place_where_nothing_can_be_stored_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    found = look(tmp_path, store=tmp_path / "file" / "store")

    assert "read_only" in codes(found)
    assert "nothing would be cut" in said(found, "read_only")


def test_a_store_that_others_may_read_is_noted(tmp_path: Path) -> None:
    hermes_jev.prune(session(12), judge="lexical", store=tmp_path / "store")
    (tmp_path / "store").chmod(0o755)

    found = look(tmp_path, store=tmp_path / "store")

    assert found.healthy
    assert "chmod go-rwx" in said(found, "open_to_others")


# --- the files of a home ----------------------------------------------------------------------------------------------


def test_a_home_without_the_engine_is_no_fault(tmp_path: Path) -> None:
    folder = home(tmp_path, {"model": {"default": "m"}}, plugin=False)

    found = look(tmp_path, HERMES_HOME=str(folder))

    assert found.healthy
    assert "not_set_up" in codes(found, "note")


def test_a_home_that_is_set_up_is_healthy_as_far_as_its_files_say(tmp_path: Path) -> None:
    folder = home(tmp_path)

    found = look(tmp_path, HERMES_HOME=str(folder))

    assert found.healthy
    assert "not_asked" in codes(found, "note")
    assert "runs" not in codes(found, "ok")
    assert str(folder / "hermes_jev") in said(found, "empty")


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ({"plugins": {"enabled": ["hermes_jev"]}}, ["not_selected"]),
        ({**CHOSEN, "context": {"engine": "HERMES_JEV"}}, ["wrong_case"]),
        ({**CHOSEN, "context": {"engine": "lcm"}}, ["other_selected"]),
        ({**CHOSEN, "plugins": {"enabled": ["hermes-jev"]}}, ["not_enabled"]),
        ({**CHOSEN, "plugins": {}}, ["not_enabled"]),
        ({**CHOSEN, "plugins": {"enabled": "hermes_jev"}}, ["not_enabled"]),
        ({**CHOSEN, "plugins": {"enabled": ["hermes_jev"], "disabled": ["hermes_jev"]}}, ["disabled"]),
        ({**CHOSEN, "compression": {"enabled": False}}, ["compression_off"]),
        ({**CHOSEN, "compression": {"enabled": "off"}}, ["compression_off"]),
        ({**CHOSEN, "model": {"context_length": 32_768}}, ["window_small"]),
        ({**CHOSEN, "model": {"context_length": "65536"}}, []),
        ({**CHOSEN, "auxiliary": {"compression": {"context_length": 8_192}}}, ["auxiliary_small"]),
        ({**CHOSEN, "agent": {"disabled_toolsets": ["context_engine"]}}, ["tools_hidden"]),
        ({**CHOSEN, "platform_toolsets": {"cli": [], "telegram": ["web"]}}, ["tools_hidden"]),
        ({**CHOSEN, "platform_toolsets": {"cli": ["terminal"]}}, []),
        ({"context": "hermes_jev", "plugins": ["hermes_jev"], "model": 3}, ["not_selected", "not_enabled"]),
    ],
)
def test_what_a_config_says(tmp_path: Path, config: Mapping[str, Any], wrong: list[str]) -> None:
    found = look(tmp_path, HERMES_HOME=str(home(tmp_path, config)))

    assert codes(found) == wrong


def test_settings_of_a_home_count_with_its_own_variables(tmp_path: Path) -> None:
    entries = {"hermes_jev": {"settings": {"enabled": False, "mode": "shadow", "urgent_percent": 9}}}
    folder = home(tmp_path, {**CHOSEN, "plugins": {"enabled": ["hermes_jev"], "entries": entries}})
    (folder / ".env").write_text(f'# keys\nTYPESAFE_API_KEY="{KEY}"\nBROKEN LINE\n', encoding="utf-8")

    found = look(tmp_path, HERMES_HOME=str(folder))

    assert codes(found) == ["refused", "switched_off"]
    assert "(config.yaml)" in said(found, "switched_off")
    assert "TYPESAFE_API_KEY of Hermes' .env" in said(found, "key")
    assert found.settings.origins["mode"] == "config.yaml"
    assert KEY not in repr(found)


@pytest.mark.parametrize("gone", ["plugin.yaml", "__init__.py", "hermes_jev/__init__.py"])
def test_a_plugin_folder_that_lacks_a_part(tmp_path: Path, gone: str) -> None:
    folder = home(tmp_path)
    (folder / "plugins" / "hermes_jev" / gone).unlink()

    found = look(tmp_path, HERMES_HOME=str(folder))

    assert codes(found) == ["incomplete"]
    assert gone in said(found, "incomplete")


def test_a_plugin_folder_that_is_missing_or_called_otherwise(tmp_path: Path) -> None:
    folder = home(tmp_path, plugin=False)
    assert codes(look(tmp_path, HERMES_HOME=str(folder))) == ["missing"]

    install(ROOT, folder / "plugins" / "hermes-jev")
    found = look(tmp_path, HERMES_HOME=str(folder))
    assert codes(found) == []
    assert "folder_name" in codes(found, "note")


def test_safe_mode_loads_no_plugin(tmp_path: Path) -> None:
    assert codes(look(tmp_path, HERMES_HOME=str(home(tmp_path)), HERMES_SAFE_MODE="1")) == ["safe_mode"]


def test_what_cannot_be_read_is_said_and_not_guessed(tmp_path: Path) -> None:
    folder = home(tmp_path, "context:\n  engine: hermes_jev\n")

    found = look(tmp_path, HERMES_HOME=str(folder))

    assert codes(found) == ["config_unread"]
    assert "run it with the Python of Hermes" in said(found, "config_unread")


def test_the_home_is_the_one_that_hermes_would_use(nowhere: Path) -> None:
    assert home_of({}) == nowhere / ".hermes"
    (nowhere / ".hermes" / "profiles" / "work").mkdir(parents=True)
    (nowhere / ".hermes" / "active_profile").write_text("work\n", encoding="utf-8")
    assert home_of({}) == nowhere / ".hermes" / "profiles" / "work"
    assert home_of({"HERMES_HOME": "~/other"}) == nowhere / "other"


# --- the log ----------------------------------------------------------------------------------------------------------

ACTIVE = "2026-11-30 10:00:00,000 INFO x.engine: hermes_jev: active; window 65,536 tokens, judge lexical"
FELL_BACK = (
    "2026-11-30 11:00:00,000 WARNING a: Context engine 'hermes_jev' not found — falling back to built-in compressor"
)
STARTED = "2026-11-30 12:00:00,000 INFO agent.conversation_loop: Pre-API compression: ~40,363 request tokens >= 39,321"
PASS = "2026-11-30 12:00:01,000 INFO [s] x.engine: hermes_jev: compacted: 1 shortened, token=sk-live-a1B2c3D4e5F6g7H8i9"


@pytest.mark.parametrize(
    ("lines", "code", "level"),
    [
        ([], "never_ran", "note"),
        ([FELL_BACK, ACTIVE], "ran", "ok"),
        ([ACTIVE, FELL_BACK], "fell_back", "problem"),
        ([ACTIVE, STARTED], "compaction_lost", "problem"),
        ([ACTIVE, STARTED, PASS], "log", "note"),
        ([ACTIVE + "; its tools are not offered (toolset context_engine)"], "tools_were_hidden", "note"),
    ],
)
def test_what_the_log_says_of_the_last_session(tmp_path: Path, lines: list[str], code: str, level: str) -> None:
    folder = home(tmp_path)
    (folder / "logs").mkdir()
    (folder / "logs" / "agent.log").write_text("\n".join(["another line", *lines, "a last line"]), encoding="utf-8")

    found = look(tmp_path, HERMES_HOME=str(folder))

    assert code in codes(found, level)
    assert found.healthy == (level != "problem")
    assert "a1B2c3D4e5F6" not in repr(found)
