"""Lines that say how something ended: errors, their causes, exit codes, failed tests.

Patterns are for what tools print, not for source code that handles errors: most are anchored at the start of a line.
Two lines that differ only in numbers tell of one error, and two that differ in quoted names and paths too of one kind.
"""

from __future__ import annotations

import re
from typing import Literal

Signal = Literal["error", "cause", "failed test", "exit status"]

_LEAD = (
    r"^[^\w\n]{0,6}(?:\d{1,6}(?:\t|→|: ?))?"
    r"(?:\[?\d{4}-\d\d-\d\d[T ][\d:.,Z+-]+\]?\s+)?(?:\[[^\]\n]{1,40}\]\s*)?(?:[\w.-]{1,30}(?:\[\d+\])?:\s)?"
)
_ERROR = re.compile(
    _LEAD
    + r"""(?:
        (?i:fatal|panic|error|failure|critical|severe|exception|uncaught|unhandled|abort(?:ed)?)\b(?:\s\w+){0,2}?\s?[:!]
          \s?(?!\w+[,;({]?$)
      | (?i:error|fatal)\[\w+\]
      | (?:ERROR|FATAL|CRITICAL|PANIC|Error|Exception)\s\S
      | (?:npm|yarn|pnpm)\s(?:ERR!|error)
      | (?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failure|Fault|Interrupt)(?::\s|\s*$)
      | E\s{2,}\S
      | (?i:failed\sto|cannot|can't|could\snot|unable\sto)\s\w
      | (?:Command|Build|Compilation|Process|Test\srun)\s(?i:failed|timed\sout)
      | [✕✗✘×]\s\w
    )""",
    re.VERBOSE,
)
_ERROR_WITHIN = re.compile(
    r""":\s(?:fatal\s)?error(?:\s\[?\w+\]?)?:\s
    |\S:\s(?:No\ssuch\sfile|[Pp]ermission\sdenied|command\snot\sfound|[Nn]ot\sa\sdirectory|[Ii]nvalid\soption
            |[Cc]onnection\srefused|cannot\s\w+\s|unrecognized\s)
    |Segmentation\sfault|\(core\sdumped\)
    |\bHTTP(?:/\d(?:\.\d)?)?\s[45]\d\d\b|\bstatus(?:\scode|Code)?["']?\s?[:=]?\s?[45]\d\d\b
    |\\?["']error\\?["']\s?:\s?\\?["'{]\\?[^"'\\}\s]|\bError:\s\w
    """,
    re.VERBOSE,
)
_CAUSE = re.compile(_LEAD + r"(?i:caused\sby|root\scause|reason|because)\b:?\s\S", re.VERBOSE)
_TEST = re.compile(
    _LEAD
    + r"""(?:(?:FAILED|FAIL|ERROR)\b[:\s]+[\w./\[-] | ---\sFAIL:| not\sok\b
      | (?:test\s)?\S+\s\.\.\.\s(?:FAILED|FAIL|ERROR)\b | ●\s\w+.*\s[›>]\s)""",
    re.VERBOSE,
)
_EXIT = re.compile(
    r"""\b(?i:exit(?:ed)?)(?:\swith)?[\s_]?(?i:code|status)?["']?\s?[:=]?\s{0,2}(?:-?\d{1,5})\b(?!\.)
    |\b(?i:signal|killed\sby|return\s?code)\b["']?\s?[:=]?\s?-?[1-9]\d{0,2}\b
    |\b[1-9]\d*\s(?:failed|failures?|errors?)\b(?!\s\w+\s\w+\s\w+)
    """,
    re.VERBOSE,
)
_WORDS = (
    *("error", "exception", "fail", "fatal", "panic", "abort", "critical", "severe", "unhandled", "uncaught", "cannot"),
    *("can't", "could not", "unable", "denied", "no such", "not found", "invalid option", "refused", "unrecognized"),
    *("not a directory", "fault", "interrupt", "core dumped", "cause", "reason", "exit", "signal", "killed"),
    *("return code", "returncode", "timed out", "not ok", "err!", "http", "status", "✕", "✗", "✘", "× ", "●", "\ne  "),
)
_NOISE = re.compile(r"(?:npm|pnpm|yarn) (?:error|ERR!) (?:path|workspace|location|command|errno|syscall|A complete|\s)")
_VARIES = re.compile(
    r"""(["'`‘“])[^"'`’”\n]{1,160}["'`’”]|\b0x[0-9a-fA-F]+|[\w.+@~-]*(?:[/\\][\w.+@~-]+)+|\b[0-9a-f]{7,64}\b|\d+"""
)
_DIGITS = re.compile(r"0x[0-9a-fA-F]+|\d+")
# What handles errors in source code, instead of reporting one.
_CODE = re.compile(
    r"^\W*(?:throw|raise|return|except|catch|if|elif|case|import|from|const|let|var|def|class)\b|(?:[;{(]|=>)\s*$"
)
_CALL = re.compile(r"[\w\]]\([a-z]?[\"'`]")


def hints(text: str, start: int = 0) -> list[int]:
    """Where a word stands that a signal needs, in order: only the lines there are worth a look. Linear in the text."""
    low = text.lower()
    if len(low) != len(text):  # a few letters grow when they become small, and then places would not agree
        low = "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
    found: list[int] = []
    for word in _WORDS:
        at = low.find(word, start)
        while at >= 0:
            found.append(at + len(word) - 1)
            at = low.find(word, at + len(word))
    return sorted(found)


def signal_of(line: str) -> Signal | None:
    """What a line says of how something ended, None for ordinary lines."""
    if _TEST.search(line):
        return "failed test"
    if _CODE.search(line) or _NOISE.match(line.strip()):
        return None
    if _ERROR.search(line) or (_ERROR_WITHIN.search(line) and not _CALL.search(line)):
        return "error"
    if _EXIT.search(line):
        return "exit status"
    return "cause" if _CAUSE.search(line) else None


def template(line: str) -> str:
    """What two reports of one kind have in common: a line without numbers, quoted names and paths."""
    return _VARIES.sub("#", line.strip())


def report(line: str, signal: Signal) -> str:
    """What makes a report distinct: a failed test by its line, anything else by its line without the numbers."""
    return line.strip() if signal == "failed test" else _DIGITS.sub("#", line.strip())
