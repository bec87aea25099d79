"""Judges by name, for an evaluation."""

from __future__ import annotations

import os
import re

from ..errors import InputError
from ..judge import Judge, judge_of
from .case import Case
from .options import Options
from .oracle import Zero, oracle_of

NOISY_DRAWS = 5

KNOWN = "lexical, jev, zero, oracle, oracle+NOISE (0 to 1)"
_NOISY = re.compile(r"oracle(?:\+(0|1|0?\.\d+|1\.0*))?")


def check_name(name: str) -> None:
    """Raises InputError for a judge that is not known."""
    if name not in ("lexical", "jev", "zero") and not _NOISY.fullmatch(name):
        raise InputError(f"judge {name[:40]!r} is unknown; known are {KNOWN}")


def is_oracle(name: str) -> bool:
    """Whether the judge of a name knows what a case needs."""
    return _NOISY.fullmatch(name) is not None


def draws_of(name: str) -> int:
    """How often chance is drawn for a judge: once where it has no part."""
    found = _NOISY.fullmatch(name)
    return NOISY_DRAWS if found and float(found[1] or 0) else 1


def judge_for(name: str, case: Case, options: Options, draw: int = 0) -> Judge:
    """The judge of a name, for one case: an oracle knows what that case needs, and `draw` says which chance it has.
    Only `jev` asks a service."""
    check_name(name)
    if name == "zero":
        return Zero()
    if found := _NOISY.fullmatch(name):
        return oracle_of(case, float(found[1] or 0), options.seed + draw)
    return judge_of(name, options.settings, os.environ)
