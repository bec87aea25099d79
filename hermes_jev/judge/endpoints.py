"""Where a service is reached and which key goes there.

Everything here is pure functions over a mapping of environment variables; nothing is sent. Messages name the variable
or setting at fault and never repeat its value, which may hold a password or a key.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import replace

import httpx
from pydantic import SecretStr

from ..errors import ConfigError
from .presets import PRESETS, TYPESAFE, Endpoint

__all__ = ["PRESETS", "TYPESAFE", "Endpoint", "checked_key", "find_key", "resolve_endpoint"]

_LOCAL_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
_ROUTES = ("systemone", "decisions")
"""Last words of an address that is one of a route, whichever endpoint it is given for."""
_PLACEHOLDER = re.compile(r"\{([A-Z_]+)\}")
_PATH_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:+-]*")


def resolve_endpoint(
    env: Mapping[str, str], base_url: str | None = None, model: str | None = None, preset: Endpoint = TYPESAFE
) -> Endpoint:
    """The preset with the address and model that the user asked for, and the keys that may go there.

    The address is `base_url`, else the first variable of `preset.addresses` that is set, else the preset's own. It
    may be a root, a base that ends in the version (`…/v1`), or the whole address of a route. The model is `model`,
    else the first of `preset.model_variables`, else the preset's pinned one. Blank means unset.

    Raises ConfigError, naming the setting or the variable, for an address that is missing or no URL, that has
    credentials, a query or a fragment, or that would send the key unencrypted outside loopback and private addresses.
    """
    named = (model or "").strip() or _first(env, preset.model_variables) or preset.model
    path = _filled_path(preset.path, named)
    resolved = replace(preset, model=named, path=path)
    chosen = _chosen_address(env, base_url, preset)
    if chosen is None:
        return replace(resolved, base=_filled_base(preset, env))
    source, text, keys = chosen
    url = _checked_url(text, source)
    if _origin(url) == _origin(httpx.URL(preset.base.partition("{")[0] or "https:")):
        keys = preset.key_variables
    base, path = _split_route(url, path)
    return replace(resolved, base=base, path=path, key_variables=keys)


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


def _first(env: Mapping[str, str], variables: tuple[str, ...]) -> str:
    return next((text for variable in variables if (text := env.get(variable, "").strip())), "")


def _chosen_address(
    env: Mapping[str, str], base_url: str | None, preset: Endpoint
) -> tuple[str, str, tuple[str, ...]] | None:
    """The first address that is named: where, its text, and the variables of the keys that may go there."""
    for source, keys in preset.addresses:
        text = ((base_url or "") if source == "base_url" else env.get(source, "")).strip()
        if text:
            return source, text, keys
    return None


def _filled_base(preset: Endpoint, env: Mapping[str, str]) -> str:
    if not preset.base:
        names = " or ".join(source for source, _ in preset.addresses)
        raise ConfigError(f"endpoint {preset.name}: it has no address of its own; set {names}")
    base = preset.base
    for variable in _PLACEHOLDER.findall(base):
        value = env.get(variable, "").strip()
        if not _PATH_WORD.fullmatch(value):
            raise ConfigError(f"endpoint {preset.name}: {variable} is not set, or cannot stand in an address")
        base = base.replace(f"{{{variable}}}", value)
    return base


def _filled_path(path: str, model: str) -> str:
    if "{model}" not in path:
        return path
    if not _PATH_WORD.fullmatch(model):
        raise ConfigError("model: this endpoint has the model in its address, and this one cannot stand there")
    return path.replace("{model}", model)


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


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    """Whose address it is; the library leaves out a port that is the scheme's own."""
    return url.scheme, url.host, url.port


def _split_route(url: httpx.URL, route: str) -> tuple[str, str]:
    """Base and path of an address that may end in all, some or nothing of the route (`/v1/systemone`)."""
    version, _, last = route.rpartition("/")
    origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
    path = url.raw_path.decode("ascii").rstrip("/")
    if path.endswith(route):
        return origin + path.removesuffix(route), route
    head, _, tail = path.rpartition("/")
    if tail in (last, *_ROUTES):
        return origin + head, f"/{tail}"
    return origin + path.removesuffix(version), route
