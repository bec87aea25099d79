r"""Finds, in free text, the values that stand behind the name of a secret.

Free text is all of it at once: JSON and its escaped copies, code, .env and YAML files, headers, query strings, command
lines, connection strings, prose. So the search goes from the name: find one of the words, read the whole name around
it, see what joins it to what follows, and read the value in the form it has there.

One left-to-right pass; what was read once is not read again, so the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ._redact_names import MASK, Strength, strength, strength_after
from ._redact_values import (
    Place,
    bare_is_secret,
    field_is_secret,
    interpolates,
    is_dense,
    looks_random,
    quoted_is_secret,
    refers,
)

Span = tuple[int, int]

_KEYWORD = re.compile(
    "pass|pw|psw|psk|secret|token|key|auth|cred|cookie|otp|pin|cvv|cvc|bearer|jwt|sig|mnemonic|phrase|ssn|sid|sessid|"
    "sessionid|pat|amz-credential"
)
_NAME = re.compile(r"[A-Za-z0-9_.\-]*")
_LONGEST_PREFIX = 81

# A quote as it stands in plain text, in JSON inside JSON, in HTML, in a URL.
_Q = r"(?:\\{0,15}[\"'`]|&quot;|&\#3[49];|\\{1,15}u002[27]|%2[27])"
_GAP = r"(?:\s|\\{1,15}[nrt]){0,40}"
_SPACE = r"(?(close)\s{0,99}|[ \t]{0,99})"  # a line may end behind a quoted name only
_JOIN = re.compile(
    rf"""(?: \] | \*{{1,2}} | (?P<close>{_Q})(?P<subscript>\])? )?
    (?: (?P<typed>  :[ \t]*[A-Za-z_&*][\w.\[\]|&*]{{0,40}}[ \t]*=(?!=)[ \t]*(?=[bBrRuUfF]?{_Q}) )
      | (?P<pair>   ,?{_GAP}{_Q}?[Vv]alue{_Q}?\s{{0,8}}[:=]\s{{0,40}} )
      | (?P<assign> {_SPACE} (?: :[=\-]|=>|={{1,3}}|:(?!:)|：|%3[AaDd] ) (?:\*\*)? {_SPACE} )
      | (?P<tag>    > )
      | (?P<item>   ,\s{{0,40}}(?={_Q}) )
      | (?P<be>     [ \t]+(?:is|was)[ \t:]{{1,3}} )
      | (?P<gap>    [ \t]+\|[ \t]+ | [ \t]+ )
    )""",
    re.VERBOSE,
)
_OPEN = re.compile(rf"[bBrRuUfF@]{{0,2}}({_Q})")
_BARE = re.compile(
    r"(?![<>{}\])])(?:[^\s\"'`<>()\[\]{},;&|\\]|[,;&|](?![\s,;&|]|\Z|[\w.\-]{1,64}[=:])|[<>{}\])](?=[A-Za-z0-9])|\\(?![nrt\"'\\u]))+"
)
_ENV_BARE = re.compile(r"(?:[^\s\"'`\\]|\\(?![nrt\"'\\u]))+")
_LINE = re.compile(r"(?:[^\r\n\"'`\\]|\\(?![nrt\"'\\u]))+")
_ENV_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_PHRASE = re.compile(r"(?i)phrase|mnemonic")
_BLOCK = re.compile(r"[|>][+\-0-9]{0,2}[ \t]*(?:\r|\\{1,15}r)?(\n|\\{1,15}n)")
_SCHEMA = re.compile(rf"\{{\s*{_Q}?type{_Q}?\s*:")
_EXAMPLE = re.compile(r"default|example|const|enum|value")
_BRACKET = re.compile(r"\\{0,15}\"|[{}\[\]]")
_NETRC = re.compile(r"login\s+\S+\s+\Z")
_WORD_BEFORE = re.compile(r"([A-Za-z]{2,16}) \Z")
_SCHEME = re.compile(
    r"(?i)(?:Bearer|Basic|Token|Digest|Negotiate|NTLM|Api-?Key|Key|OAuth|Hawk|MAC|SSWS|Bot|JWT|Splunk|"
    r"AWS4-HMAC-SHA256)[ \t]+"
)
_PARAMETERS = re.compile(r"(?:[\w\-]+ ?= ?(?:\"[^\"\r\n]*\"|[^\s,\"'\\]+)(?:,[ \t]*|[ \t]+(?=[\w\-]+=))?)+")
_COOKIE = r"[^\s;=\"'(){}\[\]<>\\]+(?:=(?:\"[^\"\r\n\\]*\"|[^;\"'\r\n\\]*))"
_COOKIES = re.compile(rf"{_COOKIE}(?:;\s?(?:{_COOKIE}|[A-Za-z]+))*;?")
_FORM_FIELD = re.compile(r"\w\[secret\]=")  # the mask is a word too, but it names nothing
_LIST_OF_STRINGS = re.compile(rf"[\[{{]\s{{0,40}}{_Q}")
_AFTER_CLOSING = re.compile(r"\s*[),;\]]|\s+[+%.]")
_LINE_DONE = re.compile(r"[ \t]*[,;)]?[ \t]*(?:\r?\n|\Z)")
_WINDOW, _NESTED = 8192, 65_536


class _Name(NamedTuple):
    """A name as it stands in the text: from `start`, with its dashes stripped from `text`."""

    text: str
    start: int
    kind: Strength
    flag: bool


def _name_around(text: str, start: int, end: int, floor: int) -> tuple[_Name, int]:
    before = _NAME.match(text[max(floor, start - _LONGEST_PREFIX) : start][::-1])
    left = start - (before.end() if before else 0)
    if left < start and text[left - 1 : left] == "\\" and text[left] in "nrtbf":
        left += 1  # the letter belongs to an escape: \nTOKEN=…
    after = _NAME.match(text, end)
    right = after.end() if after else end
    name = text[left:right].strip("-.")
    before_it = _WORD_BEFORE.search(text[max(0, left - 17) : left])
    kind = strength_after(before_it[1], name) if before_it else strength(name)
    return _Name(name, left, kind, text[left] == "-"), right


def _line_end(text: str, at: int) -> int:
    stop = text.find("\n", at)
    return stop if stop >= 0 else len(text)


def _inside(text: str, opened: re.Match[str]) -> Span:
    """What stands between an opening quote and the one that closes it; without one, to the end of the line.

    The closing quote has as many backslashes as the opening one: that is how JSON inside JSON nests.
    """
    quote, start = opened[1], opened.end()
    mark, depth = quote[-1], len(quote) - 1
    if mark not in "\"'`":
        stop = text.find(quote, start, start + _WINDOW)
        return start, stop if stop >= 0 else _line_end(text, start)
    if quote == mark and text.startswith(mark * 2, start):
        stop = text.find(mark * 3, start + 2, start + _WINDOW)
        return start + 2, stop if stop >= 0 else _line_end(text, start)
    seen = start
    at = text.find(mark, start)
    while at >= 0 and text.find("\n", seen, at) < 0:
        bare = at
        while bare > start and text[bare - 1] == "\\":
            bare -= 1
        slashes = at - bare
        if slashes % (2 * depth + 2) == depth or slashes < depth:
            return start, at - min(slashes, depth)
        seen, at = at, text.find(mark, at + 1)
    if 0 <= at <= start + _WINDOW and _LINE_DONE.match(text, at + 1):
        return start, at  # a value of several lines
    return start, _line_end(text, start)


def _quoted(text: str, name: _Name, opened: re.Match[str], *, field: bool) -> Span | None:
    start, stop = _inside(text, opened)
    value = text[start:stop]
    scheme = _SCHEME.match(value)
    core = value[scheme.end() :] if scheme else value
    if field:
        masked = field_is_secret(name.kind, name.text, value) and not interpolates(core)
    else:
        masked = quoted_is_secret(name.kind, name.text, core)
    return (start, stop) if masked else None


def _nested(text: str, at: int) -> Span | None:
    """A JSON object or array, to its closing bracket; without one, to the end of what is read."""
    level, in_string, base = 0, False, -1
    for token in _BRACKET.finditer(text, at, at + _NESTED):
        mark, slashes = token.group()[-1], len(token.group()) - 1
        if mark == '"':
            base = slashes if base < 0 else base
            in_string ^= slashes % (2 * base + 2) == base
        elif not in_string:
            level += 1 if mark in "{[" else -1
            if level == 0:
                whole = text[at : token.end()]
                return None if _SCHEMA.match(whole) and not _EXAMPLE.search(whole) else (at, token.end())
    return at, min(len(text), at + _NESTED)


def _block(text: str, name: _Name, at: int, newline: str) -> Span | None:
    """A YAML block scalar: the lines indented deeper than the one with the name. `newline` may be an escape."""
    line = text[max(0, name.start - _WINDOW) : name.start].rsplit(newline, 1)[-1]
    indent = len(line) - len(line.lstrip(" "))
    stop = at
    while stop < len(text):
        end = text.find(newline, stop, stop + _WINDOW)
        end = end if end >= 0 else _line_end(text, stop)
        content = text[stop:end]
        if content.strip() and len(content) - len(content.lstrip(" ")) <= indent:
            break
        stop = min(end + len(newline), len(text))
    body = text[at:stop].removesuffix(newline)
    start = at + len(body) - len(body.lstrip())
    return (start, at + len(body.rstrip())) if body.strip() else None


def _bare(text: str, name: _Name, join: str, at: int, *, field: bool) -> Span | None:
    in_env = join == "=" and _ENV_NAME.fullmatch(name.text) is not None
    line_start = text[max(0, name.start - 7) : name.start]
    if _PHRASE.search(name.text) and not name.flag:
        form = _LINE
    elif in_env and (not line_start or line_start.endswith(("\n", "\r", "export ", "\\n"))):
        form = _ENV_BARE
    else:
        form = _BARE
    match = form.match(text, at)
    if match is None:
        return None
    value = match.group().rstrip(",;&| \t")
    stop = at + len(value)
    follower = text[stop : stop + 1]
    place: Place = "env" if in_env else "field" if field else "flag" if name.flag else "text"
    return (at, stop) if bare_is_secret(name.kind, name.text, value, follower, place) else None


def _authorization(text: str, at: int) -> Span | None:
    scheme = _SCHEME.match(text, at)
    start = scheme.end() if scheme else at
    match = (_PARAMETERS.match(text, start) if scheme else None) or _BARE.match(text, start)
    if match is None or refers(match.group()):
        return None
    value = match.group().rstrip(" \t,")
    if not scheme and not looks_random(value):
        return None
    return start, start + len(value)


def _loose(text: str, name: _Name, at: int, *, gap: bool) -> Span | None:
    """A value that only a space or "is" joins to the name: `--token x`, `PASSWORD 'x'`, `Bearer x`, "password is x"."""
    flag = gap and (name.flag or _NETRC.search(text[max(0, name.start - 128) : name.start]) is not None)
    opened = _OPEN.match(text, at)
    if opened:
        start, stop = _inside(text, opened)
        value = text[start:stop]
        if flag:
            masked = quoted_is_secret(name.kind, name.text, value)
        elif re.search(r"\s", value) or refers(value) or name.kind == "maybe":
            masked = False
        else:
            masked = looks_random(value) or (
                "pass" in name.text.lower() and len(value) > 3 and strength(value) == "none"
            )
        return (start, stop) if masked else None
    if flag:
        return _bare(text, name._replace(flag=True), " ", at, field=False)
    match = _BARE.match(text, at)
    value = match.group().rstrip(".,;:!?)") if match else ""
    if not value or refers(value) or name.kind == "maybe":
        return None
    if name.text.lower() == "bearer":
        masked = len(value) >= 6 and (looks_random(value) or len(value) >= 16)
    else:
        masked = is_dense(value) if gap else looks_random(value)
    return (at, at + len(value)) if masked else None


def _tagged(text: str, name: _Name, at: int) -> Span | None:
    """`<password>x</password>`"""
    if text[name.start - 1 : name.start] not in ("<", ":"):
        return None
    stop = text.find("<", at, at + _WINDOW)
    if stop >= 0 and text.startswith("</", stop):
        value = text[at:stop]
        masked = "\n" not in value.strip() and quoted_is_secret(name.kind, name.text, value.strip())
        return (at, stop) if masked else None
    return _bare(text, name, "", at, field=False)  # cut off before its end


def _assigned(text: str, name: _Name, join: re.Match[str]) -> Span | None:
    at, how = join.end(), join.lastgroup
    field = join["close"] is not None and join["subscript"] is None and how in ("assign", "pair")
    opened = _OPEN.match(text, at)
    if opened:
        if not field and ":" in join.group() and _AFTER_CLOSING.match(text, opened.end()):
            return None  # the text "Password: " ends here, and code follows
        return _quoted(text, name, opened, field=field)
    whole = name.kind != "maybe" if field else name.kind == "sure" and _LIST_OF_STRINGS.match(text, at)
    if whole and text[at : at + 1] in ("{", "["):
        return _nested(text, at)
    if field and "\n" in join.group():
        return None
    lowered = name.text.lower()
    if lowered.endswith("authorization"):
        return _authorization(text, at)
    if lowered.endswith(("cookie", "cookies")):
        cookies = _COOKIES.match(text, at) if ":" in join.group() else None
        if cookies:
            return at, at + len(cookies.group().rstrip())
    block = _BLOCK.match(text, at) if how == "assign" and name.kind in ("sure", "likely") else None
    if block:
        return _block(text, name, block.end(), block[1])
    return _bare(text, name, join.group(), at, field=field)


def _value_after(text: str, name: _Name, join: re.Match[str]) -> Span | None:
    match join.lastgroup:
        case "tag":
            return _tagged(text, name, join.end())
        case "item":
            opened = _OPEN.match(text, join.end()) if name.flag else None
            span = _quoted(text, name, opened, field=False) if opened else None
            return span if span and text.count(" ", *span) < 4 else None  # a sentence explains the flag
        case "be" | "gap":
            return _loose(text, name, join.end(), gap=join.lastgroup == "gap")
        case _:
            return _assigned(text, name, join)


def _lowered(text: str) -> str:
    """The text in lower case, character for character: one letter of Unicode becomes two otherwise."""
    low = text.lower()
    return low if len(low) == len(text) else text.replace("\u0130", "i").lower()


def by_name(text: str) -> Iterator[Span]:
    """Spans of the values that stand behind the name of a secret, from left to right."""
    floor = 0
    for hit in _KEYWORD.finditer(_lowered(text)):
        if hit.start() < floor:
            continue
        name, floor = _name_around(text, hit.start(), hit.end(), floor)
        join = _JOIN.match(text, floor) if name.kind != "none" else None
        if join and text.startswith(MASK, name.start - 1) and not _FORM_FIELD.match(text, name.start - 2):
            continue
        span = _value_after(text, name, join) if join else None
        if span:
            yield span
            floor = max(floor, span[1])
