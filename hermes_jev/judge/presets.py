"""The services that can be asked, a row each.

A row is data: the code knows no service by name. Budgets are estimated tokens; with the estimator's margin they stay
under what the service documents or, where it documents nothing, under what a small local model holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .protocol import USUAL_LIMITS, Limits

OWN_KEY = ("JEV_API_KEY",)
"""The key that goes to an address of the user's own; the keys of known services go to those services only."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One service: its address, how it speaks, whose key it takes, and what it costs.

    `base` is the root without a trailing slash and `path` the route below it, with its leading slash; `{model}` in a
    path and `{VARIABLE}` in a base are filled in. An empty base must be named by the user. `dialect` is a key of
    `dialects.DIALECTS`. `addresses` are the setting and the variables that may name another address, in order, each
    with the variables whose keys may go there. Of `key_variables` and `model_variables` the first one that is set
    counts. `price_per_million_tokens` is in US dollars, for input tokens (output is free).
    """

    name: str
    base: str
    path: str
    dialect: str
    model: str
    key_variables: tuple[str, ...]
    addresses: tuple[tuple[str, tuple[str, ...]], ...] = (("base_url", OWN_KEY),)
    model_variables: tuple[str, ...] = ()
    key_needed: bool = True
    limits: Limits = USUAL_LIMITS
    price_per_million_tokens: float = 0.0

    @property
    def url(self) -> str:
        """The whole address that requests are posted to."""
        return self.base + self.path

    @property
    def version(self) -> str:
        """What the probabilities depend on: the model and, elsewhere than at its maker's, whose it is."""
        return self.model if self.name == "typesafe" else f"{self.name}/{self.model}"


_TYPESAFE_KEYS = ("TYPESAFE_API_KEY", "JEV_API_KEY")
_SMALL = Limits(state_tokens=8_000, request_tokens=12_000)

# Thresholds on probabilities hold for one version of the model, so the version is pinned and not "latest".
TYPESAFE = Endpoint(
    name="typesafe",
    base="https://api.typesafe.ai",
    path="/v1/systemone",
    dialect="systemone",
    model="jev-1.13.0",
    key_variables=_TYPESAFE_KEYS,
    # The key that is named like the address comes first: someone who has both has two services.
    addresses=(
        ("base_url", _TYPESAFE_KEYS),
        ("TYPESAFE_BASE_URL", _TYPESAFE_KEYS),
        ("JEV_API_URL", _TYPESAFE_KEYS[::-1]),
    ),
    model_variables=("TYPESAFE_DEFAULT_MODEL",),
    price_per_million_tokens=0.042,
)
OPENROUTER = Endpoint(
    name="openrouter",
    base="https://openrouter.ai",
    path="/api/alpha/decisions",
    dialect="systemone",
    model="typesafe/jev-1.13",
    key_variables=("OPENROUTER_API_KEY",),
    limits=Limits(both_noul_sides=True),
    price_per_million_tokens=0.042,
)
OPENAI = Endpoint(
    name="openai",
    base="https://api.openai.com",
    path="/v1/decisions",
    dialect="openai",
    model="gpt-6-luna",
    key_variables=("OPENAI_API_KEY",),
    limits=Limits(questions=400),
    price_per_million_tokens=0.10,
)
CLOUDFLARE = Endpoint(
    name="cloudflare",
    base="https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}",
    path="/ai/run/@cf/cloudflare/{model}",
    dialect="cloudflare",
    model="clef-flash",
    key_variables=("CLOUDFLARE_API_TOKEN",),
    price_per_million_tokens=0.09,
)
VERCEL = Endpoint(
    name="vercel",
    base="https://ai-gateway.vercel.sh/typesafe",
    path="/v1/systemone",
    dialect="systemone",
    model="jev-1.14.0",
    key_variables=("AI_GATEWAY_API_KEY",),
    price_per_million_tokens=0.042,
)
OLLAMA = Endpoint(
    name="ollama",
    base="http://localhost:11434",
    path="/v1/systemone",
    dialect="systemone",
    model="nimble",
    key_variables=(),
    key_needed=False,
    limits=_SMALL,
)
LLAMACPP = Endpoint(
    name="llamacpp",
    base="http://localhost:8080",
    path="/v1/systemone",
    dialect="systemone",
    model="kev",
    key_variables=(),
    key_needed=False,
    limits=_SMALL,
)
CUSTOM = Endpoint(
    name="custom",
    base="",
    path="/v1/systemone",
    dialect="systemone",
    model="jev-1.13.0",
    key_variables=OWN_KEY,
    addresses=(("base_url", OWN_KEY), ("JEV_API_URL", OWN_KEY)),
    key_needed=False,
    # What other servers were seen to refuse: more options than letters, one side of a noul alone.
    limits=Limits(options=26, both_noul_sides=True),
)

PRESETS: Mapping[str, Endpoint] = {
    row.name: row for row in (TYPESAFE, OPENROUTER, OPENAI, CLOUDFLARE, VERCEL, OLLAMA, LLAMACPP, CUSTOM)
}
