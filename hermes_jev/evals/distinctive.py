"""Which strings of a text are distinctive enough that writing one again shows that it was needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

_LINE = range(20, 401)
_NUMBERED = re.compile(r"^\s*\d{1,6}(?:→|[:|\t]| {2,})\s?")
_WORD = re.compile(r"\w{2,}")
_CODE_SIGN = re.compile(r"[^\w\s.,!?'\"-]")
_ONLY_A_PATH = re.compile(r'"?(?:~/|\.{0,2}/)?(?:[\w.@+-]+/)+[\w.@+-]+"?')
_CAMEL = re.compile(r"[a-z][A-Z]|\d")
_EXTENSIONS = (
    "py go ts tsx js jsx java c h cpp rs rb md json jsonl yaml yml toml txt csv log sh sql html css xml pdf docx xlsx"
    " png pth ipynb conf cfg ini lock db zip gz"
)


class _Form(NamedTuple):
    kind: str
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool]


def _always(_: str) -> bool:
    return True


def _is_path(text: str) -> bool:
    return len(text) >= 8 and not re.fullmatch(r"[\d./-]+", text)


def _is_number(text: str) -> bool:
    return len(text.replace(".", "")) >= 4 and len(set(text)) > 2


def _is_identifier(text: str) -> bool:
    return len(text) >= 10 and ("_" in text.strip("_") or _CAMEL.search(text) is not None)


_HEX = "[0-9a-f]"
_FORMS = (
    _Form("url", re.compile(r"https?://[^\s'\"<>)\]}`,;]{8,200}"), _always),
    _Form("email", re.compile(r"[\w.+-]{2,}@[\w-]+\.[\w.]{2,}"), _always),
    _Form("uuid", re.compile(rf"\b{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}\b"), _always),
    _Form("path", re.compile(r"(?<![\w/])(?:~/|\.{1,2}/|/)?(?:[\w.@+-]+/)+[\w.@+-]*[\w]"), _is_path),
    _Form("hash", re.compile(rf"\b(?={_HEX}*[0-9])(?={_HEX}*[a-f]){_HEX}{{7,64}}\b"), _always),
    _Form("ticket", re.compile(r"\b[A-Z]{2,8}-\d{1,6}\b|#\d{3,7}\b"), _always),
    _Form("code", re.compile(r"\b(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{5,14}\b"), _always),
    _Form("version", re.compile(r"\b\d+\.\d+\.\d+(?:[.\-+][\w.]+)?\b"), _always),
    _Form("number", re.compile(r"(?<![\w.])(?:\d{5,18}|\d{1,12}\.\d{2,12})(?![\w.])"), _is_number),
    _Form("file", re.compile(rf"\b[\w-]{{2,}}\.(?:{_EXTENSIONS.replace(' ', '|')})\b"), lambda text: len(text) >= 6),
    _Form("identifier", re.compile(r"\b[A-Za-z_][A-Za-z0-9_]{8,79}\b"), _is_identifier),
)
"""In order: the first form that finds a string names its kind."""


def distinctive(text: str) -> dict[str, str]:
    """The distinctive strings of a text, each with its kind: whole lines that read like code or data, paths,
    addresses, identifiers, numbers, hashes and the like. In order of discovery, lines first."""
    found: dict[str, str] = {}
    for line in _lines(text):
        found.setdefault(line, "path" if _ONLY_A_PATH.fullmatch(line) else "line")
    for form in _FORMS:
        for match in form.pattern.finditer(text):
            value = match[0].rstrip(".,:;")
            if form.accepts(value):
                found.setdefault(value, form.kind)
    return found


def _lines(text: str) -> Iterator[str]:
    for raw in text.split("\n"):
        line = _NUMBERED.sub("", raw).strip()
        if len(line) in _LINE and len(_WORD.findall(line)) >= 3 and _CODE_SIGN.search(line):
            yield line
