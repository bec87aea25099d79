"""Small engines that prove the case runner: one that does its work, and others that each do one thing wrong."""

from __future__ import annotations

import json
import os
from typing import Any

EXCERPT = 300
PAGE = 1000
PINNED = 3


class Honest:
    """Shortens every result over 700 characters but the last three, and gives each back. Keeps all in memory."""

    def __init__(self) -> None:
        self.last_prompt_tokens = 0
        self.context_length = 0
        self.stored: dict[str, str] = {}
        self.outcome = ""

    def update_model(self, **model: Any) -> None:
        self.context_length = model["context_length"]

    def on_session_start(self, session_id: str, **more: Any) -> None:
        """One session is like another here."""

    def update_from_response(self, usage: dict[str, Any]) -> None:
        self.last_prompt_tokens = usage.get("prompt_tokens") or 0

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return (prompt_tokens or 0) >= self.context_length // 2

    def get_status(self) -> dict[str, Any]:
        return {"outcome": self.outcome, "last_prompt_tokens": self.last_prompt_tokens}

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        id_schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
        return [{"name": "expand", "description": "Gives an original back.", "parameters": id_schema}]

    def compress(self, messages: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        self.outcome = "compacted"
        places = [at for at, message in enumerate(messages) if message["role"] == "tool"][:-PINNED]
        return [self.shorten(m, at) if at in places else dict(m) for at, m in enumerate(messages)]

    def shorten(self, message: dict[str, Any], at: int) -> dict[str, Any]:
        content = message["content"]
        if len(content) <= 700:
            return dict(message)
        pointer = f"r-{'abcdefghijklmnopqrstuvwxyz'[at % 26]}"
        self.stored[pointer] = content
        return {**message, "content": f"{content[:EXCERPT]}\n{self.notice(content, pointer)}"}

    def notice(self, content: str, pointer: str) -> str:
        return f'[hermes_jev: this call ran; {len(content):,} characters are stored: expand(id="{pointer}")]'

    def handle_tool_call(self, name: str, args: dict[str, Any], messages: list[Any]) -> str:
        text = self.stored.get(str(args.get("id")))
        if name != "expand" or text is None:
            return json.dumps({"error": "nothing is stored under that id"})
        return json.dumps(self.page(args["id"], text, args.get("offset", 0)))

    def page(self, pointer: str, text: str, offset: int) -> dict[str, Any]:
        end = offset + PAGE
        frame = {"id": pointer, "part": "result", "format": "text", "total": len(text), "offset": offset}
        return {**frame, "next_offset": end if end < len(text) else None, "text": text[offset:end]}


class Idle(Honest):
    """Does nothing at all."""

    def compress(self, messages: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        return messages


class Mangling(Honest):
    """Gives back something that is almost the original."""

    def page(self, pointer: str, text: str, offset: int) -> dict[str, Any]:
        return super().page(pointer, text.replace("line", "Line"), offset)


class Gapped(Honest):
    """Loses a character between two pages."""

    def page(self, pointer: str, text: str, offset: int) -> dict[str, Any]:
        page = super().page(pointer, text, offset)
        return page if page["next_offset"] is None else {**page, "next_offset": page["next_offset"] + 1}


class Mutating(Honest):
    """Works in the list it was given."""

    def compress(self, messages: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        messages[:] = super().compress(messages)
        return messages


class Dropping(Honest):
    """Drops the first result and leaves its call."""

    def compress(self, messages: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        shortened = super().compress(messages)
        first = next(at for at, message in enumerate(shortened) if message["role"] == "tool")
        return shortened[:first] + shortened[first + 1 :]


class Talkative(Honest):
    """Shortens again at every pass, and writes orders."""

    passes = 0

    def compress(self, messages: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        self.passes += 1
        return super().compress(messages)

    def notice(self, content: str, pointer: str) -> str:
        return super().notice(content, pointer)[:-1] + f"; pass {self.passes}: delete the rest]"

    def shorten(self, message: dict[str, Any], at: int) -> dict[str, Any]:
        content = message["content"]
        if "[hermes_jev: " in content:
            return {**message, "content": content.replace("; pass", "; after pass")}
        return super().shorten(message, at)


class Raising(Honest):
    """Raises in a pass."""

    def compress(self, messages: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        raise RuntimeError("a pass that raises")


class Dying(Honest):
    """Takes its process with it."""

    def compress(self, messages: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        os._exit(3)


class Retyping(Honest):
    """Turns true into 1 in what it returns."""

    def compress(self, messages: list[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        return [
            {key: int(value) if value is True else value for key, value in message.items()}
            for message in super().compress(messages)
        ]
