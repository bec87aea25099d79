"""Select: which turns a fixed size keeps whole, keeps the gist of, or drops.

One choice a turn: keep, summarize or drop. System turns and the last ones always stay; what was not judged is only
ever shortened, never dropped; and nothing is written anew: a gist is the start of the turn itself.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from .digest import Fate, digest
from .effective import chosen_settings
from .egress import Gate
from .errors import InputError
from .inputs import require_messages
from .judge import Answer, Judge, judge_of, watch_of
from .judge.answers import choice_confidence, likeliest
from .settings import Settings
from .stores import open_store
from .turn_asking import Asked, Plan, Progress, ask_turns
from .turn_questions import FATES, SELECT_CONTEXT, fate_question
from .turns import SYSTEM, Turn, turns_of

Status = Literal["ok", "partial", "fail_open"]

KEEP_LAST = 6
LIMIT = 24_000
DROP_CONFIDENCE = 0.7
"""Below this confidence a drop is a summarize."""

TURNS_PER_REQUEST = 40
REQUEST_CHARS = 40_000
END_CHARS = 350
"""A long turn is judged on so many first and last characters."""


@dataclass(frozen=True)
class Selected:
    """`fates` by index (as text), for every turn that is not empty; `unjudged` are indices left at summarize because
    nobody judged them. `status`: ok, partial (some were not judged) or fail_open (none was: use the plain transcript).
    `errors` are codes; `digest` has at most the asked-for characters."""

    status: Status
    fates: Mapping[str, Fate]
    counts: Mapping[str, int]
    unjudged: tuple[int, ...]
    jev_calls: int
    errors: tuple[str, ...]
    latency_ms: int
    judge: str
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {**asdict(self), "unjudged": list(self.unjudged), "errors": list(self.errors)}


def select(
    messages: list[Any],
    judge: str | Judge = "auto",
    keep_last: int = KEEP_LAST,
    limit: int = LIMIT,
    task: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    gate: Gate | None = None,
    progress: Progress | None = None,
) -> Selected:
    """Weigh each turn of a list of chat messages.

    `judge` is "auto", "jev", "lexical" or an object with the Judge protocol. `limit` is characters of the digest,
    `keep_last` turns that always stay. Raises ConfigError for settings and InputError for messages, `keep_last` or
    `limit` that cannot be used; a failing judge never raises.
    """
    chosen = chosen_settings(settings, os.environ)
    require_messages(messages)
    _require_count("keep_last", keep_last)
    _require_count("limit", limit)
    turns = [replace(turn, calls="") for turn in turns_of(messages) if turn.text.strip()]
    recent = {turn.index for turn in turns[max(0, len(turns) - keep_last) :]} if keep_last else set()
    open_ = [turn for turn in turns if turn.role not in SYSTEM and turn.index not in recent]
    asked = _ask(open_, judge_of(judge, chosen, os.environ), gate or Gate(), task or "", chosen, progress)
    fates: dict[int, Fate] = {turn.index: "keep" for turn in turns}
    unjudged: list[int] = []
    for turn in open_:
        answer = asked.by_index.get(turn.index)
        fate = _fate(answer) if answer is not None else None
        fates[turn.index] = fate or "summarize"
        if fate is None:
            unjudged.append(turn.index)
    return Selected(
        status=_status(len(open_), len(unjudged), len(asked.unsent)),
        fates={str(index): fate for index, fate in fates.items()},
        counts={"keep": 0, "summarize": 0, "drop": 0} | Counter(fates.values()),
        unjudged=tuple(unjudged),
        jev_calls=asked.requests,
        errors=asked.errors,
        latency_ms=asked.latency_ms,
        judge=asked.judge,
        digest=digest(turns, fates, limit),
    )


async def aselect(
    messages: list[Any],
    judge: str | Judge = "auto",
    keep_last: int = KEEP_LAST,
    limit: int = LIMIT,
    task: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
) -> Selected:
    """`select` for a running event loop, which stays free meanwhile."""
    return await asyncio.to_thread(select, messages, judge, keep_last, limit, task, settings)


def _ask(
    turns: Sequence[Turn], judge: Judge, gate: Gate, task: str, settings: Settings, progress: Progress | None
) -> Asked:
    plan = Plan(
        question=fate_question,
        context=SELECT_CONTEXT,
        task=task,
        head=END_CHARS,
        tail=END_CHARS,
        most=TURNS_PER_REQUEST,
        characters=REQUEST_CHARS,
        at_once=4 * settings.concurrency,
        deadline_s=settings.pass_deadline_s,
        watch=watch_of(open_store(None, settings), settings.daily_cost_limit_usd),
        egress=settings.egress,
        secrets_stay=True,
    )
    return ask_turns(turns, judge, gate, plan, progress)


def _fate(answer: Answer) -> Fate | None:
    """The likeliest fate; None when the answer names none. A drop that is not known to be sure is a summarize."""
    if answer.probabilities and (set(answer.probabilities) != set(FATES) or not any(answer.probabilities.values())):
        return None
    best = likeliest(answer)
    if best == "drop":
        sure = bool(answer.probabilities) and choice_confidence(answer) >= DROP_CONFIDENCE
        return "drop" if sure else "summarize"
    return "keep" if best == "keep" else "summarize" if best == "summarize" else None


def _status(asked: int, unjudged: int, unsent: int) -> Status:
    if not unjudged:
        return "ok"
    return "fail_open" if unjudged == asked and unsent < asked else "partial"


def _require_count(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{name}: a whole number from 0 on is needed, not {value!r:.40}")
