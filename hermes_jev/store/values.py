"""Exact bytes for any value a tool result can be, and the pointer ids made from them.

A text is stored as UTF-8 in which lone surrogates pass, any other JSON-like value as JSON in the same form. JSON
escapes are not used: two lone surrogates side by side would be read back as one character. The first byte says which
form it is.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from typing import Any

from ..errors import StoreError

_TEXT, _JSON, _WIDE = b"s", b"j", b"w"

MAX_DEPTH = 100
"""Levels of lists and objects a stored value may have, so that reading it never meets the recursion limit."""

# Python refuses to read decimal integers beyond a limit that each process may lower to 640 digits (2126 bits).
_PLAIN_INT_BITS = 2048

MIN_ID_LENGTH = 10
MAX_ID_LENGTH = 52
ANY_POINTER = "r-" + "a" * MIN_ID_LENGTH
"""As long as most pointers are: for texts that are measured before anything is stored."""
_POINTER = re.compile(rf"r-[a-z2-7]{{{MIN_ID_LENGTH},{MAX_ID_LENGTH}}}")

_INEXACT = "the value cannot be stored exactly"
_DAMAGED = "the stored value is damaged"


def encode(value: Any) -> bytes:
    """Return bytes from which `decode` makes an equal value of equal type at every depth.

    Raises StoreError for a value without such bytes: tuples, keys that are no text, objects of other classes, cycles.
    """
    try:
        data = _TEXT + _to_utf8(value) if type(value) is str else _encode_json(value)
        exact = same(decode(data), value)
    except RecursionError as error:
        raise StoreError(f"{_INEXACT}: it is nested too deeply") from error
    if not exact:
        raise StoreError(_INEXACT)
    return data


def decode(data: bytes) -> Any:
    """Return the value `encode` was given. Raises StoreError for bytes it cannot have made."""
    tag, body = data[:1], data[1:]
    if tag not in (_TEXT, _JSON, _WIDE):
        raise StoreError(_DAMAGED)
    try:
        text = body.decode("utf-8", "surrogatepass")
        if tag == _TEXT:
            return text
        value = json.loads(text)
        return value if tag == _JSON else _narrow(value)
    except (ValueError, RecursionError) as error:
        raise StoreError(_DAMAGED) from error


def same(left: Any, right: Any) -> bool:
    """Whether two JSON-like values are equal in value, type and order of keys, down to the bits of a float."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack("d", left) == struct.pack("d", right)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(map(same, left.values(), right.values()))
    return bool(left == right)


def content_hash(data: bytes) -> str:
    """SHA-256 of encoded bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def pointer_hash(tool: str, arguments: str, result: bytes) -> bytes:
    """SHA-256 of one exchange, `result` encoded. Lengths are hashed too, so that parts cannot run into each other."""
    digest = hashlib.sha256()
    for part in (_to_utf8(tool), _to_utf8(arguments), result):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def pointer_id(exchange: bytes, length: int = MIN_ID_LENGTH) -> str:
    """The pointer made of the first `length` base32 characters (10 to 52) of a `pointer_hash`."""
    return "r-" + base64.b32encode(exchange).decode("ascii").lower()[:length]


def is_pointer_id(text: object) -> bool:
    """Whether something a model or a person wrote has exactly the syntax of a pointer."""
    return isinstance(text, str) and _POINTER.fullmatch(text) is not None


def _to_utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _encode_json(value: Any) -> bytes:
    tag = _JSON
    if _has_wide_int(value, MAX_DEPTH):
        tag, value = _WIDE, _widen(value)
    return tag + _to_utf8(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _has_wide_int(value: Any, levels: int) -> bool:
    """Look at every part (hence the lists) before anything is written, so that no method of a foreign class runs."""
    if levels < 0:
        raise StoreError(f"{_INEXACT}: it is nested deeper than {MAX_DEPTH} levels")
    if value is None or type(value) in (str, bool, float):
        return False
    if type(value) is int:
        return value.bit_length() > _PLAIN_INT_BITS
    if type(value) is list:
        return any([_has_wide_int(part, levels - 1) for part in value])
    if type(value) is dict and all(type(key) is str for key in value):
        return any([_has_wide_int(part, levels - 1) for part in value.values()])
    raise StoreError(f"{_INEXACT}: it holds what JSON does not have")


def _widen(value: Any) -> Any:
    """Write integers as hexadecimal text, which has no limit, and mark texts so that the two stay apart."""
    if type(value) is int:
        return f"i{value:x}"
    if type(value) is str:
        return f"s{value}"
    if type(value) is list:
        return [_widen(part) for part in value]
    if type(value) is dict:
        return {key: _widen(part) for key, part in value.items()}
    return value


def _narrow(value: Any) -> Any:
    """Undo `_widen`. Raises ValueError for an integer that is none."""
    if type(value) is str:
        return int(value[1:], 16) if value.startswith("i") else value[1:]
    if type(value) is list:
        return [_narrow(part) for part in value]
    if type(value) is dict:
        return {key: _narrow(part) for key, part in value.items()}
    return value
