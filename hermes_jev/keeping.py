"""Store first: what a plan is going to change, written and read back before any of it is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import arguments, drops, prose
from .errors import StoreError
from .job import Job
from .notice import cut_in, of_page
from .plan import Costs, Plan
from .policy import Decision
from .repeats import Repeat, first_original
from .store import Keep, Kept, Original
from .transcript import Exchange

MESSAGE_TOOLS = {"assistant": "[assistant message]", "user": "[user message]"}
"""Stand for the tool of a stored message; no tool can be called that."""


@dataclass(frozen=True)
class Stored:
    """What may be carried out of a plan, since it is stored. `results` and `texts` are by position, `inputs` by
    position and slot of the call, `pointers` by ordinal for the calls that leave; `refused` is why something stays."""

    plan: Plan
    results: Mapping[int, Kept]
    inputs: Mapping[tuple[int, int], Kept]
    texts: Mapping[int, Kept]
    pointers: Mapping[int, str]
    refused: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing of the plan may be carried out."""
        return not (self.results or self.inputs or self.texts or self.plan.runs)


def store_first(plan: Plan, job: Job, costs: Costs) -> Stored:
    """Store what is to be cut. What the store could not keep and read back stays whole, and says why."""
    return _Keeper(plan, job, costs).stored()


