"""What a System One service refuses, and in which words: the schema of requests as the service checks it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

MODELS = {"jev-latest": "jev-1.13.0", "jev-1.13": "jev-1.13.0", "jev-1.13.0": "jev-1.13.0"}


class Reply(NamedTuple):
    """A response to be sent: a status, data for its JSON body, further headers."""

    status: int
    data: Any
    headers: tuple[tuple[str, str], ...] = ()


def error(status: int, error_type: str, message: str) -> Reply:
    return Reply(status, {"detail": {"error_type": error_type, "message": message}})


def invalid(body: Any) -> Reply | None:
    """The refusal of a body that the schema does not allow, the schema's own errors first."""
    if body is None:
        return Reply(422, {"detail": [_issue(("body", 0), "JSON decode error", "json_invalid", {})]})
    if not isinstance(body, dict):
        return Reply(422, {"detail": [_issue(("body",), "Input should be an object", "model_attributes_type", body)]})
    issues = list(_body_issues(body))
    if issues:
        return Reply(422, {"detail": issues})
    if body["model"] not in MODELS:
        return error(400, "api_usage_error", f"Unknown model: {body['model']}")
    return next((refusal for question in body["questions"].values() if (refusal := _over_limit(question))), None)


def _issue(location: tuple[str | int, ...], message: str, kind: str, given: Any) -> dict[str, Any]:
    return {"loc": list(location), "msg": message, "type": kind, "input": given}


def _body_issues(body: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    for name in ("model", "state", "questions"):
        if name not in body:
            yield _issue(("body", name), "Field required", "missing", body)
    if "model" in body and not isinstance(body["model"], str):
        yield _issue(("body", "model"), "Input should be a valid string", "string_type", body["model"])
    if "state" in body and not isinstance(body["state"], str | dict | list):
        yield _issue(("body", "state"), "Input should be a valid string", "string_type", body["state"])
    questions = body.get("questions")
    if "questions" in body and not isinstance(questions, dict):
        yield _issue(("body", "questions"), "Input should be a valid dictionary", "dict_type", questions)
    elif "questions" in body and not questions:
        yield _issue(("body", "questions"), "Dictionary should have at least 1 item", "too_short", questions)
    for name, question in (questions if isinstance(questions, dict) else {}).items():
        yield from _question_issues(name, question)


def _question_issues(name: str, question: Any) -> Iterable[dict[str, Any]]:
    place = ("body", "questions", name)
    if not name:
        yield _issue(place, "String should have at least 1 character", "string_too_short", name)
    if not isinstance(question, dict):
        yield _issue(place, "Input should be an object", "model_attributes_type", question)
        return
    if not isinstance(question.get("type"), str):
        yield _issue((*place, "type"), "Field required", "missing", question)
        return
    if not _is_text(question.get("instructions"), null=True):
        yield _issue((*place, "instructions"), "Input should be a valid string", "string_type", question)
    check = {"noul": _noul_issues, "choice": _choice_issues, "score": _score_issues}.get(question["type"])
    if check is not None:
        yield from check((*place, "criteria"), question.get("criteria"))


def _is_text(value: Any, *, null: bool) -> bool:
    return isinstance(value, str | dict | list) or (null and value is None)


def _noul_issues(place: tuple[str, ...], criteria: Any) -> Iterable[dict[str, Any]]:
    if criteria is not None and not isinstance(criteria, dict):
        yield _issue(place, "Input should be an object", "model_attributes_type", criteria)
    elif criteria is not None:
        for side in ("true", "false"):
            if not _is_text(criteria.get(side), null=True):
                yield _issue((*place, side), "Input should be a valid string", "string_type", criteria[side])


def _choice_issues(place: tuple[str, ...], criteria: Any) -> Iterable[dict[str, Any]]:
    if not isinstance(criteria, dict):
        yield _issue(place, "Input should be a valid dictionary", "dict_type", criteria)
    elif len(criteria) < 2:
        yield _issue(place, "Dictionary should have at least 2 items", "too_short", criteria)
    else:
        for option, text in criteria.items():
            if not _is_text(text, null=True):
                yield _issue((*place, option), "Input should be a valid string", "string_type", text)


def _score_issues(place: tuple[str, ...], criteria: Any) -> Iterable[dict[str, Any]]:
    if not isinstance(criteria, list):
        yield _issue(place, "Input should be a valid list", "list_type", criteria)
    elif len(criteria) < 2:
        yield _issue(place, "List should have at least 2 items", "too_short", criteria)
    elif not all(_is_text(level, null=False) for level in criteria):
        yield _issue(place, "Input should be a valid string", "string_type", criteria)


def _over_limit(question: Mapping[str, Any]) -> Reply | None:
    if question["type"] not in ("noul", "choice", "score"):
        return error(400, "api_usage_error", f"Unknown question type: {question['type']}")
    if question["type"] == "choice" and len(question["criteria"]) > 255:
        return Reply(400, {"detail": "Too many choices. Must have at most 255 choices."})
    if question["type"] == "score" and len(question["criteria"]) > 10:
        return Reply(400, {"detail": "Too many levels. Must have at most 10 levels."})
    return None
