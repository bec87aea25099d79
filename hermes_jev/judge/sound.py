"""What a judge object says of itself, made fit for a receipt: types checked, no free text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Set

from .protocol import Answer, Answers

_CODE = re.compile(r"[a-z][a-z_]{0,29}")
_NAME_CHARS = 80
_DETAIL = re.compile(r"HTTP [1-5][0-9]{2}(?: [a-z_]{1,40})?|[A-Z][A-Za-z]{1,39}|time-out")
_DETAILS = 5


def sound(answers: Answers, judge: str) -> Answers:
    """The answers with every field of its declared type: what is not becomes empty or zero, an error that is not a
    short code becomes "judge". `judge` stands in for a missing name."""
    by_id = answers.by_id if isinstance(answers.by_id, Mapping) else {}
    errors = answers.errors if isinstance(answers.errors, tuple | list) else ()
    return Answers(
        by_id={name: answer for name, answer in by_id.items() if _is_answer(answer)},
        judge=_name(answers.judge) or judge,
        model=_name(answers.model),
        requests=_count(answers.requests),
        failed=_count(answers.failed),
        errors=tuple(_code(error) for error in errors),
        input_tokens=_count(answers.input_tokens),
        cost=_amount(answers.cost),
        latency_ms=_count(answers.latency_ms),
        details=_details(answers.details),
        trimmed=answers.trimmed if isinstance(answers.trimmed, Set) else frozenset(),
        wait_s=_amount(answers.wait_s),
    )


def _is_answer(value: object) -> bool:
    if not isinstance(value, Answer) or not isinstance(value.probabilities, Mapping):
        return False
    return all(isinstance(name, str) and _is_share(one) for name, one in value.probabilities.items())


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _name(value: object) -> str:
    return value[:_NAME_CHARS] if isinstance(value, str) else ""


def _amount(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    return 0.0


def _count(value: object) -> int:
    return int(_amount(value))


def _details(values: object) -> tuple[str, ...]:
    """What stood behind the errors, in one of the forms that cannot hold anything else."""
    given = values if isinstance(values, tuple | list) else ()
    return tuple(value for value in given if isinstance(value, str) and _DETAIL.fullmatch(value))[:_DETAILS]


def _code(value: object) -> str:
    return value if isinstance(value, str) and _CODE.fullmatch(value) else "judge"
