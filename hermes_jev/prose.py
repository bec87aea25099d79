"""A message of the user or the assistant, shortened in place: the last rung of the ladder and nothing else.

The start stays, and a notice as the last line says how long the message was and where it is stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from .goal import goal_of
from .notice import excerpt
from .settings import Settings
from .tokens import content_text, images_in
from .transcript import Transcript

_LINE = re.compile(
    r"\[hermes_jev: this message had (?P<size>[\d,]+) characters(?: and \d+ images?)?; the first (?P<above>[\d,]+) are "
    r'above, all is stored: expand\(id="(?P<id>r-[a-z2-7]+)"\)\]'
)


class MessageNotice(NamedTuple):
    """A notice as read from a message. `whole` says that what stands above it has the length it names."""

    id: str
    whole: bool


def shortened(content: Any, pointer: str, excerpt_chars: int) -> str:
    """What stands for the content of a message."""
    text = content_text(content)
    above = excerpt(text, excerpt_chars)
    images = images_in(content)
    seen = f" and {images} image{'s' if images > 1 else ''}" if images else ""
    return (
        f"{above}\n[hermes_jev: this message had {len(text):,} characters{seen}; the first {len(above):,} are above, "
        f'all is stored: expand(id="{pointer}")]'
    )


def read(content: object) -> MessageNotice | None:
    """The notice that ends a message, if one does by its form; only the store knows which ids were issued."""
    if not isinstance(content, str):
        return None
    above, _, line = content.rpartition("\n")
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    return MessageNotice(found["id"], len(above) == int(found["above"].replace(",", "")))


def old_texts(transcript: Transcript, settings: Settings) -> list[int]:
    """Positions of messages that the last rung may shorten, in its order: the assistant's from the oldest on, then the
    user's. Never the newest assistant message, the newest user message or the newest request."""
    messages = transcript.messages
    users = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    request = goal_of(transcript)
    spared = {transcript.newest_assistant, *users[-1:]}
    spared |= {at for at in users if request and request in content_text(messages[at].get("content"))}
    found = [at for at, message in enumerate(messages) if at not in spared and _is_long(message, settings)]
    return sorted(found, key=lambda at: (messages[at].get("role") == "user", at))


def _is_long(message: Mapping[str, Any], settings: Settings) -> bool:
    if message.get("role") not in ("assistant", "user"):
        return False
    content = message.get("content")
    return len(content_text(content)) > settings.pin_max_chars or images_in(content) > 0
