"""Decide again from what is on record: another threshold or another budget, at no cost.

Receipts hold no content, so what a cut would leave is known for cuts that were made and estimated for others; what
has no score on record is said, never invented.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from .budget import Unit, spend
from .compact import DOUBT
from .errors import InputError
from .receipts import DecisionRecord, Receipt
from .store import Store
from .turn_receipts import TurnReceipt, TurnRecord

AnyReceipt = Receipt | TurnReceipt
M = TypeVar("M", bound=BaseModel)

_SHORTENED, _REMOVED = 480, 150
"""Characters that a shortened and a removed result leave, where the receipts show none."""


def read_receipts(path: str) -> list[AnyReceipt]:
    """The receipts of a file of JSON lines or of a store's folder, oldest first. Raises InputError that names the
    file, the line and what is wrong, StoreError for a store that cannot be read."""
    return [_receipt(row, where) for row, where in _rows(path)]


def read_scores(path: str) -> dict[str, dict[str, Any]]:
    """The newest recorded scores by content hash, of receipts or of what `jev score --json` printed. Raises as
    `read_receipts`."""
    receipts: list[AnyReceipt] = []
    for row, where in _rows(path):
        if isinstance(row, Mapping) and "decisions" not in row and "unit" in row:
            record = _checked(TurnRecord, row, where)
            receipts.append(TurnReceipt(run_id="", min_confidence=0.0, target_bytes=0, decisions=(record,)))
        else:
            receipts.append(_receipt(row, where))
    return scores_of(receipts)


def _rows(path: str) -> Iterator[tuple[Any, str]]:
    """What stands in each line or row, and where that is."""
    place = Path(path).expanduser()
    if place.is_dir():
        stored = reversed(Store(place).receipts(limit=100_000))
        yield from ((_parsed(row.body, f"{path}: receipt {row.id}"), f"{path}: receipt {row.id}") for row in stored)
        return
    try:
        text = place.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{path}: line {number}"
            yield _parsed(line, where), where


def _parsed(body: str, where: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise InputError(f"{where}: not JSON") from None


def _receipt(row: Any, where: str) -> AnyReceipt:
    if isinstance(row, Mapping) and row.get("way") == "compact":
        return _checked(TurnReceipt, row, where)
    return _checked(Receipt, row, where)


def _checked(kind: type[M], row: Any, where: str) -> M:
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in detail["loc"])
        raise InputError(f"{where}: no receipt: {name}: {detail['msg']}") from None


@dataclass(frozen=True)
class Replayed:
    """One pass or run decided again. Sizes are characters for a pass, UTF-8 bytes for a budget; `missing` counts what
    has no score on record and so keeps its fate."""

    kept: int
    shortened: int
    removed: int
    size_before: int
    size_after: int
    changed: int
    missing: int
    estimated: int = 0


def decide_again(receipt: Receipt, threshold: float) -> Replayed:
    """A pass with `threshold` on both questions. Only what the judge's scores decided is decided again; a cut that was
    not made then is estimated to leave what such cuts left in this receipt."""
    left = left_by(receipt)
    fates: list[str] = []
    size = changed = missing = estimated = 0
    for decision in receipt.decisions:
        fate = _fate(decision, threshold)
        missing += decision.output is None
        changed += fate != decision.action
        if fate == decision.action:
            size += decision.chars_after
        elif fate == "keep":
            size += decision.chars_before
        else:
            size += min(decision.chars_before, left[fate])
            estimated += 1
        fates.append(fate)
    whole = receipt.chars_before - sum(decision.chars_before for decision in receipt.decisions)
    return Replayed(
        kept=fates.count("keep"),
        shortened=fates.count("truncate"),
        removed=fates.count("remove"),
        size_before=receipt.chars_before,
        size_after=whole + size,
        changed=changed,
        missing=missing,
        estimated=estimated,
    )


def left_by(receipt: Receipt) -> dict[str, int]:
    """Characters that a cut leaves, by action: what such cuts left in this receipt, else what they usually leave."""
    return {
        action: round(median([d.chars_after for d in receipt.decisions if d.action == action and d.pointer] or [usual]))
        for action, usual in (("truncate", _SHORTENED), ("remove", _REMOVED))
    }


def _fate(decision: DecisionRecord, threshold: float) -> str:
    if decision.output is None:
        return decision.action
    if decision.output >= threshold:
        return "keep"
    return "truncate" if decision.call is None or decision.call >= threshold else "remove"


def spend_again(receipt: TurnReceipt, target_bytes: int | None = None, min_confidence: float | None = None) -> Replayed:
    """A run with another budget or another gate."""
    gate = receipt.min_confidence if min_confidence is None else min_confidence
    records = receipt.decisions
    groups: dict[int, list[TurnRecord]] = {}
    for record in records:
        groups.setdefault(record.unit, []).append(record)
    units = [
        Unit(
            members=tuple(record.index for record in group),
            size=sum(record.size for record in group),
            value=max((_worth(record, gate) for record in group), default=0.0),
            protected=group[0].protected,
        )
        for group in groups.values()
    ]
    kept, _ = spend(units, receipt.target_bytes if target_bytes is None else target_bytes)
    return Replayed(
        kept=len(kept),
        shortened=0,
        removed=len(records) - len(kept),
        size_before=sum(record.size for record in records),
        size_after=sum(record.size for record in records if record.index in kept),
        changed=sum(1 for record in records if (record.index in kept) != (record.action == "keep")),
        missing=sum(1 for record in records if record.raw is None and not record.protected),
    )


def _worth(record: TurnRecord, gate: float) -> float:
    if record.protected:
        return 1.0
    if record.raw is None:
        return record.value or 0.0
    unsure = record.confidence is not None and record.confidence < gate
    return max(record.raw, DOUBT) if unsure else record.raw


def scores_of(receipts: Sequence[AnyReceipt]) -> dict[str, dict[str, Any]]:
    """The newest recorded scores by content hash: {"call", "output"} of a call, {"raw", "confidence"} of a message."""
    found: dict[str, dict[str, Any]] = {}
    for receipt in receipts:
        for decision in receipt.decisions:
            if isinstance(decision, DecisionRecord):
                if decision.output is not None:
                    found[decision.content] = {"call": decision.call, "output": decision.output}
            elif decision.raw is not None:
                found[decision.content] = {"raw": decision.raw, "confidence": decision.confidence}
    return found
