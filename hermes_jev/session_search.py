"""The tool `session_search`: what this session had cut away, and past sessions.

The host has a tool of that name with three shapes: `query` finds, `session_id` with `around_message_id` opens a place
(and `session_id` alone a session, `query` being ignored), no argument lists. It leaves out the current session, whose
old tool output nobody but this engine can reach. `extended` adds that to the host's reply; `answer` replies alone, in
the same shapes, where the host's tool is switched off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import StoreError
from .paging import LEAST_REPLY_CHARS, Room, encode, error, fitted
from .past import Message, past_hits, shown
from .search import Answer, SearchHit, search, stored
from .search_arguments import Asked, BadArgument, checked
from .search_words import age, call_words
from .state_db import StateDb
from .store import Store

SESSION_SEARCH_TOOL = "session_search"

REPLY_CHARS = 4_000
"""Characters of the encoded hits of one lineage."""

_PAST_CHARS = 2_000
_LISTED = 40
_PAGE_CHARS = 18_500
"""What is longer as it stands in JSON does not fit one page of `expand`, so that a hit says which lines to ask for."""

_SHARES = (1.1, 1.05, 1.0, 0.95, 0.9, 0.8, 0.5)
_HINT = 'expand(id="r-…") gives all of an output, lines="a-b" a part'

SESSION_SEARCH_SCHEMA: Mapping[str, Any] = {
    "name": SESSION_SEARCH_TOOL,
    "description": (
        "Find text in tool output of this session that was shortened or removed to save context, and in past sessions. "
        "query: words, names or literal text; each hit of this session names the id that expand() opens. session_id "
        "with around_message_id: the messages around a hit of a past session. session_id alone: that session. No "
        "argument: what this session has stored."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for. Ignored when session_id is given."},
            "limit": {"type": "integer", "description": "Hits at most, 1 to 10.", "minimum": 1, "maximum": 10},
            "session_id": {"type": "string", "description": "A past session, as a hit names it."},
            "around_message_id": {"type": "integer", "description": "A message of that session, as a hit names it."},
            "window": {
                "type": "integer",
                "description": "Messages on each side of that message, 1 to 20.",
                "minimum": 1,
                "maximum": 20,
            },
            "role_filter": {
                "type": "string",
                "description": "Roles to look at, with commas between: user, assistant, tool. All when left out.",
            },
            "sort": {"type": "string", "enum": ["newest", "oldest"], "description": "Order of the hits by time."},
        },
    },
}


@dataclass(frozen=True)
class Scope:
    """Whose question it is: the session and those it continues (`lineage`, the session first), its store, the host's
    database, how long a reply may be, and what time it is (seconds since 1970)."""

    session: str
    lineage: Callable[[], Sequence[str]]
    store: Store
    state: StateDb
    room: Room
    now: float


def answer(arguments: Any, scope: Scope) -> str:
    """The reply without the host's tool: always a JSON object."""
    try:
        asked = checked(arguments)
    except BadArgument as bad:
        return error(str(bad))
    if refusal := scope.room.refusal:
        return error(refusal)
    try:
        return encode(fitted(_alone(asked, scope), scope.room.chars), compact=True)
    except StoreError as fault:
        return error(f"the search failed: {fault}")


def extended(reply: Any, arguments: Any, scope: Scope) -> Any:
    """The reply of the host's tool with what it cannot reach; the reply itself where there is nothing to add.

    The host moves a reply that is too long into a file, so long texts in it are shortened until it is not.
    """
    try:
        asked = checked(arguments)
        base = json.loads(reply)
    except (BadArgument, TypeError, ValueError, RecursionError):
        return reply
    if not isinstance(base, dict) or scope.room.refusal:
        return reply
    try:
        added = _added(asked, base, scope)
    except StoreError as fault:
        added = {"this_session_error": f"what this session had cut away cannot be searched: {fault}"}
    if not added and len(reply) <= scope.room.chars:
        return reply
    return encode(fitted(_merged(base, added), scope.room.chars))


