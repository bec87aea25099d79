"""Every setting, its default, its limits, and where an effective value came from.

`resolve` reads sources in order (a later one wins): the defaults, then mappings such as the user's file, Hermes'
`plugins.entries.hermes_jev.settings`, the environment (`HERMES_JEV_<NAME>`), and command-line flags. On the command
line a bad value stops with a ConfigError; inside Hermes it is defaulted and said, since a typing error in a setting
must not switch the engine off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from .errors import ConfigError
from .redact import redact

ENVIRONMENT_PREFIX = "HERMES_JEV_"
NOT_SETTINGS = frozenset({"config", "receipt_path"})
"""What the environment may name beside settings: the user's file, and where `jev compact` writes receipts."""
NOTICE_CHARS = 200
"""The longest notice, in characters."""


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is needed, not true or false")
    return value


def _names(value: Any) -> Any:
    """A list of names as a list, as JSON, or as text with commas."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return [part.strip() for part in value.split(",") if part.strip()]


def _none(value: Any) -> Any:
    """The word none, or nothing, as no value."""
    return None if isinstance(value, str) and value.strip().lower() in ("", "none", "null") else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Share = Annotated[float, BeforeValidator(_no_bool), Field(gt=0, lt=1, allow_inf_nan=False)]
Probability = Annotated[float, BeforeValidator(_no_bool), Field(ge=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, BeforeValidator(_no_bool), Field(gt=0, le=600, allow_inf_nan=False)]
Count = Annotated[int, BeforeValidator(_no_bool), Field(ge=0)]
Dollars = Annotated[float, BeforeValidator(_no_bool), Field(ge=0, allow_inf_nan=False)]
Price = Annotated[float, BeforeValidator(_no_bool), Field(ge=0, le=1_000_000, allow_inf_nan=False)]
Positive = Annotated[int, BeforeValidator(_no_bool), Field(ge=1)]


Depth = Literal["off", "inputs", "turns"]
DEPTHS: tuple[Depth, ...] = get_args(Depth)
"""How deep a pass may cut, each with all before it."""

Egress = Literal["off", "metadata", "redacted"]


def _off(value: Any) -> Any:
    """YAML reads an unquoted `off` as false."""
    return "off" if value is False else value


class Settings(BaseModel):
    """The settings of a pass. Frozen; the sentence under each field says what it does and its unit."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    enabled: bool = True
    """Whether the engine acts at all; off, it leaves every list as it is."""
    mode: Literal["active", "shadow"] = "active"
    """`shadow` judges and records and cuts nothing."""
    trigger_percent: Share = 0.60
    """Share of the window from which a pass runs."""
    urgent_percent: Share = 0.85
    """Share of the window from which guards are ignored and a failing judge is replaced."""
    target_percent: Share = 0.30
    """Share of the window at which a pass stops that goes on beyond what the judge lets go (`deepen`)."""
    schedule: Literal["threshold", "rolling"] = "threshold"
    """`threshold`: passes when the window fills; `rolling`: results also go a few calls on, where hosts ask (0.22)."""
    deepen: Annotated[Depth, BeforeValidator(_off)] = "turns"
    """What may go beside results to reach the target: long `inputs` of old calls, also old `turns`; or `off`."""
    cached_input_price: Price = 0.30
    """US dollars for a million tokens that the provider reads from its prompt cache."""
    cache_write_price: Price = 3.75
    """US dollars for a million tokens that the provider writes to its prompt cache."""
    expected_calls: Annotated[int, BeforeValidator(_no_bool), Field(ge=1, le=1_000_000)] = 150
    """Calls to the model within which a pass must pay for writing the prompt cache again; below urgent pressure."""
    min_gain_percent: Annotated[float, BeforeValidator(_no_bool), Field(ge=0, lt=1)] = 0.05
    """Share of the window a pass must free to be worth rebuilding the prompt cache."""
    reserve_output_tokens: Count = 0
    """Tokens taken off the window for the model's answer."""
    pin_last_calls: Count = 3
    """How many of the last completed calls are never judged."""
    pin_max_chars: Positive = 1500
    """Results of at most this many characters are never judged."""
    protected_tools: Names = ("skill_view", "skills_list", "memory", "clarify")
    """Tools whose results are instructions: never judged."""
    latest_tools: Names = ("todo",)
    """Tools whose newest result is never judged."""
    call_threshold: Probability = 0.5
    """From this probability on, the call itself still matters."""
    output_threshold: Probability = 0.5
    """From this probability on, the exact output is still needed."""
    calibration: Literal["fixed", "session", "learned"] = "fixed"
    """`session` sets the thresholds by the session's own scores, `learned` also by which cuts were fetched again."""
    excerpt_chars: Positive = 300
    """Characters of a shortened result that stay."""
    removed_calls: Literal["notice", "drop"] = "notice"
    """`drop` takes a turn out of the window when all its calls and outputs are unneeded; `notice` leaves a line."""
    last_resort: Literal["text", "off"] = "text"
    """`text` lets the last rung of the ladder shorten old assistant messages, then old user messages; `off` never."""
    fact_chars: Count = 1200
    """Most characters of the lines that stay of a cut result because they are likely to be needed; 0: none."""
    judge: Literal["auto", "jev", "lexical"] = "auto"
    """`auto` asks Jev when there is a key, else the embedded lexical judge."""
    endpoint: Literal["typesafe", "openrouter", "openai", "cloudflare", "vercel", "ollama", "llamacpp", "custom"] = (
        "typesafe"
    )
    """The service that Jev is asked at; `custom` is one of your own, named by `base_url`."""
    base_url: str = ""
    """Where the judge is served; empty: the endpoint's own address (typesafe: TYPESAFE_BASE_URL, JEV_API_URL first)."""
    model: str = ""
    """The judge's model; empty: the endpoint's pinned one (typesafe: TYPESAFE_DEFAULT_MODEL first)."""
    request_timeout_s: Seconds = 10.0
    """Seconds one request to the judge may take."""
    pass_deadline_s: Seconds = 10.0
    """Seconds all requests of a pass may take together."""
    concurrency: Annotated[int, BeforeValidator(_no_bool), Field(ge=1, le=64)] = 8
    """Requests to the judge at the same time."""
    items_per_request: Annotated[int, BeforeValidator(_no_bool), Field(ge=1, le=32)] = 32
    """Tool calls described and asked about in one request."""
    max_candidates: Positive = 256
    """Tool calls a remote judge is asked about in one pass, largest first."""
    daily_cost_limit_usd: Annotated[Dollars | None, BeforeValidator(_none)] = None
    """US dollars a day (UTC) for all services together; what would cross it goes to the lexical judge."""
    egress: Annotated[Egress, BeforeValidator(_off)] = "redacted"
    """What a remote judge may be sent: `redacted` text, `metadata` (no text at all), or nothing (`off`)."""
    store_dir: str = ""
    """Folder of the store; empty: the Hermes home, or the user's data folder outside Hermes."""
    store_max_age_days: Annotated[float, BeforeValidator(_no_bool), Field(gt=0, allow_inf_nan=False)] = 30
    """Days after which an original may leave that no session in use and no conversation of Hermes needs."""
    store_max_bytes: Positive = 1_000_000_000
    """Bytes of originals beyond which the least recently used of those that may leave do so earlier."""
    receipts: bool = True
    """Whether each pass leaves a receipt in the store."""

    @field_validator("store_dir")
    @classmethod
    def _folder(cls, value: str) -> str:
        try:
            Path(value).expanduser()
        except RuntimeError:
            raise ValueError("the home folder it names does not exist") from None
        return value

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if not self.target_percent < self.trigger_percent <= self.urgent_percent:
            raise ValueError("target_percent < trigger_percent <= urgent_percent is needed")
        # What the engine writes must be settled by its size alone, or a second pass would cut it again.
        if self.excerpt_chars + NOTICE_CHARS + 1 > self.pin_max_chars:
            raise ValueError(f"excerpt_chars + {NOTICE_CHARS + 1} <= pin_max_chars is needed")
        return self


