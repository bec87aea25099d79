"""Store first, then cut, then check the promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import JevError, StoreError
from .job import Job
from .notice import of_page
from .policy import CLEARLY_SHORTER, Cuts, Decision
from .repeats import Repeat, first_original
from .store import Keep, Kept
from .transcript import Message


def store_first(decisions: Sequence[Decision], job: Job, cuts: Cuts) -> tuple[list[Decision], dict[int, Kept]]:
    """Store what is to be cut. What the store could not keep and read back stays whole, and says why.

    The notice of a reply of `expand` names the original that the reply came from.
    """
    chosen = [decision for decision in decisions if decision.action != "keep"]

    firsts = [first_original(decision.exchange, job.store) for decision in chosen]

    def item(decision: Decision, first: Repeat | None) -> Keep:
        exchange, action = decision.exchange, decision.action

        def render(pointer: str) -> str:
            if first is None:
                return cuts.render(exchange, action, pointer)
            return of_page(cuts.render(exchange, action, first.pointer), first.page)

        return Keep(
            tool=exchange.tool,
            arguments=exchange.arguments,
            result=exchange.result,
            outcome=exchange.outcome.status,
            render=render,
        )

    def keep(items: Sequence[Keep]) -> Sequence[Kept | StoreError]:
        try:
            return job.store.keep(job.session, items)
        except StoreError as error:
            return [error] * len(items)

    replies = list(keep([item(decision, first) for decision, first in zip(chosen, firsts, strict=True)]))
    for at, (decision, first) in enumerate(zip(chosen, firsts, strict=True)):
        if first is not None and isinstance(replies[at], StoreError):
            # Two replies may be cut to the same text, which can stand for one of them only.
            (replies[at],) = keep([item(decision, None)])
    kept: dict[int, Kept] = {}
    failed: dict[int, Decision] = {}
    for decision, reply in zip(chosen, replies, strict=True):
        exchange = decision.exchange
        if isinstance(reply, Kept) and exchange.result_at is not None:
            kept[exchange.result_at] = reply
        else:
            failed[exchange.ordinal] = Decision(exchange, "keep", f"not stored: {reply}", decision.verdict)
    return [failed.get(decision.exchange.ordinal, decision) for decision in decisions], kept


def cut(messages: Sequence[Message], kept: Mapping[int, Kept]) -> list[Any]:
    """The list with the stored results replaced; every other message is the same object."""
    return [{**message, "content": kept[at].text} if at in kept else message for at, message in enumerate(messages)]


def check(before: Sequence[Message], after: Sequence[Message], kept: Mapping[int, Kept]) -> None:
    """The promises about a pruned list, checked on every pass; a breach is a defect and the pass is given up."""
    if len(before) != len(after):
        raise JevError("the pruned list has another length")
    for at, (old, new) in enumerate(zip(before, after, strict=True)):
        if at not in kept:
            if old is not new:
                raise JevError(f"message {at} was changed without a decision")
            continue
        if old.get("role") != "tool" or {**old, "content": None} != {**new, "content": None}:
            raise JevError(f"message {at} was changed beyond its content")
        content = old.get("content")
        if isinstance(content, str) and len(content) - len(new["content"]) < CLEARLY_SHORTER:
            raise JevError(f"message {at} did not become clearly shorter")