def _merged(base: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """What was added stands first, where no limit cuts it off; what the host could not do is an error no more."""
    if not any(key in added for key in ("this_session", "past_tool_output", "messages")):
        return {**added, **base}
    rest = {key: value for key, value in base.items() if key not in ("success", "error")}
    failed = {"past_sessions_error": base["error"]} if base.get("error") else {}
    return {"success": True, **added, **failed, **rest}


def _alone(asked: Asked, scope: Scope) -> dict[str, Any]:
    if asked.session is not None:
        return _opened(asked, scope)
    if not asked.query.strip():
        return {"success": True, "mode": "browse", "results": _stored(scope), "sessions": _sessions(asked, scope)}
    results: list[dict[str, Any]] = []
    head: dict[str, Any] = {"success": True, "mode": "discover"}
    if asked.wants("tool"):
        found = search(scope.store, asked.query, scope.lineage(), asked.limit)
        unread = {"not_searched_yet": found.unread} if found.unread else {}
        fixed = len(encode({**head, "count": 10, "hint": _HINT, **unread, "results": []}, compact=True))
        results = hits_of(_sorted(found, asked), min(REPLY_CHARS, scope.room.chars) - fixed, scope.now)
        head |= unread
    head |= {"hint": _HINT} if results else {}
    room = scope.room.chars - len(encode({**head, "results": results}, compact=True)) - 100
    past = past_hits(scope.state, asked, scope.lineage(), ("user", "assistant", "tool"), scope.now)
    results += _fitting(past, min(_PAST_CHARS, room))
    return {**head, "results": results, "count": len(results)}


def _added(asked: Asked, base: Mapping[str, Any], scope: Scope) -> dict[str, Any]:
    if asked.session is not None:
        if asked.message is not None and base.get("success") is False:
            opened = _opened(asked, scope)
            return opened if "messages" in opened else {}
        mine = asked.message is None and asked.session in scope.lineage()
        return {"this_session_stored": _stored(scope)} if mine else {}
    if not asked.query.strip():
        found = _stored(scope)
        return {"this_session_stored": found, "this_session_hint": _HINT} if found else {}
    added: dict[str, Any] = {}
    if asked.wants("tool"):
        answer = search(scope.store, asked.query, scope.lineage(), asked.limit)
        room = min(REPLY_CHARS, scope.room.chars) - len(_HINT) - 100
        if hits := hits_of(_sorted(answer, asked), room, scope.now):
            added = {"this_session": hits, "this_session_hint": _HINT}
        if answer.unread:
            added["not_searched_yet"] = answer.unread
    # The host's tool leaves tool output out unless it is asked for by role.
    if not asked.roles:
        past = past_hits(scope.state, asked, scope.lineage(), ("tool",), scope.now)
        if fitting := _fitting(past, min(_PAST_CHARS, scope.room.chars // 2)):
            added["past_tool_output"] = fitting
    return added


def _sorted(found: Answer, asked: Asked) -> Answer:
    if not asked.sort:
        return found
    hits = sorted(found.hits, key=lambda hit: hit.created, reverse=asked.sort == "newest")
    return found._replace(hits=hits)


def hits_of(found: Answer, chars: int, now: float) -> list[dict[str, Any]]:
    """The hits with as much of each as together fits into `chars` characters of JSON."""
    if not found.hits or chars < LEAST_REPLY_CHARS // 2:
        return []
    material = found.material()
    frames = [_frame(hit, material.page(at, _PAGE_CHARS), now) for at, hit in enumerate(found.hits)]
    room = chars - sum(len(encode({**frame, "snippet": ""}, compact=True)) + 1 for frame in frames)
    # What lines cost together is known when they are chosen: the first try is a little too much.
    for share in _SHARES:
        shown = [
            {**frame, "snippet": excerpt.text, **({"names": ", ".join(excerpt.names)} if excerpt.names else {})}
            for frame, excerpt in zip(frames, material.excerpts(int(room * share)), strict=True)
        ]
        if len(_fitting(shown, chars)) == len(shown):
            return shown
    return _fitting(shown, chars)


def _frame(hit: SearchHit, page: tuple[int, int] | None, now: float) -> dict[str, Any]:
    return {
        "id": hit.pointer,
        "tool": hit.original.tool[:60],
        "call": call_words(hit.original.arguments),
        "age": age(now - hit.created),
        "chars": len(hit.text),
        **({"lines": f"{page[0]}-{page[1]}"} if page else {}),
    }


def _fitting(hits: Sequence[dict[str, Any]], chars: int) -> list[dict[str, Any]]:
    """The first hits that together have at most `chars` characters in JSON."""
    kept: list[dict[str, Any]] = []
    left = chars
    for hit in hits:
        left -= len(encode(hit, compact=True)) + 1
        if left < 0:
            break
        kept.append(hit)
    return kept


def _stored(scope: Scope) -> list[dict[str, Any]]:
    """What the lineage has stored, newest first, as far as it fits."""
    listed = stored(scope.store, scope.lineage())
    newest = listed[:_LISTED]
    originals = scope.store.originals([one.pointer for one in newest], None)
    found = [
        {
            "id": one.pointer,
            "tool": one.tool[:60],
            "call": "" if isinstance(original, StoreError) else call_words(original.arguments),
            "age": age(scope.now - one.created),
            "chars": one.chars,
        }
        for one, original in zip(newest, originals, strict=True)
    ]
    kept: list[dict[str, Any]] = _fitting(found, min(REPLY_CHARS, scope.room.chars) - 200)
    return [*kept, {"more": len(listed) - len(kept)}] if len(kept) < len(listed) else kept


def _sessions(asked: Asked, scope: Scope) -> list[dict[str, Any]]:
    found = scope.state.recent([scope.session], asked.limit)
    return [
        {
            "session_id": one.id,
            "title": one.title[:100],
            "source": one.source,
            "age": age(scope.now - one.started),
            "messages": one.messages,
        }
        for one in found
    ]


def _opened(asked: Asked, scope: Scope) -> dict[str, Any]:
    """A place in a session, or the ends of one."""
    session = asked.session or ""
    if asked.message is None:
        rows, count = scope.state.ends_of(session, 20, 10)
        head: dict[str, Any] = {"success": True, "mode": "read", "session_id": session, "message_count": count}
        if not rows:
            return {"error": f"there is no session {session[:80]!r} with messages; a hit names its session_id"}
    else:
        rows = scope.state.around(session, asked.message, asked.window)
        head = {"success": True, "mode": "scroll", "session_id": session, "around_message_id": asked.message}
        anchor = next((row for row in rows if row.id == asked.message), None)
        if anchor is None:
            return {"error": f"message {asked.message} is not one of session {session[:80]!r}"}
        if anchor.live and session == scope.session:
            return {"error": f"message {asked.message} is in your window already"}
    messages: list[Message] = shown(rows, asked.message, scope.now)
    return {**head, "messages": messages}
