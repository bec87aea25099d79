"""What a System One request may hold, and in which words another one is refused.

A refusal names places and kinds of faults and never repeats what was sent.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ..judge.lexical_weights import VERSION
from ..judge.system_one import OVERHEAD_TOKENS
from ..tokens import estimate_tokens

OPTIONS, LEVELS = 255, 10
STATE_TOKENS, REQUEST_TOKENS = 32_000, 64_000
"""Estimated tokens: of the state with the longest question, and of everything."""

ALIASES = ("jev-latest", "jev-preview", "jev-1.13.0", "jev-1.14.0")
"""Names that are listed. Every name of a Jev is answered, by the same judge."""


class Reply(NamedTuple):
    """A status and the data of its JSON body."""

    status: int
    data: dict[str, Any]


class Refused(Exception):
    """A request that is not answered; `reply` says why."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"HTTP {reply.status}")
        self.reply = reply


def problem(status: int, error_type: str, message: str = "") -> Refused:
    """A refusal in the service's usual form."""
    said = {"error_type": error_type, "message": message} if message else {"error_type": error_type}
    return Refused(Reply(status, {"detail": said}))


Text: TypeAlias = str | dict[str, Any] | list[Any]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, populate_by_name=True)


class _Sides(_Part):
    model_config = ConfigDict(extra="forbid")

    true: Text | None = None
    false: Text | None = None


class _Noul(_Part):
    type: Literal["noul"]
    instructions: Text | None = None
    criteria: _Sides | None = None


class _Choice(_Part):
    type: Literal["choice"]
    instructions: Text | None = None
    criteria: Annotated[dict[str, Text | None], Field(min_length=1)]


class _Score(_Part):
    type: Literal["score"]
    instructions: Text | None = None
    criteria: Annotated[list[Text], Field(min_length=1)]


class _Body(_Part):
    model: str
    state: Text
    questions: Annotated[
        dict[Annotated[str, Field(min_length=1)], Annotated[_Noul | _Choice | _Score, Field(discriminator="type")]],
        Field(min_length=1),
    ]


_BODY = TypeAdapter(_Body)


@dataclass(frozen=True)
class Asked:
    """One question as it was sent. `options` are (name, description) of sides, options or levels, in order; a level's
    name is its place, and a description is text or JSON, or None."""

    id: str
    kind: Literal["noul", "choice", "score"]
    instructions: Any
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Body:
    """A request that can be answered; `tokens` is what it counts for."""

    state: Any
    questions: tuple[Asked, ...] = field(default=())
    tokens: int = 0


def read_body(raw: bytes) -> Body:
    """The request in these bytes. Raises Refused."""
    try:
        parsed = json.loads(raw, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        fault = {"loc": ["body", 0], "msg": "JSON decode error", "type": "json_invalid"}
        raise Refused(Reply(422, {"detail": [fault]})) from None
    try:
        body = _BODY.validate_python(parsed)
    except ValidationError as error:
        raise Refused(Reply(422, {"detail": _faults(error)})) from None
    if not _is_served(body.model):
        raise problem(400, "api_usage_error", "Unknown model")
    asked = tuple(_asked(name, question) for name, question in body.questions.items())
    for question in asked:
        _check_limits(question)
    return Body(body.state, asked, _counted(raw, body.state, asked))


def listed_models() -> dict[str, Any]:
    """What `GET /v1/models` says."""
    names = [(VERSION, "the lexical judge of hermes_jev")]
    names += [(alias, f"answered by {VERSION}, the lexical judge of hermes_jev") for alias in ALIASES]
    return {
        "models": [{"name": name, "description": text, "release_date": "2026-11-30"} for name, text in names],
    }


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    """Python reads 1e999 as infinity, which no answer could repeat."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _faults(error: ValidationError) -> list[dict[str, Any]]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [{"loc": ["body", *detail["loc"]], "msg": _said(detail), "type": detail["type"]} for detail in found]


def _said(detail: Any) -> str:
    # This one quotes what was sent.
    quoted = detail["type"] == "union_tag_invalid"
    return "Input should be one of the types 'noul', 'choice', 'score'" if quoted else str(detail["msg"])


def _is_served(model: str) -> bool:
    name = model.rpartition("/")[2]
    return name == VERSION or name == "jev" or name.startswith("jev-")


def _asked(name: str, question: _Noul | _Choice | _Score) -> Asked:
    if isinstance(question, _Choice):
        return Asked(name, "choice", question.instructions, tuple(question.criteria.items()))
    if isinstance(question, _Score):
        levels = tuple((str(place), level) for place, level in enumerate(question.criteria))
        return Asked(name, "score", question.instructions, levels)
    sides = question.criteria or _Sides()
    given = tuple((side, text) for side, text in (("true", sides.true), ("false", sides.false)) if text is not None)
    return Asked(name, "noul", question.instructions, given)


def _check_limits(question: Asked) -> None:
    count = len(question.options)
    if question.kind == "choice" and count > OPTIONS:
        raise Refused(Reply(400, {"detail": f"Too many choices. Must have at most {OPTIONS} choices."}))
    if question.kind == "score" and count > LEVELS:
        raise Refused(Reply(400, {"detail": f"Too many levels. Must have at most {LEVELS} levels."}))


def _counted(raw: bytes, state: Any, questions: tuple[Asked, ...]) -> int:
    """Tokens of the request. Raises Refused where the service would read it no further."""
    tokens = OVERHEAD_TOKENS + estimate_tokens(raw.decode("utf-8", "replace"))
    longest = max(_tokens([question.instructions, question.options]) for question in questions)
    if tokens > REQUEST_TOKENS or _tokens(state) + longest > STATE_TOKENS:
        raise problem(400, "max_tokens_exceeded")
    return tokens


def _tokens(value: Any) -> int:
    return estimate_tokens(json.dumps(value, ensure_ascii=False))
