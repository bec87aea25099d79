"""Which turns a byte budget never touches: what later work quotes by the letter.

Five patterns are built in, each where it is meant and not wherever its words occur; `pin_patterns` adds more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .errors import ConfigError

BUILT_IN: dict[str, str] = {
    # A token with a separator and an extension: `src/ingest/parser.py`, `C:\app\main.ts`.
    "file path": (
        r"(?<![\w/\\.:@-])(?:[A-Za-z]:\\|\.{0,2}/)?(?:[\w.@-]+[/\\])+[\w@-][\w.@-]*"
        r"\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/\\])"
    ),
    "stack trace": (
        r"(?m:^[ \t]*Traceback \(most recent call last\):)"
        r"|\bFile \"[^\"\n]{1,300}\", line \d+"
        r"|(?m:^[ \t]*at [^\n]{1,300}?\(?[^\s():]{1,300}:\d{1,9}:\d{1,9}\)?[ \t]{0,9}\r?$)"
    ),
    "error code": (
        r"\bHTTP(?:/\d(?:\.\d)?)? [45]\d\d\b"
        r"|\bstatus(?:[ _]?code)?\"?\s*[:=]\s*\"?[45]\d\d\b"
        r"|\b0x[0-9A-Fa-f]{4,8}\b"
    ),
    "url": r"\bhttps?://[^\s<>\"'`)\]]{4,}",
    "constraint": (
        r"(?m:^|(?<=[.!?:;]\s))[ \t>*-]{0,8}(?:you must|do not|don't|never|always)\b"
        r"|(?m:^|(?<=[.!?]\s))[ \t>*-]{0,8}(?:Important|Note):"
    ),
}
"""Name → pattern."""

_FLAGS = {"i": re.I, "m": re.M, "s": re.S, "a": re.A, "x": re.X, "u": re.U}


class Pins:
    """The patterns in force. Raises ConfigError for a pattern or a flag that cannot be used."""

    def __init__(self, extra: Sequence[str] = (), flags: str = "i") -> None:
        unknown = sorted(set(flags) - set(_FLAGS))
        if unknown:
            raise ConfigError(f"pin_flags: {flags!r} is refused: known flags are {', '.join(_FLAGS)}")
        combined = 0
        for flag in flags:
            combined |= _FLAGS[flag]
        self._patterns: list[tuple[str, re.Pattern[str]]] = []
        for name, pattern in [*BUILT_IN.items(), *((text, text) for text in extra)]:
            try:
                self._patterns.append((name, re.compile(pattern, combined if name == pattern else _built_in(combined))))
            except (re.error, ValueError, OverflowError, RecursionError) as error:
                raise ConfigError(f"pin_patterns: {name!r} is no regular expression: {error}") from None

    def of(self, text: str) -> str:
        """The name of the first pattern that the text holds, empty if none."""
        return next((name for name, pattern in self._patterns if pattern.search(text)), "")


def _built_in(flags: int) -> int:
    """Only the case flag concerns the built-in ones: the others would change what they mean."""
    return flags & re.I