class _Keeper:
    """Stores one plan: first each original, then the turns that leave, since their record names those."""

    def __init__(self, plan: Plan, job: Job, costs: Costs) -> None:
        self.plan = plan
        self.job = job
        self.cuts = costs.cuts
        self.transcript = costs.transcript
        self.exchanges = {exchange.ordinal: exchange for exchange in self.transcript.completed}
        self.before = _as_they_were(self._touched(), job)
        # The notice of a reply of `expand` names the original that the reply came from.
        self.repeats: dict[int, Repeat] = {}

    def _touched(self) -> list[Exchange]:
        changed = {decision.exchange.ordinal for decision in self.plan.decisions if decision.action != "keep"}
        anchors = {run.anchor.ordinal for run in self.plan.runs}
        return [self.exchanges[ordinal] for ordinal in sorted(changed | anchors | set(self.plan.inputs))]

    def stored(self) -> Stored:
        plan = self.plan
        chosen = [decision for decision in plan.decisions if decision.action != "keep"]
        firsts = {d.exchange.ordinal: first_original(d.exchange, self.job.store) for d in chosen}
        self.repeats = {ordinal: first for ordinal, first in firsts.items() if first is not None}
        named = {run.anchor.ordinal for run in plan.runs}
        extra = [self.exchanges[ordinal] for ordinal in named - {decision.exchange.ordinal for decision in chosen}]
        items = [
            *(self._result(decision.exchange, decision) for decision in chosen),
            *(self._plain(exchange) for exchange in extra),
            *(self._input(self.exchanges[ordinal]) for ordinal in plan.inputs),
            *(self._text(at) for at in plan.texts),
        ]
        replies = iter(self._keep(items))
        results = {decision.exchange.ordinal: next(replies) for decision in chosen}
        results |= self._again([d for d in chosen if isinstance(results[d.exchange.ordinal], StoreError)])
        results |= {exchange.ordinal: next(replies) for exchange in extra}
        inputs = {ordinal: next(replies) for ordinal in plan.inputs}
        texts = {at: next(replies) for at in plan.texts}
        known = {ordinal: reply for ordinal, reply in results.items() if isinstance(reply, Kept)}
        runs, naming = self._leave(known)
        return self._carried_out(results, inputs, texts, runs, naming)

    def _keep(self, items: Sequence[Keep]) -> list[Kept | StoreError]:
        if not items:
            return []
        try:
            return list(self.job.store.keep(self.job.session, items))
        except StoreError as error:
            return [error] * len(items)

    def _leave(self, known: Mapping[int, Kept]) -> tuple[list[drops.Run], dict[int, Kept]]:
        """Store the record of each run and the text that names it; the runs for which both are there, and the texts by
        ordinal. The runs of one text leave together or not at all."""
        by_anchor: dict[int, list[drops.Run]] = {}
        for run in self.plan.runs:
            by_anchor.setdefault(run.anchor.ordinal, []).append(run)
        items: list[Keep] = []
        sizes: dict[int, int] = {}
        for ordinal, runs in by_anchor.items():
            calls = [exchange.ordinal for run in runs for exchange in run.exchanges]
            if all(number in known for number in (ordinal, *calls)):
                part = self._naming(ordinal, runs, known[ordinal], {number: known[number].id for number in calls})
                items += part
                sizes[ordinal] = len(part)
        replies = iter(self._keep(items))
        leaving: list[drops.Run] = []
        naming: dict[int, Kept] = {}
        for ordinal, size in sizes.items():
            first, *rest = [next(replies) for _ in range(size)]
            if isinstance(first, Kept) and all(isinstance(reply, Kept) for reply in rest):
                naming[ordinal] = first
                leaving += by_anchor[ordinal]
        return leaving, naming

    def _naming(self, ordinal: int, runs: Sequence[drops.Run], kept: Kept, pointers: Mapping[int, str]) -> list[Keep]:
        """The result that names the calls that leave, and a record of each of its runs."""
        decision = self.plan.actions.get(ordinal)
        is_notice = decision is not None and decision.action != "keep"
        text = kept.text if is_notice else self.exchanges[ordinal].text
        named = drops.with_naming(text, drops.naming(list(pointers.values())), is_notice=is_notice)
        return [self._exchange(self.exchanges[ordinal], named), *(self._record(run, pointers, named) for run in runs)]

    def _carried_out(
        self,
        results: Mapping[int, Kept | StoreError],
        inputs: Mapping[int, Kept | StoreError],
        texts: Mapping[int, Kept | StoreError],
        runs: list[drops.Run],
        naming: Mapping[int, Kept],
    ) -> Stored:
        gone = {exchange.ordinal for run in runs for exchange in run.exchanges}
        refused = [str(reply) for reply in (*inputs.values(), *texts.values()) if isinstance(reply, StoreError)]
        decisions = [self._settled(one, results.get(one.exchange.ordinal), gone) for one in self.plan.decisions]
        cut = {d.exchange.ordinal for d in decisions if d.action in ("truncate", "remove")}
        texts_of = {n: reply for n, reply in results.items() if isinstance(reply, Kept) and n in cut} | dict(naming)
        kept_inputs = {n: reply for n, reply in inputs.items() if isinstance(reply, Kept)}
        kept_texts = {at: reply for at, reply in texts.items() if isinstance(reply, Kept)}
        plan = Plan(
            tuple(decisions),
            tuple(runs),
            inputs={ordinal: self.plan.inputs[ordinal] for ordinal in kept_inputs},
            texts={at: self.plan.texts[at] for at in kept_texts},
        )
        places = {n: (self.exchanges[n].call_at, self.exchanges[n].slot) for n in kept_inputs}
        return Stored(
            plan,
            {self.exchanges[n].result_at or 0: reply for n, reply in texts_of.items()},
            {places[n]: reply for n, reply in kept_inputs.items()},
            kept_texts,
            {n: reply.id for n, reply in results.items() if isinstance(reply, Kept) and n in gone},
            tuple(refused),
        )

    def _settled(self, decision: Decision, reply: Kept | StoreError | None, gone: set[int]) -> Decision:
        """The decision as it can be carried out."""
        if isinstance(reply, StoreError):
            return replace(decision, action="keep", reason=f"not stored: {reply}")
        if decision.action == "drop" and decision.exchange.ordinal not in gone:
            possible = self.cuts.gain(decision.exchange, "remove") is not None
            return replace(decision, action="remove" if possible else "keep")
        return decision

    # -- what is stored ---------------------------------------------------------------------------------------------

    def _exchange(self, exchange: Exchange, text: str | None = None) -> Keep:
        was = self.before.get(exchange.ordinal)
        return Keep(
            tool=exchange.tool,
            arguments=was.arguments if was else exchange.arguments,
            result=was.result if was else exchange.result,
            outcome=exchange.outcome.status,
            render=lambda pointer: text if text is not None else self.cuts.render(exchange, "remove", pointer),
        )

    def _result(self, exchange: Exchange, decision: Decision) -> Keep:
        action = "remove" if decision.action == "drop" else decision.action
        first = self.repeats.get(exchange.ordinal)

        def render(pointer: str) -> str:
            if first is None:
                return self.cuts.render(exchange, action, pointer)
            return of_page(self.cuts.render(exchange, action, first.pointer), first.page)

        return replace(self._exchange(exchange), render=render)

    def _again(self, refused: Sequence[Decision]) -> dict[int, Kept | StoreError]:
        """Replies of `expand` under a pointer of their own: two may be cut to the same text, which can stand for one
        of them only."""
        repeated = [decision for decision in refused if decision.exchange.ordinal in self.repeats]
        for decision in repeated:
            del self.repeats[decision.exchange.ordinal]
        replies = self._keep([self._result(decision.exchange, decision) for decision in repeated])
        return {decision.exchange.ordinal: reply for decision, reply in zip(repeated, replies, strict=True)}

    def _plain(self, exchange: Exchange) -> Keep:
        """A result that stays as it is and will name calls that left. Its own text is not noted as a cut: many results
        are "ok", and one text stands for one original."""
        return replace(self._exchange(exchange), render=drops.whole)

    def _input(self, exchange: Exchange) -> Keep:
        short = exchange.arguments
        return replace(self._exchange(exchange), render=lambda pointer: arguments.shortened(short, pointer) or short)

    def _text(self, at: int) -> Keep:
        message = self.transcript.messages[at]
        content, limit = message.get("content"), self.job.settings.excerpt_chars
        return Keep(
            tool=MESSAGE_TOOLS[message["role"]],
            arguments="",
            result=content,
            outcome="unknown",
            render=lambda pointer: prose.shortened(content, pointer, limit),
        )

    def _record(self, run: drops.Run, pointers: Mapping[int, str], text: str) -> Keep:
        return Keep(
            tool=drops.RECORD_TOOL,
            arguments="",
            result=drops.record(run, self.transcript, pointers),
            outcome="unknown",
            render=lambda _: drops.key(text, run.side),
        )


