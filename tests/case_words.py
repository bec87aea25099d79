"""The words of the case files: which actions and checks there are, and what it means not to know one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

Word = Callable[..., None]

OPERATIONS: dict[str, Word] = {}
"""Name of an action → what carries it out."""

CHECKS: dict[str, Word] = {}
"""Name of a check → what makes it."""


class CaseFailed(AssertionError):
    """The engine does not do what the case expects."""


class RunnerError(Exception):
    """The runner cannot carry the case out: an action, a check, a parameter or a fault that it does not know."""


def operation(function: Word) -> Word:
    """Register an action under the function's name."""
    OPERATIONS[function.__name__] = function
    return function


def check(function: Word) -> Word:
    """Register a check under the function's name."""
    CHECKS[function.__name__] = function
    return function


def need(holds: bool, message: str) -> None:
    """Raise CaseFailed with the message unless it holds."""
    if not holds:
        raise CaseFailed(message)


def bind(function: Word, *args: Any, params: Mapping[str, Any], what: str) -> inspect.BoundArguments:
    """The arguments of a call; a parameter that the function does not know is an error of the case or the runner."""
    try:
        return inspect.signature(function).bind(*args, **params)
    except TypeError as error:
        raise RunnerError(f"{what}: {error}") from error
