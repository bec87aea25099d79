"""Where requests go, and which key goes with them."""

from __future__ import annotations

import copy
import pickle

import pytest

from hermes_jev.errors import ConfigError
from hermes_jev.judge.endpoints import PRESETS, TYPESAFE, Endpoint, find_key, resolve_endpoint

SECRET = "apikey_0123456789abcdef"


def test_the_preset_is_the_published_service() -> None:
    assert PRESETS["typesafe"] is TYPESAFE
    assert resolve_endpoint({}) == TYPESAFE
    assert TYPESAFE.url == "https://api.typesafe.ai/v1/systemone"
    assert (TYPESAFE.model, TYPESAFE.max_questions, TYPESAFE.price_per_million_tokens) == ("jev-1.13.0", 64, 0.042)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("https://jev.example", "https://jev.example/v1/systemone"),
        ("https://jev.example/", "https://jev.example/v1/systemone"),
        ("https://jev.example/v1", "https://jev.example/v1/systemone"),
        ("https://jev.example/v1/", "https://jev.example/v1/systemone"),
        ("https://jev.example/v1/systemone", "https://jev.example/v1/systemone"),
        ("https://jev.example/v1/systemone/", "https://jev.example/v1/systemone"),
        ("https://gate.example/typesafe", "https://gate.example/typesafe/v1/systemone"),
        ("https://gate.example/typesafe/v1/systemone", "https://gate.example/typesafe/v1/systemone"),
        ("https://sarvam.example/v2/systemone", "https://sarvam.example/v2/systemone"),
        ("https://gate.example/systemone", "https://gate.example/systemone"),
        ("https://gate.example/run/@cf/clef/v1", "https://gate.example/run/@cf/clef/v1/systemone"),
        ("  https://JEV.example:8443/v1  ", "https://jev.example:8443/v1/systemone"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/systemone"),
        ("http://localhost:11434/v1", "http://localhost:11434/v1/systemone"),
        ("http://[::1]:8080", "http://[::1]:8080/v1/systemone"),
        ("http://10.1.2.3", "http://10.1.2.3/v1/systemone"),
        ("http://172.31.0.9", "http://172.31.0.9/v1/systemone"),
        ("http://192.168.1.20:9000", "http://192.168.1.20:9000/v1/systemone"),
        ("http://[fd00::5]", "http://[fd00::5]/v1/systemone"),
    ],
)
def test_a_root_a_base_or_a_whole_address_is_understood(given: str, url: str) -> None:
    assert resolve_endpoint({}, base_url=given).url == url
    assert resolve_endpoint({"JEV_API_URL": given}).url == url


@pytest.mark.parametrize(
    "given",
    [
        "jev.example",
        "ftp://jev.example",
        "file:///etc/passwd",
        "https://",
        "https:///v1",
        "https://jev.example:port",
        "https://[::1",
        "https://a\\b@jev.example",
        "https://jev.example\\@127.0.0.1",
        "https://jev\n.example",
        "https://jev.example\\v1",
        "https://jev.example/\udc80",
        "https://user:hunter22@jev.example",
        "https://hunter22@jev.example",
        "https://@jev.example",
        "https://jev.example/v1?key=hunter22",
        "https://jev.example/v1?",
        "https://jev.example/#hunter22",
        "http://jev.example",
        "http://8.8.8.8",
        "http://172.32.0.1",
        "http://2130706433",
        "http://127.0.0.1.jev.example",
        "http://localhost.jev.example",
        "http://169.254.169.254",
        "http://[2001:db8::1]",
    ],
)
def test_an_unsafe_address_is_refused_by_the_name_of_its_source(given: str) -> None:
    for source, env, base_url in (
        ("base_url", {}, given),
        ("TYPESAFE_BASE_URL", {"TYPESAFE_BASE_URL": given}, None),
        ("JEV_API_URL", {"JEV_API_URL": given}, None),
    ):
        with pytest.raises(ConfigError) as caught:
            resolve_endpoint(env, base_url)
        assert str(caught.value).startswith(f"{source}: ")
        assert "hunter22" not in str(caught.value)
        assert "jev.example" not in str(caught.value)


def test_the_setting_comes_before_the_variables_in_their_order() -> None:
    env = {"JEV_API_URL": "https://two.example", "TYPESAFE_BASE_URL": "https://one.example"}

    assert resolve_endpoint(env, base_url="https://mine.example").base == "https://mine.example"
    assert resolve_endpoint(env).base == "https://one.example"
    assert resolve_endpoint({**env, "TYPESAFE_BASE_URL": " "}).base == "https://two.example"
    assert resolve_endpoint({"TYPESAFE_BASE_URL": "", "JEV_API_URL": ""}, base_url="") == TYPESAFE


def test_the_model_is_the_setting_or_the_pinned_one() -> None:
    assert resolve_endpoint({}, model="jev-1.14.0").model == "jev-1.14.0"
    assert resolve_endpoint({}, model=" ").model == "jev-1.13.0"


def test_another_preset_is_resolved_with_its_own_route() -> None:
    other = Endpoint("other", "https://o.example", "/api/alpha/decisions", "systemone", "m", ("O_KEY",), ("O_URL",))

    assert resolve_endpoint({"O_URL": "https://p.example"}, preset=other).url == "https://p.example/api/alpha/decisions"
    whole = "https://p.example/v1/decisions"
    assert resolve_endpoint({"O_URL": whole}, preset=other).url == whole
    assert find_key(other, {"TYPESAFE_API_KEY": SECRET}) is None


@pytest.mark.parametrize(
    ("env", "variable"),
    [
        ({"TYPESAFE_API_KEY": SECRET, "JEV_API_KEY": "other"}, "TYPESAFE_API_KEY"),
        ({"JEV_API_KEY": f" {SECRET}\n"}, "JEV_API_KEY"),
        ({"TYPESAFE_API_KEY": "  ", "JEV_API_KEY": SECRET}, "JEV_API_KEY"),
    ],
)
def test_the_key_is_found_in_order(env: dict[str, str], variable: str) -> None:
    found = find_key(TYPESAFE, env)

    assert found is not None
    key, source = found
    assert (key.get_secret_value(), source) == (SECRET, variable)
    assert SECRET not in repr(found) + str(found)


def test_no_key_is_none() -> None:
    assert find_key(TYPESAFE, {}) is None
    assert find_key(TYPESAFE, {"TYPESAFE_API_KEY": "", "OPENAI_API_KEY": SECRET}) is None


@pytest.mark.parametrize("spoiler", ["\n", " ", "\x00", "é", "\udc80", "“"])
def test_a_key_that_cannot_stand_in_a_header_is_refused_without_being_shown(spoiler: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_key(TYPESAFE, {"JEV_API_KEY": f"{SECRET}{spoiler}x"})

    assert str(caught.value).startswith("JEV_API_KEY: ")
    assert SECRET not in str(caught.value) + repr(caught.value)


def test_an_endpoint_is_plain_data() -> None:
    endpoint = resolve_endpoint({}, base_url="http://127.0.0.1:1")

    assert copy.deepcopy(endpoint) == pickle.loads(pickle.dumps(endpoint)) == endpoint
