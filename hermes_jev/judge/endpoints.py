"""Where a System One service is reached: presets, the address, and the key.

Everything here is data and pure functions over a mapping of environment variables; nothing is sent. Messages name the
variable or setting at fault and never repeat its value, which may hold a password or a key.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, replace

import httpx
from pydantic import SecretStr

from ..errors import ConfigError

_LOCAL_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One service: its address, how it speaks, and what it costs.

    `base` is the root without a trailing slash and `path` the route below it, with its leading slash. `dialect` is a
    key of `dialects.DIALECTS`. The variables are looked up in order; the first one that is set counts.
    `price_per_million_tokens` is in US dollars, for input tokens (output is free).
    """

    name: str
    base: str
    path: str
    dialect: str
    model: str
    key_variables: tuple[str, ...]
    base_variables: tuple[str, ...]
    max_questions: int = 64
    price_per_million_tokens: float = 0.0

    @property
    def url(self) -> str:
        """The whole address that requests are posted to."""
        return self.base + self.path


# Thresholds on probabilities hold for one version of the model, so the version is pinned and not "latest".
TYPESAFE = Endpoint(
    name="typesafe",
    base="https://api.typesafe.ai",
    path="/v1/systemone",
    dialect="systemone",
    model="jev-1.13.0",
    key_variables=("TYPESAFE_API_KEY", "JEV_API_KEY"),
    base_variables=("TYPESAFE_BASE_URL", "JEV_API_URL"),
    max_questions=64,
    price_per_million_tokens=0.042,
)

PRESETS: Mapping[str, Endpoint] = {TYPESAFE.name: TYPESAFE}


def resolve_endpoint(
    env: Mapping[str, str], base_url: str | None = None, model: str | None = None, preset: Endpoint = TYPESAFE
) -> Endpoint:
    """The preset with the address and model that the user asked for.

    The address is `base_url`, else the first variable of `preset.base_variables` that is set, else the preset's own.
    It may be a root, a base that ends in the version (`…/v1`), or the whole address of the route. Blank means unset.

    Raises ConfigError, naming `base_url` or the variable, for an address that is no URL, that has credentials, a
    query or a fragment, or that would send the key unencrypted outside loopback and private addresses.
    """
    chosen = _chosen_base(env, base_url, preset)
    resolved = replace(preset, model=(model or "").strip() or preset.model)
    if chosen is None:
        return resolved
    source, text = chosen
    base, path = _split_route(_checked_url(text, source), preset.path)
    return replace(resolved, base=base, path=path)


def find_key(endpoint: Endpoint, env: Mapping[str, str]) -> tuple[SecretStr, str] | None:
    """The key and the variable it was found in, or None where no variable is set.

    Raises ConfigError for a key that cannot stand in a header.
    """
    for variable in endpoint.key_variables:
        key = env.get(variable, "").strip()
        if key:
            return checked_key(SecretStr(key), variable), variable
    return None


def checked_key(key: SecretStr, source: str) -> SecretStr:
    """The key itself, if it is printable ASCII without spaces; else a ConfigError that names `source`.

    HTTP libraries quote a header they cannot send in their error text, and the key with it.
    """
    text = key.get_secret_value()
    if not text or any(not "!" <= character <= "~" for character in text):
        raise ConfigError(f"{source}: a key is printable ASCII without spaces; this one is not")
    return key


def _chosen_base(env: Mapping[str, str], base_url: str | None, preset: Endpoint) -> tuple[str, str] | None:
    candidates = [("base_url", base_url or ""), *((name, env.get(name, "")) for name in preset.base_variables)]
    return next(((name, text.strip()) for name, text in candidates if text.strip()), None)


def _checked_url(text: str, source: str) -> httpx.URL:
    # Parsed by the library that will connect: what is checked here is what is used there.
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        raise ConfigError(f"{source}: not a URL") from None
    if url.scheme not in ("https", "http") or not url.host or "\\" in text:
        raise ConfigError(f"{source}: not an https:// URL")
    if "@" in text.split("://", 1)[-1].split("/", 1)[0]:
        raise ConfigError(f"{source}: a URL must not hold a user name or password; the key has a variable of its own")
    if "?" in text or "#" in text:
        raise ConfigError(f"{source}: a URL must not hold a query or a fragment")
    if url.scheme == "http" and not _is_local(url.host):
        raise ConfigError(f"{source}: http:// is for loopback and private addresses only; use https://")
    return url


def _is_local(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(address in network for network in _LOCAL_NETWORKS)


def _split_route(url: httpx.URL, route: str) -> tuple[str, str]:
    """Base and path of an address that may end in all, some or nothing of the preset's route `/v1/systemone`."""
    version, _, last = route.rpartition("/")
    origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
    path = url.raw_path.decode("ascii").rstrip("/")
    if path.endswith(route):
        return origin + path.removesuffix(route), route
    if path.endswith(f"/{last}"):
        return origin + path.removesuffix(f"/{last}"), f"/{last}"
    return origin + path.removesuffix(version), route
