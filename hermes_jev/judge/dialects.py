"""How a service wants to be asked and how it answers: pure functions from requests to JSON and back.

A dialect is a row of `DIALECTS`; the client knows none by name. Requests are written strictly. Answers are read
leniently in form and strictly in substance: each is checked by itself, and one that cannot be trusted is no answer.
What a service says of its own score, choice or confidence is not used, because services compute them differently;
the functions at the end compute them from the probabilities.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import JudgeBadRequest, JudgeBadResponse
from .protocol import Answer, Question, QuestionKind, Request

_TYPE_NAMES: Mapping[QuestionKind, tuple[str, ...]] = {
    "noul": ("noul", "predicate", "boolean"),
    "choice": ("choice",),
    "score": ("score",),
}
_SURROGATE = re.compile("[\ud800-\udfff]")
# No digits: a service that echoed a key or a path here would not get it into a receipt.
_ERROR_TYPE = re.compile(r"[a-z]+(?:_[a-z]+)*")
_ERROR_TYPE_CHARS = 40
_MOST_TOKENS = 10**9
_MODEL = re.compile(r"[\w.:/@~+-]{1,100}", re.ASCII)


class Decoded(NamedTuple):
    """What one response said: the answers that passed, the model's own id ("" if none), tokens read (0 if unsaid)."""

    answers: dict[str, Answer]
    model: str
    input_tokens: int


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to speak.

    `encode(request, model)` gives the body as JSON-like data. `decode(body, questions)` reads a successful body and
    raises JudgeBadResponse where it has no answers at all. `error_type(body)` is the service's short word for what
    went wrong, or "".
    """

    encode: Callable[[Request, str], dict[str, Any]]
    decode: Callable[[object, Sequence[Question]], Decoded]
    error_type: Callable[[object], str]


def to_bytes(body: Mapping[str, Any]) -> bytes:
    """The body as UTF-8 JSON. Half a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD.

    Raises JudgeBadRequest for what JSON cannot hold: non-finite numbers, foreign types, cycles.
    """
    try:
        text = json.dumps(body, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise JudgeBadRequest(f"the request is not JSON: {type(error).__name__}") from None
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


def encode_system_one(request: Request, model: str) -> dict[str, Any]:
    """`{"model", "state", "questions": {id: {"type", "instructions", "criteria"}}}`, and no other field.

    A noul without criteria has none; a choice has a map of options; a score an ordered list of levels.
    """
    return {
        "model": model,
        "state": request.state,
        "questions": {question.id: _encode_question(question) for question in request.questions},
    }


def decode_system_one(body: object, questions: Sequence[Question]) -> Decoded:
    """Answers as a map, as an array with names or as an array in the order asked, bare or under `result`."""
    if not isinstance(body, Mapping):
        raise JudgeBadResponse("the body is not a JSON object")
    inner = body.get("result")
    content = inner if "answers" not in body and isinstance(inner, Mapping) else body
    given = _by_id(content.get("answers"), questions)
    checked = ((question.id, _check(question, given.get(_nfc(question.id)))) for question in questions)
    answers = {question_id: answer for question_id, answer in checked if answer is not None}
    return Decoded(answers, _model(content.get("model")), _input_tokens(content.get("usage")))


def system_one_error_type(body: object) -> str:
    """`error_type` of an error body, at the top or under `detail` or `error`. Nothing else of the body is kept."""
    if not isinstance(body, Mapping):
        return ""
    for place in (body, body.get("detail"), body.get("error")):
        word = place.get("error_type") if isinstance(place, Mapping) else None
        if isinstance(word, str) and len(word) <= _ERROR_TYPE_CHARS and _ERROR_TYPE.fullmatch(word):
            return word
    return ""


DIALECTS: Mapping[str, Dialect] = {
    "systemone": Dialect(encode_system_one, decode_system_one, system_one_error_type),
}


def _encode_question(question: Question) -> dict[str, Any]:
    encoded: dict[str, Any] = {"type": question.kind, "instructions": question.instructions}
    if question.kind == "score":
        encoded["criteria"] = list(question.criteria.values())
    elif question.criteria:
        encoded["criteria"] = dict(question.criteria)
    return encoded


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
        key = _nfc(name)
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


def _check(question: Question, answer: object) -> Answer | None:
    if not isinstance(answer, Mapping) or answer.get("type") not in _TYPE_NAMES[question.kind]:
        return None
    if question.kind == "noul":
        yes = _probability(answer.get("noul", answer.get("probability")))
        return None if yes is None else Answer({"true": yes})
    return _check_distribution(question, answer)


def _check_distribution(question: Question, answer: Mapping[str, object]) -> Answer | None:
    options = _options(question)
    if question.kind == "choice" and not _is_option(answer.get("choice"), options):
        return None
    pairs = list(_probability_pairs(answer.get("probabilities")))
    given = {_nfc(name): probability for name, probability in pairs if probability is not None}
    if len(given) != len(pairs) or given.keys() != options.keys():
        return None
    total = math.fsum(given.values())
    # Two decimals each: the error of the sum grows with the options. All zeros says nothing, however many there are.
    if total == 0 or abs(total - 1) > max(0.05, 0.005 * len(options)) + 1e-9:
        return None
    return Answer({name: given[key] for key, name in options.items()})


def _options(question: Question) -> dict[str, str]:
    """Our name of each option by its name on the wire, where a level goes by its position."""
    if question.kind == "score":
        return {str(level): name for level, name in enumerate(question.criteria)}
    return {_nfc(name): name for name in question.criteria}


def _is_option(choice: object, options: Mapping[str, str]) -> bool:
    return choice is None or (isinstance(choice, str) and _nfc(choice) in options)


def _probability_pairs(probabilities: object) -> Iterator[tuple[str, float | None]]:
    """Name and probability of each entry; None where it is no probability."""
    if isinstance(probabilities, Mapping):
        for name, value in probabilities.items():
            yield str(name), _probability(value)
    elif isinstance(probabilities, list):
        for position, entry in enumerate(probabilities):
            if isinstance(entry, Mapping):
                yield _entry_name(entry), _probability(entry.get("probability"))
            else:  # A bare number is named by its place, which is the name of a level and of no option.
                yield str(position), _probability(entry)


def _entry_name(entry: Mapping[str, object]) -> str:
    for field in ("value", "label", "name"):
        name = entry.get(field)
        if isinstance(name, str | int):
            return str(name)
    return ""


def _probability(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None  # NaN fails both comparisons


def _input_tokens(usage: object) -> int:
    if not isinstance(usage, Mapping):
        return 0
    count = usage.get("input_tokens", usage.get("inputTokens"))
    if isinstance(count, bool) or not isinstance(count, int | float):
        return 0
    return round(count) if 0 <= count <= _MOST_TOKENS else 0


def _model(model: object) -> str:
    return model if isinstance(model, str) and _MODEL.fullmatch(model) else ""


def _nfc(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def expected_score(answer: Answer) -> float:
    """Mean level of a score, from 0 to n - 1, by the probabilities scaled to sum 1."""
    weights = tuple(answer.probabilities.values())
    return math.fsum(level * weight for level, weight in enumerate(weights)) / math.fsum(weights)


def choice_confidence(answer: Answer) -> float:
    """How far the likeliest option stands above chance: 0 for a flat answer, 1 for a certain one."""
    weights = tuple(answer.probabilities.values())
    chance = 1 / len(weights)
    return 1.0 if len(weights) == 1 else max(0.0, (max(weights) / math.fsum(weights) - chance) / (1 - chance))


def score_confidence(answer: Answer) -> float:
    """How near the mass lies to the likeliest level: 1 for one level alone, 0 for mass spread as widely as chance."""
    weights = tuple(answer.probabilities.values())
    if len(weights) == 1:
        return 1.0
    mode = weights.index(max(weights))
    spread = math.fsum(weight * abs(level - mode) for level, weight in enumerate(weights)) / math.fsum(weights)
    middle = (len(weights) - 1) / 2
    chance = math.fsum(abs(level - middle) for level in range(len(weights))) / len(weights)
    return max(0.0, 1 - spread / chance)
