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
    r"\s*(?:\[(?:system(?: not(?:e|ice))?\s*[:—]|(?-i:SYSTEM)\]|context compaction|context summary"
    r"|your active task list"
    r"|async delegation|planning state|runtime note|prior context|skills pruned|this response was interrupted"
    r"|important: (?:background|\d+ background|mcp servers|the following skill))"
    r"|<(?:system-reminder|memory-context)|continue from the compressed conversation context above\."
    r"|you've reached the maximum number of tool-calling iterations"
    r"|you just executed tool calls but returned an empty)",
    re.I,
)
# Notes that hosts put before the user's own words, each a bracket that ends its line, with a blank line or none after.
_NOTE = re.compile(
    r"\s*\[(?:system(?: note)?\s*:|note:|voice |the user sent|the user attached|user attached|user sent|image attached"
    r"|session was just handed off|runtime note|important: you are running as a scheduled)[^\n]*\][ \t]*(?:\r?\n|\Z)",
    re.I,
)
_STANDING_GOAL = re.compile(r"\s*\[Continuing toward your standing goal[^\]]*\]\s*Goal: (.+?)(?:\n\n|\Z)", re.S)
_SKILL = re.compile(r"\s*\[IMPORTANT: The user (?:has invoked|launched)[^\n]*")
_SKILL_WORDS = "The user has provided the following instruction alongside the skill invocation: "
_BUNDLE_WORDS = "\nUser instruction: "
_FOLLOW_UP = re.compile(
    r"\W*(?:(?:ok(?:ay)?|yes|yep|sure|please|thanks|thank you|good|great|fine|now)\W+)*"
    r"(?:go on|go ahead|continue|carry on|proceed|keep going|next(?: step)?|do it|resume|ok(?:ay)?|yes|yep|sure"
    r"|thanks|thank you|go for it|sounds good|looks good|lgtm|approved|try again|weiter(?: so)?|mach weiter|continua"
    r"|sigue|continue[rz]|продолжай(?:те)?|继续|繼續|好的?|続けて|続行|はい|계속)?\W*(?:please)?\W*",
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


def request_places(transcript: Transcript) -> tuple[int, ...]:
    """Positions of the messages that hold a real request, oldest first."""
    messages = transcript.messages
    return tuple(at for at, message in enumerate(messages) if _is_request(_asked_in(_said(message))))


def _requests(messages: Sequence[Message]) -> Sequence[str]:
    """The human's newest real request; when there is none, what stands in the user's role at all."""
    spoken: list[str] = []
    for message in reversed(messages):
        text = _said(message)
        if not text:
            continue
        spoken.append(text)
        asked = _asked_in(text)
        if _is_request(asked):
            return [asked]
    return spoken[:1]


def _said(message: Message) -> str:
    """What a message holds in the user's name."""
    role = message.get("role")
    if role == "user":
        text = content_text(message.get("content")).strip()
    elif role == "tool":
        text = words_in(content_text(message.get("content"))).strip()
    else:
        return ""
    return _USER_MARK.sub("", text).strip()


def _asked_in(text: str) -> str:
    """The human's own words in what a host wrote around them; empty when there are none."""
    if goal := _STANDING_GOAL.match(text):
        return goal[1].strip()
    if skill := _SKILL.match(text):
        return _asked_of_skill(text, skill[0])
    while (note := _NOTE.match(text)) is not None:
        text = text[note.end() :].strip()
    return "" if _HOST_TEXT.match(text) else text


def _asked_of_skill(text: str, first_line: str) -> str:
    """The instruction given with a skill, which may quote the mark before it; else that the skill was called."""
    _, mark, words = text.rpartition(_SKILL_WORDS)
    if not mark:
        _, mark, words = text.partition(_BUNDLE_WORDS)
        words = words.partition("\n\n")[0]
    return words.strip() if mark and words.strip() else first_line.strip()


def _is_request(text: str) -> bool:
    return bool(text) and not _COMMAND.match(text) and not _is_follow_up(text)


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
