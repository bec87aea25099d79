"""What the human wants now: the question of relevance is asked against it.

Hosts write messages in the user's role too (notices, snapshots, summaries), slash commands are not requests, and
"go on" means the request before it. Those are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from . import notice
from .tokens import content_text
from .transcript import Message, Transcript
from .wrapping import unwrap

GOAL_CHARS = 2_000
ACTIONS = 3

_HOST_TEXT = re.compile(
    r"\s*(?:\[(?:system(?: not(?:e|ice))?\s*:|(?-i:SYSTEM)\]|context compaction|context summary|your active task list"
    r"|async delegation|planning state|runtime note|prior context|important: background)|<system-reminder)",
    re.I,
)
_FOLLOW_UP = re.compile(
    r"\W*(?:(?:ok(?:ay)?|yes|yep|sure|please|thanks|thank you|good|great|fine|now)\W+)*"
    r"(?:go on|go ahead|continue|carry on|proceed|keep going|next(?: step)?|do it|resume|ok(?:ay)?|yes|yep|sure"
    r"|thanks|thank you|weiter|continua|sigue|继续|続けて)?\W*(?:please)?\W*",
    re.I,
)
_FOLLOW_UP_CHARS = 80
_COMMAND = re.compile(
    r"/(?!(?:app|bin|boot|data|dev|etc|home|lib|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var)\b)"
    r"[a-z][\w:-]*(?:\s|$)",
    re.I,
)
_USER_MARK = re.compile(r"\[/?OUT-OF-BAND USER MESSAGE[^\]]*\]")


def goal_of(transcript: Transcript, task: str | None = None) -> str:
    """The newest real request, whole; `task` goes before it. Who sends it redacts it first and shortens it then."""
    request = next((text for text in _requests(transcript.messages)), "")
    parts = [part for part in ((task or "").strip(), request) if part]
    return "\n\n".join(parts)


def actions_of(transcript: Transcript) -> tuple[str, ...]:
    """What the assistant said and called last, oldest first."""
    found: list[str] = []
    for message in reversed(transcript.messages):
        if message.get("role") != "assistant":
            continue
        calls = message.get("tool_calls")
        words = [content_text(message.get("content"))]
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                words.append(f"{function.get('name', '')} {function.get('arguments', '')}")
        if text := " ".join(word for word in words if word).strip():
            found.append(text[:GOAL_CHARS])
        if len(found) == ACTIONS:
            break
    return tuple(reversed(found))


def _requests(messages: Sequence[Message]) -> Sequence[str]:
    """The human's real requests, newest first; when there are none, what stands in the user's role at all."""
    found: list[str] = []
    spoken: list[str] = []
    for message in reversed(messages):
        role = message.get("role")
        if role == "user":
            text = content_text(message.get("content")).strip()
        elif role == "tool":
            text = words_in(content_text(message.get("content"))).strip()
        else:
            continue
        text = _USER_MARK.sub("", text).strip()
        if not text:
            continue
        spoken.append(text)
        if not _HOST_TEXT.match(text) and not _COMMAND.match(text) and not _is_follow_up(text):
            found.append(text)
            break
    return found or spoken[:1]


def words_in(text: str) -> str:
    """The user's words in a tool result; when it was cut they stand before the notice, later ones after it."""
    cut = notice.cut_in(text)
    if cut is None:
        return unwrap(text).user_words
    return cut.words or unwrap(cut.text.rpartition("\n")[0]).user_words


def _is_follow_up(text: str) -> bool:
    return len(text) <= _FOLLOW_UP_CHARS and _FOLLOW_UP.fullmatch(text) is not None


def shorten(text: str, limit: int) -> str:
    """Head and tail of a text that is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]} … {text[-(limit - head - 3) :]}"
