"""Where settings come from, in which order, and what is said of a file that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_jev.cli import main
from hermes_jev.effective import from_environment, inside, outside, user_file, user_source
from hermes_jev.errors import ConfigError
from hermes_jev.settings import Settings, Source


def written(folder: Path, text: str | bytes) -> dict[str, str]:
    """An environment that names a settings file with this text."""
    file = folder / "config.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return {"HERMES_JEV_CONFIG": str(file)}


def test_the_order_is_file_entry_environment_flags(tmp_path: Path) -> None:
    names = ("pin_last_calls", "concurrency", "items_per_request", "max_candidates", "excerpt_chars")
    environment = written(tmp_path, "".join(f"{name} = 11\n" for name in names[1:]))
    environment |= {f"HERMES_JEV_{name.upper()}": "13" for name in names[3:]}

    found = inside(dict.fromkeys(names[2:], 12), environment)
    assert [getattr(found.settings, name) for name in names] == [3, 11, 12, 13, 13]
    assert [found.origins.get(name, "default") for name in names] == [
        "default",
        environment["HERMES_JEV_CONFIG"],
        "config.yaml",
        "environment",
        "environment",
    ]
    flagged = outside(environment, Source("--set", {"excerpt_chars": 14}))
    assert (flagged.settings.max_candidates, flagged.settings.excerpt_chars) == (13, 14)


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert from_environment({}) == Settings()
    assert user_file({}) == tmp_path / "hermes_jev" / "config.toml"


def test_the_users_own_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "hermes_jev" / "config.toml"
    file.parent.mkdir()
    file.write_text("pin_last_calls = 9\n")
    assert from_environment({}).pin_last_calls == 9


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("pin_last_calls = ", "not TOML"),
        (b"\xff\xfe", "not UTF-8"),
        ("colour = 1", "colour"),
        ("pin_last_calls = -1", "pin_last_calls"),
        ("[judge]\nname = 1", "judge"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, text: str | bytes, word: str) -> None:
    """Outside Hermes it stops with name, value and file; inside it is said and the rest holds."""
    environment = {**written(tmp_path, text), "HERMES_JEV_CONCURRENCY": "5"}
    with pytest.raises(ConfigError) as raised:
        outside(environment)
    assert word in str(raised.value)
    assert environment["HERMES_JEV_CONFIG"] in str(raised.value)

    found = inside({"pin_last_calls": 4}, environment)
    assert (found.settings.concurrency, found.settings.pin_last_calls) == (5, 4)
    assert any(word in problem for problem in found.problems)


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    for name in (tmp_path / "none.toml", tmp_path, Path("~nobody-of-this-name/x.toml")):
        with pytest.raises(ConfigError, match=r"HERMES_JEV_CONFIG|cannot be read"):
            user_source({"HERMES_JEV_CONFIG": str(name)})


def test_the_variables_that_are_no_settings_are_known(tmp_path: Path) -> None:
    environment = {**written(tmp_path, ""), "HERMES_JEV_RECEIPT_PATH": "receipts.jsonl"}
    assert outside(environment).problems == ()


def test_jev_config_says_each_value_and_where_it_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = written(tmp_path, 'judge = "lexical"\n')
    monkeypatch.setenv("HERMES_JEV_CONFIG", environment["HERMES_JEV_CONFIG"])
    monkeypatch.setenv("HERMES_JEV_PIN_LAST_CALLS", "5")

    assert main(["config", "--json", "--set", "excerpt_chars=250"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert set(rows) == set(Settings.model_fields)
    assert rows["judge"] == {"value": "lexical", "origin": environment["HERMES_JEV_CONFIG"], "default": "auto"}
    assert rows["pin_last_calls"] == {"value": 5, "origin": "environment", "default": 3}
    assert rows["excerpt_chars"] == {"value": 250, "origin": "--set", "default": 300}
    assert rows["mode"] == {"value": "active", "origin": "default", "default": "active"}

    assert main(["config"]) == 0
    shown = capsys.readouterr()
    assert "5  (environment)" in shown.out
    assert environment["HERMES_JEV_CONFIG"] in shown.err

    assert main(["config", "--set", "colour=red"]) == 2
    assert "colour (--set): unknown setting" in capsys.readouterr().err
