"""How a service wants to be asked and where its answers stand: pure functions from requests to JSON and back.

A dialect is a row of `DIALECTS`; the client knows none by name. Requests are written strictly, answers are found
leniently (`answers.believed` then judges each).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import JudgeBadRequest, JudgeBadResponse
from .answers import believed, nfc
from .protocol import USUAL_LIMITS, Answer, Limits, Question, Request

_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_TOKENS = 10**9
_MOST_DOLLARS = 1_000.0
_MODEL = re.compile(r"[\w.:/@~+-]{1,100}", re.ASCII)


class Decoded(NamedTuple):
    """What one response said: the answers that passed, the model's own id ("" if none), tokens read (0 if unsaid),
    and what it cost in US dollars (None if unsaid)."""

    answers: dict[str, Answer]
    model: str
    input_tokens: int
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to speak.

    `encode(request, model, limits)` gives the body as JSON-like data, or raises JudgeBadRequest.
    `decode(body, questions)` reads a successful body and raises JudgeBadResponse where it has no answers at all.
    """

    encode: Callable[[Request, str, Limits], dict[str, Any]]
    decode: Callable[[object, Sequence[Question]], Decoded]


def to_bytes(body: Mapping[str, Any]) -> bytes:
    """The body as UTF-8 JSON. Half a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD.

    Raises JudgeBadRequest for what JSON cannot hold: non-finite numbers, foreign types, cycles.
    """
    text = _to_json(body)
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.encode("utf-8")


def from_bytes(raw: bytes) -> object:
    """The parsed body. NaN and Infinity parse, and fail where they stand. Raises JudgeBadResponse if it is no JSON."""
    try:
        parsed: object = json.loads(raw)
    except (ValueError, RecursionError):
        raise JudgeBadResponse("the body is not JSON") from None
    return parsed


def encode_system_one(request: Request, model: str, limits: Limits = USUAL_LIMITS) -> dict[str, Any]:
    """`{"model", "state", "questions": {id: {"type", "instructions", "criteria"}}}`, and no other field.

    A noul without criteria has none; one with a single side has it in its instructions where the service wants both.
    A choice has a map of options, a score an ordered list of levels.
    """
    return {
        "model": model,
        "state": request.state,
        "questions": {question.id: _encode_question(question, limits) for question in request.questions},
    }


def encode_openai(request: Request, model: str, limits: Limits = USUAL_LIMITS) -> dict[str, Any]:
    """`{"model", "input", "questions": [{"type", "name", "instructions", …}]}`: the state as one text, a noul as a
    predicate whose criteria stand in its instructions, options and levels as lists."""
    state = request.state if isinstance(request.state, str) else _to_json(request.state)
    return {"model": model, "input": state, "questions": [_encode_named(question) for question in request.questions]}


def decode_answers(body: object, questions: Sequence[Question]) -> Decoded:
    """Answers as a map, as an array with names or as an array in the order asked, bare or under `result`."""
    if not isinstance(body, Mapping):
        raise JudgeBadResponse("the body is not a JSON object")
    inner = body.get("result")
    content = inner if "answers" not in body and isinstance(inner, Mapping) else body
    given = _by_id(content.get("answers"), questions)
    checked = ((question.id, believed(question, given.get(nfc(question.id)))) for question in questions)
    answers = {question_id: answer for question_id, answer in checked if answer is not None}
    usage = content.get("usage")
    return Decoded(answers, _model(content.get("model")), _input_tokens(usage), _cost(usage, content))


def decode_envelope(body: object, questions: Sequence[Question]) -> Decoded:
    """As `decode_answers`, of an envelope that says whether it holds a success."""
    if isinstance(body, Mapping) and body.get("success") is False:
        raise JudgeBadResponse("the envelope says that it is no success")
    return decode_answers(body, questions)


DIALECTS: Mapping[str, Dialect] = {
    "systemone": Dialect(encode_system_one, decode_answers),
    "openai": Dialect(encode_openai, decode_answers),
    "cloudflare": Dialect(encode_system_one, decode_envelope),
}


def _to_json(value: object) -> str:
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise JudgeBadRequest(f"the request is not JSON: {type(error).__name__}") from None


def _encode_question(question: Question, limits: Limits) -> dict[str, Any]:
    encoded: dict[str, Any] = {"type": question.kind, "instructions": question.instructions}
    if question.kind == "score":
        encoded["criteria"] = list(question.criteria.values())
    elif question.kind == "noul" and limits.both_noul_sides and len(question.criteria) == 1:
        encoded["instructions"] = _with_sides(question)
    elif question.criteria:
        encoded["criteria"] = dict(question.criteria)
    return encoded


def _encode_named(question: Question) -> dict[str, Any]:
    encoded: dict[str, Any] = {"type": question.kind, "name": question.id, "instructions": question.instructions}
    if question.kind == "choice":
        encoded["choices"] = [_described("value", name, text) for name, text in question.criteria.items()]
    elif question.kind == "score":
        levels = question.criteria.values()
        encoded["levels"] = [_described("label", str(level), text) for level, text in enumerate(levels)]
    else:
        encoded |= {"type": "predicate", "instructions": _with_sides(question)}
    return encoded


def _described(field: str, name: str, text: str) -> dict[str, str]:
    return {field: name, "description": text} if text else {field: name}


def _with_sides(question: Question) -> str:
    """A noul's instructions with its criteria."""
    sides = [f"{side.capitalize()} means: {text}" for side, text in question.criteria.items() if text]
    return "\n".join([question.instructions, *sides])


def _by_id(answers: object, questions: Sequence[Question]) -> dict[str, object]:
    """Answers by normalised id. Two for one id contradict each other: that question has none."""
    if isinstance(answers, Mapping):
        pairs = [(str(name), value) for name, value in answers.items()]
    elif isinstance(answers, list):
        pairs = list(_from_array(answers, questions))
    else:
        raise JudgeBadResponse("the body has no answers")
    found: dict[str, object] = {}
    for name, value in pairs:
        key = nfc(name)
        found[key] = None if key in found else value
    return found


def _from_array(answers: list[object], questions: Sequence[Question]) -> Iterator[tuple[str, object]]:
    complete = len(answers) == len(questions)
    for position, answer in enumerate(answers):
        name = answer.get("name") if isinstance(answer, Mapping) else None
        if isinstance(name, str):
            yield name, answer
        elif name is None and complete:
            yield questions[position].id, answer


def _input_tokens(usage: object) -> int:
    if not isinstance(usage, Mapping):
        return 0
    tokens = usage.get("input_tokens", usage.get("inputTokens"))
    if isinstance(tokens, bool) or not isinstance(tokens, int | float) or not 0 <= tokens <= _MOST_TOKENS:
        return 0
    return round(tokens)


def _cost(usage: object, content: Mapping[str, object]) -> float | None:
    """What a router says the call cost: `usage.cost`, or `provider_metadata.gateway.cost`, as a number or as text."""
    metadata = content.get("provider_metadata")
    gateway = metadata.get("gateway") if isinstance(metadata, Mapping) else None
    for place in (usage, gateway):
        said = place.get("cost") if isinstance(place, Mapping) else None
        if isinstance(said, bool) or not isinstance(said, int | float | str):
            continue
        try:
            dollars = float(said)
        except (ValueError, OverflowError):
            continue
        if math.isfinite(dollars) and 0 <= dollars <= _MOST_DOLLARS:
            return dollars
    return None


def _model(model: object) -> str:
    return model if isinstance(model, str) and _MODEL.fullmatch(model) else ""
