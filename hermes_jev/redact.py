"""The one gate to the outside: what leaves the process, or is written to a log, a receipt or an error, is masked here.

A secret is found by the name in front of it (`_redact_fields`, with `_redact_names` and `_redact_values`) or by its own
shape (`_redact_patterns`). Its name stays, its value becomes `[secret]`; everything around it stays as it was. All
functions are pure and deterministic, a second time over changes nothing, and the time is linear in the text.

Redact first, then cut: a cut secret is hard to recognise. `redact_excerpt` does both at bounded cost.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol, TypeAlias

from ._redact_fields import by_name
from ._redact_names import MASK, strength, word_set
from ._redact_patterns import Span, by_shape, pem_blocks
from ._redact_values import field_is_secret, refers
from .errors import JevError

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"

_ROUNDS = 4
_MARGIN = 8192


class RedactionError(JevError):
    """A text could not be redacted, so it must not be sent. The message holds none of it."""


class Redactor(Protocol):
    """Anything that masks secrets in text. May raise; then the text is not sent."""

    def __call__(self, text: str) -> str:
        """The text without its secrets."""
        ...


def _merged(found: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif start < end:
            merged.append((start, end))
    return merged


def _found(text: str) -> list[Span]:
    """One search, without the masks it finds again."""
    return [(start, end) for start, end in _merged([*by_shape(text), *by_name(text)]) if text[start:end] != MASK]


def _pieces(text: str, masked: list[Span], start: int, end: int) -> Iterator[str]:
    """text[start:end] with one mask for each span that reaches into it."""
    at = start
    for left, right in masked:
        if right <= start or left >= end:
            continue
        yield text[at : max(at, left)]
        yield MASK
        at = max(at, right)
    yield text[at : max(at, end)]


def _back(masked: list[Span], found: list[Span]) -> list[Span]:
    """Spans of the masked text in positions of the text before; a span that touches a mask takes all of it."""
    starts, ends, shift = [], [], 0
    for left, right in masked:
        starts.append(left - shift)
        shift += right - left - len(MASK)
        ends.append(right - shift)
    back = []
    for left, right in found:
        first, last = bisect_right(starts, left) - 1, bisect_right(starts, right - 1) - 1
        if first >= 0 and left < ends[first]:
            left = masked[first][0]
        elif first >= 0:
            left += masked[first][1] - ends[first]
        if last >= 0 and right <= ends[last]:
            right = masked[last][1]
        elif last >= 0:
            right += masked[last][1] - ends[last]
        back.append((left, right))
    return back


def spans(text: str) -> list[Span]:
    """What `redact` masks: sorted, disjoint (start, end) in characters.

    A mask changes what stands around it, and with it what can be found; so the search is repeated until it finds
    nothing more. A text that never settles is masked whole.
    """
    masked = _found(text)
    fresh = masked
    for _ in range(_ROUNDS):
        if not fresh:
            return masked
        fresh = _found("".join(_pieces(text, masked, 0, len(text))))
        masked = _merged([*masked, *_back(masked, fresh)])
    return masked if not fresh else [(0, len(text))]


def redact(text: str) -> str:
    """The text with `[secret]` in place of every secret. Never raises; lone surrogates pass through."""
    masked = spans(text)
    return "".join(_pieces(text, masked, 0, len(text))) if masked else text


def redact_excerpt(text: str, start: int, end: int, margin: int = _MARGIN) -> str:
    """`text[start:end]` as if the whole text had been redacted and then cut: a secret on the edge becomes its mask.

    Looks at `margin` characters either side, more only where one unbroken run of characters or a PEM block reaches
    further back, so a short piece of a long text costs little. Positions outside the text are clipped.
    """
    start = max(0, start)
    end = min(len(text), end)
    if start >= end:
        return ""
    lo, hi = _run_start(text, max(0, start - margin), 4 * margin), min(len(text), end + margin)
    masked = [(left + lo, right + lo) for left, right in spans(text[lo:hi])]
    masked += (block for block in pem_blocks(text, 0, lo) if block[1] > lo)
    return "".join(_pieces(text, _merged(masked), start, end))


_RUN_BEFORE = re.compile(r"\S*")
_NAME_REACH = 256


def _run_start(text: str, at: int, most: int) -> int:
    """A position before `at` and before the unbroken run it stands in, and the name in front of that run."""
    run = _RUN_BEFORE.match(text[max(0, at - most) : at][::-1])
    return max(0, at - (run.end() if run else 0) - _NAME_REACH)


def redact_value(value: JSON) -> JSON:
    """The same JSON value with its secrets masked, at any depth; order and shape kept.

    Under the name of a secret everything is masked, nested values too, but for null, booleans and what is empty. All
    other strings, and the keys, go through `redact`; a number that is a secret by its shape becomes a mask. Raises
    RedactionError for what is no JSON value.
    """
    holder: list[JSON] = [value]
    work: list[_Slot] = [(value, partial(holder.__setitem__, 0))]
    while work:
        node, put = work.pop()
        if isinstance(node, dict):
            fields: dict[str, JSON] = {}
            put(fields)
            work += _open_fields(node, fields)
        elif isinstance(node, list):
            items = list(node)
            put(items)
            work += _open_items(node, items)
        else:
            put(_redacted_leaf(node))
    return holder[0]


_Slot: TypeAlias = tuple[JSON, Callable[[JSON], None]]


def _open_fields(node: dict[str, JSON], fields: dict[str, JSON]) -> Iterator[_Slot]:
    """Fill `fields` in order; what is not masked by its name is given back to be redacted in its turn."""
    named = redact(_named_by_sibling(node))
    for key, value in node.items():
        safe, count = redact(key), 1
        unique = safe
        while unique in fields:  # two keys with one mask
            count += 1
            unique = f"{safe} ({count})"
        announced = named if named and key in _VALUE_KEYS else safe
        if not _is_schema(value) and field_is_secret(strength(announced), announced, value):
            fields[unique] = MASK
        else:
            fields[unique] = None
            yield value, partial(fields.__setitem__, unique)


_NAME_KEYS = ("name", "key", "header", "variable")
_VALUE_KEYS = ("value", "val", "Value")


def _named_by_sibling(node: dict[str, JSON]) -> str:
    """The name in `{"name": "DB_PASSWORD", "value": …}`, the way lists of headers and variables are written."""
    for key in _NAME_KEYS:
        name = node.get(key)
        if isinstance(name, str):
            return name
    return ""


_SCHEMA_KEYS = word_set("type description title minLength maxLength pattern format nullable items properties required")


def _is_schema(value: JSON) -> bool:
    """A JSON Schema of a field says nothing of its value."""
    return isinstance(value, dict) and "type" in value and _SCHEMA_KEYS.issuperset(value)


_USER_FLAGS = ("-u", "--user", "--proxy-user")


def _open_items(node: list[JSON], items: list[JSON]) -> Iterator[_Slot]:
    """The items of a list that are not masked because of the item before them: `["--token", "x"]`."""
    for index, item in enumerate(node):
        before = node[index - 1] if index else None
        if isinstance(item, str) and isinstance(before, str) and _announced(before, item, len(node)):
            items[index] = MASK
        else:
            yield item, partial(items.__setitem__, index)


def _announced(before: str, item: str, length: int) -> bool:
    if refers(item) or not item:
        return False
    if before in _USER_FLAGS:
        name, colon, password = item.partition(":")
        return bool(colon and password) and not (name.isdigit() and password.isdigit())
    is_header = length == 2 and ("-" in before or before.lower() in ("authorization", "cookie"))
    return (before.startswith("-") or is_header) and strength(before) in ("sure", "likely") and not item.startswith("-")


def _redacted_leaf(node: JSON) -> JSON:
    if isinstance(node, str):
        return redact(node)
    if node is None or isinstance(node, bool):
        return node
    if isinstance(node, int | float):
        return MASK if spans(str(node)) else node
    raise RedactionError("only JSON values can be redacted")


def redact_arguments(arguments: str) -> str:
    """The input of a tool call: redacted by field name and by value if it is JSON, else as text.

    JSON comes back compact, with its keys in order and without escapes for what is not ASCII.
    """
    try:
        parsed: JSON = json.loads(arguments)
        return json.dumps(redact_value(parsed), ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return redact(arguments)


def chain(*redactors: Redactor) -> Redactor:
    """One redactor that applies these in their order: the package's own first, a host's on top.

    It raises RedactionError when one of them raises or returns anything but a string. The error holds nothing of the
    text, nor of the error below.
    """

    def apply(text: str) -> str:
        for number, redactor in enumerate(redactors, 1):
            safe = _attempt(redactor, text)
            if safe is None:
                raise RedactionError(f"redactor {number} of {len(redactors)} failed")
            text = safe
        return text

    return apply


def _attempt(redactor: Redactor, text: str) -> str | None:
    try:
        safe: object = redactor(text)
    except Exception:  # noqa: BLE001 - a host's redactor may raise anything, and whatever it is the text is not sent
        return None
    return safe if isinstance(safe, str) else None
