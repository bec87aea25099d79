"""Every setting, its limits, where it came from, and what is said of one that is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hermes_jev.errors import ConfigError
from hermes_jev.settings import Resolved, Settings, Source, environment_source, resolve

NAMES = tuple(Settings.model_fields)

WRONG: dict[str, list[Any]] = {
    "enabled": ["perhaps", 7, None, []],
    "mode": ["passive", "", None],
    "trigger_percent": [0, 1, -0.1, "60%", float("nan"), float("inf"), True, None],
    "urgent_percent": [0, 1, 2.0, "high", float("nan"), False],
    "target_percent": [0, 1, "x", True],
    "schedule": ["", "never", None, 1],
    "deepen": ["words", "", None, 1, True],
    "cached_input_price": [-0.01, 1_000_001, "much", float("nan"), float("inf"), True, None],
    "cache_write_price": [-0.01, 1_000_001, "much", float("nan"), float("inf"), True, None],
    "expected_calls": [0, -1, 1_000_001, "x", True, 1.5],
    "min_gain_percent": [-0.01, 1, "x", float("nan"), True],
    "reserve_output_tokens": [-1, 0.5, "many", True, None],
    "pin_last_calls": [-1, 2.5, "three", True],
    "pin_max_chars": [0, -5, "x", True],
    "protected_tools": [5, [5], None, "[5]"],
    "latest_tools": [{"todo": 1}, [None], '{"todo": 1}'],
    "call_threshold": [-0.1, 1.1, "x", float("nan"), True],
    "output_threshold": [-0.1, 1.1, "x", float("inf"), True],
    "calibration": ["oracle", "", None, 1],
    "excerpt_chars": [0, -1, "x", 1.5, True],
    "removed_calls": ["keep", "", None, 5],
    "last_resort": ["words", "", None, True],
    "fact_chars": [-1, "x", 1.5, True, None],
    "judge": ["oracle", "", None, 5],
    "endpoint": ["bedrock", "", None, 5],
    "base_url": [5, None, ["http://x"]],
    "model": [5, None],
    "request_timeout_s": [0, -1, 601, "soon", float("nan"), True],
    "pass_deadline_s": [0, 601, float("inf"), True],
    "concurrency": [0, 65, "x", True],
    "items_per_request": [0, 33, "x", True],
    "max_candidates": [0, "x", True],
    "daily_cost_limit_usd": [-0.01, "much", float("nan"), float("inf"), True, []],
    "egress": ["on", "", None, 5, True],
    "store_dir": [5, None],
    "store_max_age_days": [0, -1, "old", float("inf"), True],
    "store_max_bytes": [0, -1, "1 GB", 0.5, True],
    "receipts": ["perhaps", None, 7],
}
CASES = [pytest.param(name, value, id=f"{name}={value!r}") for name, values in WRONG.items() for value in values]


def test_each_setting_says_what_it_does() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert field.description[0] in "`" or field.description[0].isupper(), name
        assert field.description.rstrip().endswith("."), name


def test_there_are_wrong_values_for_every_setting() -> None:
    assert set(WRONG) == set(NAMES)


def test_the_defaults() -> None:
    assert Settings().model_dump() == {
        "enabled": True,
        "mode": "active",
        "trigger_percent": 0.60,
        "urgent_percent": 0.85,
        "target_percent": 0.30,
        "schedule": "threshold",
        "deepen": "turns",
        "cached_input_price": 0.30,
        "cache_write_price": 3.75,
        "expected_calls": 150,
        "min_gain_percent": 0.05,
        "reserve_output_tokens": 0,
        "pin_last_calls": 3,
        "pin_max_chars": 1500,
        "protected_tools": ("skill_view", "skills_list", "memory", "clarify"),
        "latest_tools": ("todo",),
        "call_threshold": 0.5,
        "output_threshold": 0.5,
        "calibration": "fixed",
        "excerpt_chars": 300,
        "removed_calls": "notice",
        "last_resort": "text",
        "fact_chars": 1200,
        "judge": "auto",
        "endpoint": "typesafe",
        "base_url": "",
        "model": "",
        "request_timeout_s": 10.0,
        "pass_deadline_s": 10.0,
        "concurrency": 8,
        "items_per_request": 32,
        "max_candidates": 256,
        "daily_cost_limit_usd": None,
        "egress": "redacted",
        "store_dir": "",
        "store_max_age_days": 30,
        "store_max_bytes": 1_000_000_000,
        "receipts": True,
    }


@pytest.mark.parametrize(("name", "value"), CASES)
def test_a_refusal_names_setting_value_and_source(name: str, value: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        resolve([Source("config.yaml", {name: value})], strict=True)

    message = str(refused.value)
    assert name in message
    assert repr(value) in message
    assert "config.yaml" in message
    assert "\n" not in message


@pytest.mark.parametrize(("name", "value"), CASES)
def test_a_refused_value_keeps_its_default_and_the_others_count(name: str, value: Any) -> None:
    other = "receipts" if name != "receipts" else "enabled"

    found = resolve([Source("config.yaml", {name: value, other: False})], strict=False)

    assert found.settings == Settings.model_validate({other: False})
    assert found.origins == {other: "config.yaml"}
    assert len(found.problems) == 1
    assert name in found.problems[0]


def test_settings_are_frozen_and_closed() -> None:
    with pytest.raises(ValidationError):
        Settings().mode = "shadow"
    with pytest.raises(ValidationError):
        Settings.model_validate({"colour": "red"})


def test_a_later_source_wins_and_is_named() -> None:
    sources = [
        Source("config.yaml", {"pin_last_calls": 5, "mode": "shadow"}),
        environment_source({"HERMES_JEV_PIN_LAST_CALLS": "7", "PATH": "/bin", "HERMES_HOME": "/h"}),
        Source("--set", {"excerpt_chars": 100}),
    ]

    found = resolve(sources, strict=True)

    assert found.settings == Settings(pin_last_calls=7, mode="shadow", excerpt_chars=100)
    assert found.origins == {"pin_last_calls": "environment", "mode": "config.yaml", "excerpt_chars": "--set"}
    assert found.problems == ()


def test_a_refused_value_leaves_an_earlier_good_one_in_force() -> None:
    found = resolve(
        [Source("config.yaml", {"pin_last_calls": 5}), Source("--set", {"pin_last_calls": -1})], strict=False
    )

    assert found.settings.pin_last_calls == 5
    assert found.origins == {"pin_last_calls": "config.yaml"}


def test_an_unknown_setting_is_refused_and_an_unknown_variable_only_said() -> None:
    with pytest.raises(ConfigError, match=r"triger_percent \(config\.yaml\): unknown setting"):
        resolve([Source("config.yaml", {"triger_percent": 0.5})], strict=True)

    found = resolve([environment_source({"HERMES_JEV_COLOUR": "red"})], strict=True)
    assert found.problems == ("HERMES_JEV_COLOUR (environment): unknown setting",)


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("TRIGGER_PERCENT", "0.7", {"trigger_percent": 0.7}),
        ("ENABLED", "false", {"enabled": False}),
        ("RECEIPTS", "0", {"receipts": False}),
        ("PIN_MAX_CHARS", "2000", {"pin_max_chars": 2000}),
        ("JUDGE", "lexical", {"judge": "lexical"}),
        ("STORE_DIR", "/data/jev", {"store_dir": "/data/jev"}),
        ("LATEST_TOOLS", "todo,plan", {"latest_tools": ("todo", "plan")}),
        ("LATEST_TOOLS", " todo , plan ,", {"latest_tools": ("todo", "plan")}),
        ("LATEST_TOOLS", '["todo", "plan"]', {"latest_tools": ("todo", "plan")}),
        ("LATEST_TOOLS", "", {"latest_tools": ()}),
        ("PROTECTED_TOOLS", "[]", {"protected_tools": ()}),
        ("PROTECTED_TOOLS", "mcp__a.b", {"protected_tools": ("mcp__a.b",)}),
    ],
)
def test_variables(variable: str, text: str, expected: dict[str, Any]) -> None:
    found = resolve([environment_source({f"HERMES_JEV_{variable}": text})], strict=True)

    assert found.settings == Settings(**expected)


def test_a_refused_variable_is_named_as_it_is_set() -> None:
    with pytest.raises(ConfigError, match=r"HERMES_JEV_TRIGGER_PERCENT \(environment\): '60%' is refused"):
        resolve([environment_source({"HERMES_JEV_TRIGGER_PERCENT": "60%"})], strict=True)


def test_a_long_refused_value_is_shortened() -> None:
    with pytest.raises(ConfigError) as refused:
        resolve([Source("config.yaml", {"mode": "x" * 5_000})], strict=True)

    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "values",
    [
        {"target_percent": 0.6},
        {"trigger_percent": 0.9},
        {"trigger_percent": 0.2},
        {"urgent_percent": 0.5},
        {"excerpt_chars": 1_300},
        {"pin_max_chars": 500},
        {"target_percent": 0.9, "excerpt_chars": 1_499},
    ],
)
def test_values_that_are_impossible_together(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="is needed"):
        resolve([Source("config.yaml", values)], strict=True)

    found = resolve([Source("config.yaml", {**values, "pin_last_calls": 9})], strict=False)
    assert found.settings == Settings(pin_last_calls=9)
    assert found.origins == {"pin_last_calls": "config.yaml"}
    assert found.problems


@pytest.mark.parametrize(
    "values",
    [
        {"trigger_percent": 0.85},
        {"target_percent": 0.59},
        {"target_percent": 0.1, "trigger_percent": 0.2, "urgent_percent": 0.2},
        {"excerpt_chars": 1_299},
        {"excerpt_chars": 1, "pin_max_chars": 202},
        {"min_gain_percent": 0},
        {"pin_last_calls": 0, "call_threshold": 0, "output_threshold": 1},
    ],
)
def test_values_on_the_edge_of_the_possible(values: dict[str, Any]) -> None:
    assert resolve([Source("config.yaml", values)], strict=True).settings == Settings(**values)


SHARES = st.sampled_from([0.1, 0.3, 0.5, 0.9, 1.5, "x"])
SIZES = st.sampled_from([0, 100, 300, 1_400, 5_000, -1, None])


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "target_percent": SHARES,
            "trigger_percent": SHARES,
            "urgent_percent": SHARES,
            "excerpt_chars": SIZES,
            "pin_max_chars": SIZES,
            "mode": st.sampled_from(["active", "odd"]),
            "colour": st.just("red"),
        },
    )
)
def test_inside_hermes_no_mixture_of_values_raises(values: dict[str, Any]) -> None:
    found = resolve([Source("config.yaml", values)], strict=False)

    assert isinstance(found, Resolved)
    assert set(found.origins) <= set(values)
    assert all(found.settings.model_dump()[name] == values[name] for name in found.origins)
    assert found.problems or set(found.origins) == set(values)


def test_a_key_that_was_put_into_the_wrong_setting_is_not_repeated() -> None:
    key = "sk-ant-api03-" + "Ab3dEf6hIj9lMn2pQr5tUv8xAb3dEf6hIj9lMn2"

    found = resolve([environment_source({"HERMES_JEV_JUDGE": key})], strict=False)

    assert "HERMES_JEV_JUDGE" in found.problems[0]
    assert key not in found.problems[0]


def test_a_folder_of_nobody_is_refused() -> None:
    found = resolve([Source("config.yaml", {"store_dir": "~nobody-of-that-name/x"})], strict=False)

    assert found.settings.store_dir == ""
    assert "store_dir" in found.problems[0]


@pytest.mark.parametrize("value", ['["a", "b"]', "a, b", "a,b,"])
def test_a_list_may_be_written_as_json_or_with_commas_anywhere(value: str) -> None:
    for source in (environment_source({"HERMES_JEV_PROTECTED_TOOLS": value}), Source("x", {"protected_tools": value})):
        assert resolve([source], strict=True).settings.protected_tools == ("a", "b")


def test_off_without_quotes_in_yaml_is_off() -> None:
    assert Settings.model_validate({"egress": False}).egress == "off"
