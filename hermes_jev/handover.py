"""Messages as the host takes them back."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

_OTHER_COPIES = (
    *("api_content", "anthropic_content_blocks", "reasoning_details"),
    *("codex_reasoning_items", "codex_message_items"),
)
"""Fields in which hosts keep what a message said or called a second time, to send it again as the provider wrote it."""


def for_host(before: Sequence[Any], after: Sequence[Any]) -> list[dict[str, Any]]:
    """New messages without the host's private keys: with them it would take a row for one it already stored. Where
    words or inputs were shortened, the host's other copies of them go too, or it would send those."""
    same = set(map(id, before))
    return [_new(message, changed=id(message) not in same) for message in after]


def _new(message: Mapping[str, Any], *, changed: bool) -> dict[str, Any]:
    stale = _OTHER_COPIES if changed and message.get("role") != "tool" else ()
    return {key: copy.deepcopy(value) for key, value in message.items() if not key.startswith("_") and key not in stale}
