"""Where requests go, and which key goes with them."""

from __future__ import annotations

import copy
import pickle
from typing import get_args

import pytest

from hermes_jev.errors import ConfigError
from hermes_jev.judge.dialects import DIALECTS
from hermes_jev.judge.endpoints import PRESETS, TYPESAFE, Endpoint, find_key, resolve_endpoint
from hermes_jev.settings import Settings
from hermes_jev.tokens import MARGIN

SECRET = "apikey_0123456789abcdef"


def test_the_preset_is_the_published_service() -> None:
    assert PRESETS["typesafe"] is TYPESAFE
    assert resolve_endpoint({}) == TYPESAFE
    assert TYPESAFE.url == "https://api.typesafe.ai/v1/systemone"
    assert (TYPESAFE.model, TYPESAFE.limits.questions, TYPESAFE.price_per_million_tokens) == ("jev-1.13.0", 64, 0.042)


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
    other = Endpoint(
        "other", "https://o.example", "/api/alpha/decisions", "systemone", "m", ("O_KEY",), (("O_URL", ()),)
    )

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


# --- the rows -----------------------------------------------------------------------------------------------------

ACCOUNT = {"CLOUDFLARE_ACCOUNT_ID": "a1b2c3"}
ROWS = {
    "typesafe": (
        "https://api.typesafe.ai/v1/systemone",
        "systemone",
        "jev-1.13.0",
        ("TYPESAFE_API_KEY", "JEV_API_KEY"),
    ),
    "openrouter": (
        "https://openrouter.ai/api/alpha/decisions",
        "systemone",
        "typesafe/jev-1.13",
        ("OPENROUTER_API_KEY",),
    ),
    "openai": ("https://api.openai.com/v1/decisions", "openai", "gpt-6-luna", ("OPENAI_API_KEY",)),
    "cloudflare": (
        "https://api.cloudflare.com/client/v4/accounts/a1b2c3/ai/run/@cf/cloudflare/clef-flash",
        "cloudflare",
        "clef-flash",
        ("CLOUDFLARE_API_TOKEN",),
    ),
    "vercel": (
        "https://ai-gateway.vercel.sh/typesafe/v1/systemone",
        "systemone",
        "jev-1.14.0",
        ("AI_GATEWAY_API_KEY",),
    ),
    "ollama": ("http://localhost:11434/v1/systemone", "systemone", "nimble", ()),
    "llamacpp": ("http://localhost:8080/v1/systemone", "systemone", "kev", ()),
}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_each_service_is_reached_where_it_is_served(name: str) -> None:
    endpoint = resolve_endpoint(ACCOUNT, preset=PRESETS[name])

    assert (endpoint.url, endpoint.dialect, endpoint.model, endpoint.key_variables) == ROWS[name]
    assert endpoint.key_needed is bool(endpoint.key_variables)


def test_every_row_has_a_setting_and_every_setting_a_row() -> None:
    setting = Settings.model_fields["endpoint"].annotation

    assert set(get_args(setting)) == set(PRESETS) == {*ROWS, "custom"}
    assert all(row.name == name and row.dialect in DIALECTS for name, row in PRESETS.items())


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_row_has_sound_limits(name: str) -> None:
    row = PRESETS[name]

    assert 2 <= row.limits.questions <= 400
    assert 2 <= row.limits.options <= 255
    # With the estimator's margin and the questions: 32k for the state, 64k in all is what is documented.
    assert row.limits.state_tokens * MARGIN < 28_000
    assert row.limits.state_tokens < row.limits.request_tokens <= 56_000 / MARGIN
    assert row.limits.both_noul_sides is (name in ("openrouter", "custom"))
    assert (row.price_per_million_tokens > 0) is (name not in ("ollama", "llamacpp", "custom"))


ALL_KEYS = {variable: f"key_of_{variable.lower()}" for row in PRESETS.values() for variable in row.key_variables}


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"custom"}))
def test_a_service_gets_its_own_key_and_no_other(name: str) -> None:
    endpoint = resolve_endpoint(ACCOUNT, preset=PRESETS[name])
    others = {variable: key for variable, key in ALL_KEYS.items() if variable not in endpoint.key_variables}

    found = find_key(endpoint, ALL_KEYS)

    assert (found[1] if found else "") == next(iter(endpoint.key_variables), "")
    assert find_key(endpoint, others) is None


@pytest.mark.parametrize("name", ["openrouter", "openai", "cloudflare", "vercel", "ollama", "llamacpp", "custom"])
def test_an_address_of_the_users_own_gets_none_of_the_services_keys(name: str) -> None:
    endpoint = resolve_endpoint(ACCOUNT, base_url="https://mine.example/v1", preset=PRESETS[name])

    assert endpoint.base == "https://mine.example" or name in ("openrouter", "cloudflare")
    found = find_key(endpoint, ALL_KEYS)
    assert found is not None
    assert found[1] == "JEV_API_KEY"


