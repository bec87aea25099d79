"""`/jev` in a conversation: how things stand, keep an original whole, hand the work over."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

from . import handoff
from .errors import InputError, JevError, StoreError
from .history import read_session, source_of
from .judge import spent_today
from .receipts import Receipt
from .redact import RedactionError
from .store.keeps import keep_whole, kept_whole, let_go
from .store.values import is_pointer_id
from .surroundings import Surroundings

logger = logging.getLogger(__name__)

SUMMARY = "Context compaction: status, keep an original whole, write a handoff"
HINT = "[keep ID | unkeep ID | handoff [SESSION]]"
USAGE = (
    "/jev: how things stand; /jev keep ID: put an original back with the next pass and never cut it again; "
    "/jev unkeep ID: allow that again; /jev handoff [SESSION]: hand this conversation over"
)

HERE = ("cli", "tui", "acp", "desktop")
"""Sources of sessions of the person at this machine. What the host says of the session at hand can be another chat's
in a gateway, where a session has to be named."""

_WRITER_TOKENS = 8_000
_WRITER_TIMEOUT_S = 180.0


async def answer(raw: str, around: Surroundings, ctx: Any) -> str:
    """What is shown for `/jev RAW`. Never raises; runs beside the event loop, since stores and models are slow."""
    return await asyncio.to_thread(_answer, raw, around, ctx)


def _answer(raw: str, around: Surroundings, ctx: Any) -> str:
    word, _, rest = raw.strip().partition(" ")
    try:
        if word in ("", "status"):
            return _status(around)
        if word in ("keep", "unkeep"):
            return _keep(rest.strip(), around, off=word == "unkeep")
        if word == "handoff":
            return _handoff(rest.strip(), around, ctx)
    except JevError as error:
        return f"/jev {word}: {error}"
    return f"/jev has no {word[:40]!r}. {USAGE}"


def _status(around: Surroundings) -> str:
    found, store = around.resolved(), around.store()
    settings = found.settings
    mode = settings.mode if settings.enabled else "off"
    lines = [f"hermes_jev: {mode}; judge {around.judge(settings).name}; ${spent_today(store):.4f} spent today"]
    try:
        newest = store.receipts(limit=1)
        kept = sorted(kept_whole(store))
        size = store.path.stat().st_size if store.path.exists() else 0
        lines.append(f"store: {store.folder}, {size:,} bytes")
        lines.append(f"last pass: {Receipt.model_validate_json(newest[0].body).summary()}" if newest else "no pass yet")
        lines += [f"kept whole: {', '.join(kept[:20])}"] if kept else []
    except (StoreError, ValueError, OSError) as error:
        lines.append(f"the store cannot be read: {error}")
    lines += [f"problem: {problem}" for problem in found.problems]
    return "\n".join([*lines, USAGE])


def _keep(pointer: str, around: Surroundings, *, off: bool) -> str:
    if not is_pointer_id(pointer):
        raise InputError("an id like r-abcdefghij is needed, as a line that starts with [hermes_jev: names it")
    store = around.store()
    if off:
        return f"{pointer} may be cut again." if let_go(store, [pointer]) else f"{pointer} was not kept whole."
    original = store.get(pointer, None)
    new = keep_whole(store, pointer)
    size = len(original.result) if isinstance(original.result, str) else len(str(original.result))
    what = f"{pointer} ({original.tool[:60]}, {size:,} characters)"
    if not new:
        return f"{what} is kept whole already."
    return f"{what} goes back with the next pass (/compress starts one) and is not cut again while the window holds it."


def _handoff(named: str, around: Surroundings, ctx: Any) -> str:
    session = named or around.session()
    if not named and source_of(around.home(), session) not in HERE:
        raise InputError("which session is not known here: /jev handoff SESSION (`hermes sessions list` names them)")
    settings = around.settings()
    messages: list[Any] = list(read_session(around.home(), session))
    found = handoff.material_of(messages, os.environ, settings, around.judge(settings), gate=around.gate())
    try:
        request = handoff.request(handoff.safe(found.text, around.gate()), session)
    except RedactionError as error:
        raise InputError(f"the dialogue cannot be made safe to hand on: {error}") from None
    written = _written(request, ctx)
    text = written or f"No model wrote it; this is the request for one:\n\n{request}"
    return f"{text}\n\n({found.note})" if found.note else text


def _written(request: str, ctx: Any) -> str:
    """What the host's own model writes; empty when there is none."""
    try:
        reply = ctx.llm.complete(
            [{"role": "user", "content": request}],
            max_tokens=_WRITER_TOKENS,
            timeout=_WRITER_TIMEOUT_S,
            purpose="handoff",
        )
        return str(reply.text or "").strip()
    except Exception as error:  # noqa: BLE001 - the host's model may fail in any way, and the request can be shown instead
        logger.warning("hermes_jev: the host's model wrote no handoff: %s", type(error).__name__)
        return ""
