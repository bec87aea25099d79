"""Receipts of a byte budget: one line of JSON a run, one record a message, without a word of content."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict


class TurnRecord(BaseModel):
    """One message. `content` is the SHA-256 of role, text and calls; `size` is UTF-8 bytes; `unit` is the index of the
    first message it lives or dies with; `raw` is the judge's value in [0, 1] and `value` the one it was ranked by
    (raised when the judge was unsure)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    index: int
    role: str
    content: str
    size: int
    unit: int
    protected: bool = False
    value: float | None = None
    raw: float | None = None
    confidence: float | None = None
    reason: str
    action: Literal["keep", "drop"]


class TurnReceipt(BaseModel):
    """One run. `stats` are its figures."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    way: Literal["compact"] = "compact"
    run_id: str
    judge: str = ""
    model: str = ""
    min_confidence: float
    target_bytes: int
    stats: dict[str, int | float | str] = {}
    decisions: tuple[TurnRecord, ...] = ()


def write_receipt(path: str, receipt: TurnReceipt) -> str:
    """Append one line; returns why it could not be written, else an empty text. A new file is the user's alone."""
    try:
        file = Path(path).expanduser()
        file.touch(mode=0o600)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(receipt.model_dump_json() + "\n")
    except OSError as error:
        return f"{path}: {error.strerror}"
    except RuntimeError:
        return f"{path}: the home folder it names does not exist"
    return ""