@pytest.mark.parametrize(
    "given", ["https://api.openai.com", "https://api.openai.com:443/v1", "https://API.openai.com/v1/decisions/"]
)
def test_the_services_own_address_written_out_keeps_its_key(given: str) -> None:
    endpoint = resolve_endpoint({}, base_url=given, preset=PRESETS["openai"])

    assert endpoint.url == "https://api.openai.com/v1/decisions"
    assert endpoint.key_variables == ("OPENAI_API_KEY",)


@pytest.mark.parametrize(
    "given", ["https://api.openai.com.example", "https://api.openai.com:8443", "https://openai.com"]
)
def test_an_address_that_looks_like_the_services_does_not(given: str) -> None:
    assert resolve_endpoint({}, base_url=given, preset=PRESETS["openai"]).key_variables == ("JEV_API_KEY",)


def test_of_two_keys_the_one_named_like_the_address_goes_there() -> None:
    both = {"TYPESAFE_API_KEY": "typesafes", "JEV_API_KEY": "jevs"}

    for env, variable in (
        (both, "TYPESAFE_API_KEY"),
        ({**both, "TYPESAFE_BASE_URL": "https://a.example"}, "TYPESAFE_API_KEY"),
        ({**both, "JEV_API_URL": "https://b.example"}, "JEV_API_KEY"),
        ({"TYPESAFE_API_KEY": "typesafes", "JEV_API_URL": "https://b.example"}, "TYPESAFE_API_KEY"),
        ({"JEV_API_KEY": "jevs", "TYPESAFE_BASE_URL": "https://a.example"}, "JEV_API_KEY"),
    ):
        found = find_key(resolve_endpoint(env), env)
        assert found is not None
        assert found[1] == variable


def test_a_routes_whole_address_is_taken_whatever_the_row() -> None:
    for given in ("https://openrouter.ai/api/v1/systemone", "https://gate.example/x/v1/decisions"):
        for name in ("openrouter", "custom", "typesafe"):
            assert resolve_endpoint({}, base_url=given, preset=PRESETS[name]).url == given


def test_custom_has_no_address_of_its_own() -> None:
    with pytest.raises(ConfigError, match=r"endpoint custom: .*base_url or JEV_API_URL"):
        resolve_endpoint({"TYPESAFE_BASE_URL": "https://a.example"}, preset=PRESETS["custom"])

    named = resolve_endpoint({"JEV_API_URL": "http://127.0.0.1:8900"}, preset=PRESETS["custom"])
    assert (named.url, named.key_needed) == ("http://127.0.0.1:8900/v1/systemone", False)


@pytest.mark.parametrize("account", ["", "  ", "a/../b", "a?b", "a b", "ä"])
def test_an_account_that_cannot_stand_in_an_address_is_refused(account: str) -> None:
    with pytest.raises(ConfigError, match="CLOUDFLARE_ACCOUNT_ID") as caught:
        resolve_endpoint({"CLOUDFLARE_ACCOUNT_ID": account}, preset=PRESETS["cloudflare"])

    assert not account.strip() or account not in str(caught.value)


def test_a_model_in_the_address_must_be_able_to_stand_there() -> None:
    preset = PRESETS["cloudflare"]

    assert resolve_endpoint(ACCOUNT, model="clef", preset=preset).url.endswith("/ai/run/@cf/cloudflare/clef")
    for model in ("../clef", "clef/x", "clef?x", "@cf"):
        with pytest.raises(ConfigError, match=r"^model: "):
            resolve_endpoint(ACCOUNT, model=model, preset=preset)


def test_the_official_variable_names_the_model_of_its_own_service_only() -> None:
    env = {"TYPESAFE_DEFAULT_MODEL": "jev-1.14.0"}

    assert resolve_endpoint(env).model == "jev-1.14.0"
    assert resolve_endpoint(env, model="jev-1.13.0").model == "jev-1.13.0"
    assert resolve_endpoint(env, preset=PRESETS["openrouter"]).model == "typesafe/jev-1.13"


def test_verdicts_of_one_model_at_two_services_are_not_confused() -> None:
    versions = [
        resolve_endpoint({**ACCOUNT, "JEV_API_URL": "https://a.example"}, preset=row).version
        for row in PRESETS.values()
    ]

    assert len(set(versions)) == len(PRESETS)
    assert TYPESAFE.version == "jev-1.13.0"


def test_an_endpoint_is_plain_data() -> None:
    endpoint = resolve_endpoint({}, base_url="http://127.0.0.1:1")

    assert copy.deepcopy(endpoint) == pickle.loads(pickle.dumps(endpoint)) == endpoint
