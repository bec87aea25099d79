"""The arguments of `session_search`, in the host's shapes, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

DEFAULT_HITS, MOST_HITS = 6, 10
DEFAULT_WINDOW, WIDEST_WINDOW = 5, 20
_DIGITS = 15


class BadArgument(Exception):
    """An argument cannot be used; the text is for the model."""


class Asked(NamedTuple):
    """What is asked for. `session` decides over `query`, as in the host; `roles` is empty for all."""

    query: str
    session: str | None
    message: int | None
    window: int
    limit: int
    roles: tuple[str, ...]
    sort: Literal["", "newest", "oldest"]

    def wants(self, role: str) -> bool:
        """Whether messages of a role are looked at."""
        return not self.roles or role in self.roles


def checked(arguments: Any) -> Asked:
    """Numbers out of range are brought into it, as the host does. Raises BadArgument for what has another type."""
    if not isinstance(arguments, Mapping):
        raise BadArgument("session_search takes an object with a query, a session_id, or nothing")
    session = _text(arguments, "session_id").strip()
    message = _number(arguments, "around_message_id")
    if message is not None and not session:
        raise BadArgument("around_message_id needs the session_id that the hit names")
    roles = [role.strip() for role in _text(arguments, "role_filter").split(",")]
    sort = _text(arguments, "sort").strip().lower()
    window, limit = _number(arguments, "window"), _number(arguments, "limit")
    return Asked(
        query=_text(arguments, "query"),
        session=session or None,
        message=message,
        window=min(max(DEFAULT_WINDOW if window is None else window, 1), WIDEST_WINDOW),
        limit=min(max(DEFAULT_HITS if limit is None else limit, 1), MOST_HITS),
        roles=tuple(role for role in roles if role),
        sort="newest" if sort == "newest" else "oldest" if sort == "oldest" else "",
    )


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise BadArgument(f"{name} is a text")
    return value or ""


def _number(arguments: Mapping[str, Any], name: str) -> int | None:
    value = arguments.get(name)
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= _DIGITS:
        value = int(value)
    if value is None or value == "":
        return None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**63:
        raise BadArgument(f"{name} is a whole number")
    return value