class Described(NamedTuple):
    """A setting for a person: its name, its default as one would write it, and its sentence."""

    name: str
    default: str
    sentence: str


def described() -> list[Described]:
    """All settings, in order."""
    return [
        Described(name, json.dumps(field.default), field.description or "")
        for name, field in Settings.model_fields.items()
    ]


class Source(NamedTuple):
    """Values from one place; `name` is how messages call that place."""

    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Resolved:
    """Effective settings, the source of each that is not a default, and what was refused (a sentence each)."""

    settings: Settings
    origins: Mapping[str, str]
    problems: tuple[str, ...] = ()


def environment_source(environment: Mapping[str, str]) -> Source:
    """The `HERMES_JEV_<NAME>` variables; lists as JSON or separated by commas."""
    values: dict[str, Any] = {}
    for variable, text in environment.items():
        if variable.startswith(ENVIRONMENT_PREFIX):
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
            values.update({name: text} if name not in NOT_SETTINGS else {})
    return Source("environment", values)


def resolve(sources: Sequence[Source], *, strict: bool) -> Resolved:
    """Merge the sources over the defaults.

    With `strict` the first problem is raised as a ConfigError; an unknown HERMES_JEV_ variable is only ever a
    problem to report, since another version's variable may be set. Otherwise each refused value keeps its default.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    problems: list[str] = []

    def refuse(problem: str, *, fatal: bool = True) -> None:
        if strict and fatal:
            raise ConfigError(problem)
        problems.append(problem)

    for source in sources:
        for name, value in source.values.items():
            if name not in Settings.model_fields:
                refuse(f"{_label(source, name)}: unknown setting", fatal=source.name != "environment")
            elif complaint := _complaint({name: value}, name):
                refuse(f"{_label(source, name)}: {_shown(value)} is refused: {complaint}")
            else:
                values[name] = value
                origins[name] = source.name
    while complaint := _complaint(values):
        refuse(f"settings: {complaint}")
        for name in ("target_percent", "trigger_percent", "urgent_percent", "excerpt_chars", "pin_max_chars"):
            if name in complaint:
                values.pop(name, None)
                origins.pop(name, None)
    return Resolved(Settings.model_validate(values), origins, tuple(problems))


def _label(source: Source, name: str) -> str:
    shown = f"{ENVIRONMENT_PREFIX}{name.upper()}" if source.name == "environment" else name
    return f"{shown} ({source.name})"


def _shown(value: Any) -> str:
    text = redact(repr(value))
    return text if len(text) <= 60 else text[:57] + "…"


def _complaint(values: Mapping[str, Any], field: str = "") -> str:
    """Why these values are refused, empty if they are not. With `field`, only that field's own limits count."""
    try:
        Settings.model_validate(values)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            if bool(detail["loc"]) == bool(field) or not field:
                return detail["msg"].removeprefix("Value error, ")
    return ""