class _Was:
    """An exchange before any cut."""

    def __init__(self, arguments: str, result: Any) -> None:
        self.arguments = arguments
        self.result = result


def _as_they_were(exchanges: Sequence[Exchange], job: Job) -> dict[int, _Was]:
    """Exchanges of which a part was cut before, with that part's original: so each has one pointer for good, and
    nothing is stored as its own notice."""
    places: list[tuple[int, bool]] = []
    texts: list[str] = []
    for exchange in exchanges:
        if arguments.pointers_in(exchange.arguments):
            places.append((exchange.ordinal, True))
            texts.append(exchange.arguments)
        if (standing := _standing(exchange.result)) is not None:
            places.append((exchange.ordinal, False))
            texts.append(standing)
    if not texts:
        return {}
    try:
        found: Mapping[int, Original] = job.store.originals_of(texts)
    except StoreError:
        return {}
    by_ordinal = {exchange.ordinal: _Was(exchange.arguments, exchange.result) for exchange in exchanges}
    for index, original in found.items():
        ordinal, is_input = places[index]
        if is_input:
            by_ordinal[ordinal].arguments = original.arguments
        else:
            by_ordinal[ordinal].result = original.result
    return by_ordinal


def _standing(result: Any) -> str | None:
    """The text that stands for a result that was cut before, by its form."""
    if (named := drops.naming_in(result)) is not None:
        return named.text
    cut = cut_in(result)
    return cut.text if cut is not None else None
