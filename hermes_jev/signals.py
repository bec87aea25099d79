"""Lines that say how something ended: errors, their causes, exit codes, failed tests.

Patterns are for what tools print, not for source code that handles errors: most are anchored at the start of a line.
Two lines that differ only in numbers tell of one error, and two that differ in quoted names and paths too of one kind.
"""

from __future__ import annotations

import re
from typing import Literal

Signal = Literal["error", "cause", "failed test", "exit status"]

# A line number, a date and time, a level in brackets, a program: what may stand before the words.
_LEAD = (
    r"[^\w\n]{0,6}(?:\d{1,6}(?:\t|→|:[ ]?))?(?:[A-Z][a-z]{2}\s+\d+\s)?"
    r"(?:\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d[\d:.,Z+-]*\]?\s+)?(?:\[[^\]\n]{1,40}\]\s*)?"
    r"(?:[\w.-]{1,30}(?:\[\d+\])?:\s)?"
)
_ERROR = re.compile(
    _LEAD
    + r"""(?:
        (?i:fatal|panic|error|failure|critical|severe|exception|uncaught|unhandled|abort(?:ed)?)\b(?:\s\w+){0,2}?\s?[:!]
          \s?(?!\w+[,;({]?$)
      | (?i:error|fatal)\[\w+\]
      | (?:ERROR|FATAL|CRITICAL|PANIC|Error|Exception)\s+\S
      | (?:npm|yarn|pnpm)\s(?:ERR!|error)
      | (?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failure|Fault|Interrupt)(?::\s|\s*$)
      | E\s{2,}\S
      | (?i:failed\sto|cannot|can't|could\snot|unable\sto)\s\w
      | (?:Command|Build|Compilation|Process|Test\srun)\s(?i:failed|timed\sout)
      | [✕✗✘×]\s\w
    )""",
    re.VERBOSE,
)
# Patterns that may start anywhere begin with plain letters, which is what makes a search fast.
_ERROR_AFTER = re.compile(
    r": (?:(?:fatal )?error(?: \[?\w+\]?)?: |No such file|[Pp]ermission denied|command not found|[Nn]ot a directory"
    r"|[Ii]nvalid option|[Cc]onnection refused|cannot \w+ |unrecognized )"
)
_ERROR_WITHIN = re.compile(
    r"Segmentation fault|\(core dumped\)|HTTP(?:/\d(?:\.\d)?)? [45]\d\d\b|Error: \w"
    r"|status(?: code|Code)?[\"']? ?[:=]? ?[45]\d\d\b|[\"']error\\?[\"'] ?: ?\\?[\"'{]\\?[^\"'\\}\s]"
    r"|level=(?:error|fatal|crit)|[\"']level\\?[\"'] ?: ?\\?[\"'](?:error|fatal|crit)"
)
_CAUSE = re.compile(_LEAD + r"(?i:caused\sby|root\scause|reason|because)\b:?\s\S", re.VERBOSE)
_TEST = re.compile(
    _LEAD
    + r"""(?:(?:FAILED|FAIL)\b[:\s]+[\w./\[-] | ERROR\s[\w./-]+(?:::\w|\.\w+\s-\s) | ---\sFAIL:| not\sok\b
      | (?:test\s)?\S+\s\.\.\.\s(?:FAILED|FAIL|ERROR)\b | ●\s\w+.*\s[›>]\s)""",
    re.VERBOSE,
)
_EXIT = re.compile(
    r"[Ee]xit(?:ed)?(?: with)?[ _]?(?:[Cc]ode|[Ss]tatus)?[\"']? ?[:=]? {0,2}-?\d{1,5}\b(?!\.)"
    r"|(?:[Ss]ignal|[Kk]illed by|[Rr]eturn ?code)[\"']? ?[:=]? ?-?[1-9]\d{0,2}\b"
    r"|[1-9]\d* (?:failed|failures?|errors?)\b(?! \w+ \w+ \w+)"
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
_CODE = re.compile(r"\W*(?:throw|raise|return|except|catch|if|elif|case|import|from|const|let|var|def|class)\b")
_OPEN = (";", "{", "(", "=>")
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
    if _TEST.match(line):
        return "failed test"
    if _CODE.match(line) or line.rstrip().endswith(_OPEN) or _NOISE.match(line.strip()):
        return None
    if _ERROR.match(line) or ((_ERROR_AFTER.search(line) or _ERROR_WITHIN.search(line)) and not _CALL.search(line)):
        return "error"
    if _EXIT.search(line):
        return "exit status"
    return "cause" if _CAUSE.match(line) else None


def template(line: str) -> str:
    """What two reports of one kind have in common: a line without numbers, quoted names and paths."""
    return _VARIES.sub("#", line.strip())


def report(line: str, signal: Signal) -> str:
    """What makes a report distinct: a failed test by its line, anything else by its line without the numbers."""
    return line.strip() if signal == "failed test" else _DIGITS.sub("#", line.strip())
