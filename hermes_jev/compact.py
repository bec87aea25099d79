"""Compact: a transcript within a byte budget, most valuable messages verbatim, one digest for the rest.

Read `compact` first: segment, protect, score, gate, select, digest.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from .budget import DIGEST_SHARE, Unit, digest_of, digest_place, spend
from .effective import chosen_settings
from .egress import Gate
from .errors import ConfigError
from .inputs import require_messages
from .judge import Judge, judge_of, watch_of
from .judge.endpoints import PRESETS
from .judge.measures import Value, value_of
from .settings import Settings
from .stores import open_store
from .turn_asking import Asked, Plan, Progress, ask_turns
from .turn_pins import Pins
from .turn_questions import COMPACT_CONTEXT, GENERIC_TASK, LEVELS, value_question
from .turn_receipts import TurnReceipt, TurnRecord, write_receipt
from .turns import SYSTEM, Turn, turns_of, units_of

DOUBT = 0.75
"""An unsure answer counts for at least this: above all that is clearly unimportant, below what is clearly critical."""

_REQUEST_CHARS = 80_000


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is needed, not true or false")
    return value


Bytes = Annotated[int, BeforeValidator(_no_bool), Field(ge=0)]
Positive = Annotated[int, BeforeValidator(_no_bool), Field(ge=1)]
Amount = Annotated[float, BeforeValidator(_no_bool), Field(ge=0, allow_inf_nan=False)]


class CompactOptions(BaseModel):
    """The options of a budget. Frozen; the sentence under each field says what it does and its unit."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    target_bytes: Bytes = 262_144
    """UTF-8 bytes that the messages may take together, the digest included."""
    keep_recent: Bytes = 4
    """How many of the last messages always stay."""
    batch_size: Annotated[int, BeforeValidator(_no_bool), Field(ge=1, le=64)] = 8
    """Messages asked about in one request."""
    min_confidence: Annotated[float, BeforeValidator(_no_bool), Field(ge=0, le=1, allow_inf_nan=False)] = 0.35
    """Below this confidence an answer is doubt, and doubt leans to keeping."""
    summary_bytes: Bytes = 1024
    """The longest digest, in UTF-8 bytes; 0: no digest."""
    summary_role: Literal["system", "developer", "user", "assistant"] = "system"
    """The role of the digest's message."""
    state_message_bytes: Positive = 2000
    """UTF-8 bytes of a message that the judge sees."""
    pin_patterns: tuple[str, ...] = ()
    """Regular expressions beside the built-in ones; a message that one matches always stays."""
    enable_pinning: bool = True
    """Whether patterns protect messages at all."""
    pin_flags: str = "i"
    """Flags of the patterns; empty: case counts."""
    endpoint: str | None = None
    """Where the judge is served; without it the setting `base_url`."""
    api_key: str | None = Field(default=None, repr=False)
    """The judge's key; without it the environment's."""
    timeout_s: Annotated[float, BeforeValidator(_no_bool), Field(gt=0, le=600, allow_inf_nan=False)] = 15.0
    """Seconds one request may take."""
    levels: tuple[str, ...] = LEVELS
    """Names of the levels, from low to high, two to ten."""
    price_per_million_tokens: Amount = 0.042
    """US dollars, where the service does not say what it cost."""
    receipt_path: str | None = None
    """A file to which one line of JSON a run is appended; without it HERMES_JEV_RECEIPT_PATH, and without that none."""
    task: str | None = None
    """What the work is about; without it, going on with it."""
    run_id: str | None = None
    """The run's name in the receipt; without it a new one."""

    @field_validator("levels")
    @classmethod
    def _levels(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not 2 <= len(value) <= 10 or len(set(value)) != len(value) or not all(name.strip() for name in value):
            raise ValueError("two to ten different names are needed")
        return value


class Compacted(NamedTuple):
    """`messages` is the very list that was given when it fits already; else survivors are the same objects. `stats`
    is plain data; `receipts` has one record a message, empty when nothing was done."""

    messages: list[Any]
    stats: dict[str, Any]
    receipts: tuple[TurnRecord, ...]


def compact(
    messages: list[Any],
    judge: str | Judge = "auto",
    target_bytes: int = 262_144,
    task: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    gate: Gate | None = None,
    progress: Progress | None = None,
    always: bool = False,
    **options: Any,
) -> Compacted:
    """Fit a list of chat messages into `target_bytes`.

    `options` are the other fields of CompactOptions. With `always` messages are scored although they fit. Raises
    ConfigError for options and settings and InputError for a list that is not made of messages; a failing judge or
    receipt file never raises.
    """
    chosen = chosen_settings(settings, os.environ)
    wanted = options_of({**options, "target_bytes": target_bytes, "task": task})
    require_messages(messages)
    turns = turns_of(messages)
    total = sum(turn.size for turn in turns)
    pins = Pins(wanted.pin_patterns, wanted.pin_flags)
    if total <= wanted.target_bytes and not always:
        return Compacted(messages, _stats(wanted, turns, messages, Asked(), total), ())
    groups = units_of(messages)
    protected = _protected(turns, wanted, pins)
    fixed = {index for group in groups if any(index in protected for index in group) for index in group}
    open_ = [turn for turn in turns if turn.index not in fixed]
    asked = _ask(open_, _judge(judge, chosen, wanted), gate or Gate(), wanted, chosen, progress)
    values = {turn.index: _value(turn, asked, wanted, len(turns)) for turn in open_}
    units = [_unit(group, turns, values, protected=group[0] in fixed) for group in groups]
    kept, left = spend(units, wanted.target_bytes)
    dropped = [turn for turn in turns if turn.index not in kept]
    worth = {index: value.value for index, value in values.items()}
    text = digest_of(dropped, worth, min(wanted.summary_bytes, max(0, left) // DIGEST_SHARE))
    after = _after(messages, kept, dropped, units, text, wanted)
    first = {index: group[0] for group in groups for index in group}
    records = tuple(_record(turn, first[turn.index], protected, fixed, values, kept) for turn in turns)
    stats = {
        **_stats(wanted, turns, after, asked, sum(turns[index].size for index in kept) + _bytes(text)),
        **_fates(records, values, text, left),
    }
    stats["receipt_error"] = _file_receipt(wanted, stats, records)
    return Compacted(after, stats, records)


def _unit(group: tuple[int, ...], turns: Sequence[Turn], values: Mapping[int, Value], *, protected: bool) -> Unit:
    """A unit is worth what its most valuable turn is."""
    worth = max((values[index].value for index in group if index in values), default=1.0)
    return Unit(group, sum(turns[index].size for index in group), worth, protected)


async def acompact(
    messages: list[Any],
    judge: str | Judge = "auto",
    target_bytes: int = 262_144,
    task: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    **options: Any,
) -> Compacted:
    """`compact` for a running event loop, which stays free meanwhile."""
    return await asyncio.to_thread(compact, messages, judge, target_bytes, task, settings, **options)


def options_of(given: Mapping[str, Any]) -> CompactOptions:
    """Checked options. Raises ConfigError that names the option and what is wrong with it."""
    try:
        return CompactOptions.model_validate(given)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in detail["loc"])
        raise ConfigError(f"{name}: {detail['msg'].removeprefix('Value error, ')}") from None


def _judge(judge: str | Judge, settings: Settings, options: CompactOptions) -> Judge:
    environment = dict(os.environ)
    if options.endpoint:
        settings = settings.model_copy(update={"base_url": options.endpoint})
    if options.api_key:
        environment.update(dict.fromkeys(PRESETS[settings.endpoint].key_variables[:1], options.api_key))
    return judge_of(judge, settings.model_copy(update={"request_timeout_s": options.timeout_s}), environment)


def _protected(turns: Sequence[Turn], options: CompactOptions, pins: Pins) -> dict[int, str]:
    """Why a turn always stays, by index."""
    found: dict[int, str] = {}
    for turn in turns:
        if turn.role in SYSTEM:
            found[turn.index] = "system"
        elif turn.index >= len(turns) - options.keep_recent:
            found[turn.index] = "recent"
        elif options.enable_pinning and (name := pins.of(turn.shown)):
            found[turn.index] = f"pinned: {name}"
    return found


def _ask(
    turns: Sequence[Turn],
    judge: Judge,
    gate: Gate,
    options: CompactOptions,
    settings: Settings,
    progress: Progress | None,
) -> Asked:
    if not turns:
        return Asked(judge=judge.name, model=judge.version)
    widest = max(turn.size / max(1, len(turn.shown)) for turn in turns)
    seen = max(1, int(options.state_message_bytes / max(1.0, widest)))
    plan = Plan(
        question=lambda index: value_question(index, options.levels),
        context=COMPACT_CONTEXT,
        task=options.task or GENERIC_TASK,
        head=seen * 2 // 3 + seen % 3,
        tail=seen // 3,
        most=options.batch_size,
        characters=_REQUEST_CHARS,
        at_once=2 * settings.concurrency,
        # A round is two requests deep: each may take its time.
        deadline_s=2 * options.timeout_s,
        watch=watch_of(open_store(None, settings), settings.daily_cost_limit_usd),
        egress=settings.egress,
    )
    return ask_turns(turns, judge, gate, plan, progress)


def _value(turn: Turn, asked: Asked, options: CompactOptions, count: int) -> Value:
    """The judge's value, raised when it is unsure; by recency where there is none."""
    answer = asked.by_index.get(turn.index)
    value = value_of(answer, options.levels) if answer is not None else None
    if value is None:
        return Value(turn.index / max(1, count), None, "recency")
    if value.confidence is not None and value.confidence < options.min_confidence:
        return value._replace(value=max(value.value, DOUBT), source="judge")
    return value


def _after(
    messages: list[Any],
    kept: set[int],
    dropped: Sequence[Turn],
    units: Sequence[Unit],
    text: str,
    options: CompactOptions,
) -> list[Any]:
    if not dropped:
        return messages
    after = [message for index, message in enumerate(messages) if index in kept]
    if text:
        place = digest_place([turn.index for turn in dropped], units, kept)
        after.insert(sum(1 for index in kept if index < place), {"role": options.summary_role, "content": text})
    return after


def _record(
    turn: Turn, unit: int, protected: Mapping[int, str], fixed: set[int], values: Mapping[int, Value], kept: set[int]
) -> TurnRecord:
    value = values.get(turn.index)
    if turn.index in protected:
        reason = protected[turn.index]
    elif turn.index in fixed:
        reason = "with its call" if turn.role in ("tool", "function") else "with its results"
    elif value is not None and value.source == "recency":
        reason = "not judged: by recency"
    else:
        reason = "value"
    return TurnRecord(
        index=turn.index,
        role=turn.role,
        content=turn.content,
        size=turn.size,
        unit=unit,
        protected=turn.index in fixed,
        value=value.value if value else None,
        raw=value.raw if value else None,
        confidence=value.confidence if value else None,
        reason=reason,
        action="keep" if turn.index in kept else "drop",
    )


def _stats(
    options: CompactOptions, turns: Sequence[Turn], after: Sequence[Any], asked: Asked, size: int
) -> dict[str, Any]:
    cost = asked.cost or asked.input_tokens * options.price_per_million_tokens / 1_000_000
    return {
        "run_id": options.run_id or uuid.uuid4().hex,
        "messages_before": len(turns),
        "messages_after": len(after),
        "bytes_before": sum(turn.size for turn in turns),
        "bytes_after": size,
        "target_bytes": options.target_bytes,
        "kept": len(turns),
        "dropped": 0,
        "protected": 0,
        "pinned": 0,
        "scored": 0,
        "unscored": 0,
        "digest_bytes": 0,
        "over_budget_bytes": 0,
        "degraded": False,
        "judge": asked.judge,
        "model": asked.model,
        "requests": asked.requests,
        "failed_requests": asked.failed,
        "unsent": len(asked.unsent),
        "errors": list(asked.errors),
        "input_tokens": asked.input_tokens,
        "cost_usd": round(cost, 8),
        "latency_ms": asked.latency_ms,
        "receipt_error": "",
    }


def _fates(records: Sequence[TurnRecord], values: Mapping[int, Value], text: str, left: int) -> dict[str, int | bool]:
    """What became of the messages, in numbers."""
    kept = sum(1 for record in records if record.action == "keep")
    unscored = sum(1 for value in values.values() if value.source == "recency")
    return {
        "kept": kept,
        "dropped": len(records) - kept,
        "protected": len(records) - len(values),
        "pinned": sum(1 for record in records if record.reason.startswith("pinned")),
        "scored": len(values) - unscored,
        "unscored": unscored,
        "digest_bytes": _bytes(text),
        "over_budget_bytes": max(0, -left),
        "degraded": unscored > 0,
    }


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _file_receipt(options: CompactOptions, stats: Mapping[str, Any], records: tuple[TurnRecord, ...]) -> str:
    """Why the receipt could not be written, empty when it was or none was asked for."""
    path = options.receipt_path or os.environ.get("HERMES_JEV_RECEIPT_PATH", "").strip()
    if not path:
        return ""
    receipt = TurnReceipt(
        way="compact",
        run_id=stats["run_id"],
        judge=stats["judge"],
        model=stats["model"],
        min_confidence=options.min_confidence,
        target_bytes=options.target_bytes,
        stats={name: value for name, value in stats.items() if isinstance(value, int | float | str)},
        decisions=records,
    )
    return write_receipt(path, receipt)
