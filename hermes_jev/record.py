"""The result of a pass: the list, the decisions, and the receipt that says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .calibration import Calibration, fixed
from .errors import StoreError
from .job import Job, Pruned
from .judged import Judged
from .keeping import MESSAGE_TOOLS, Stored
from .policy import Cuts, Decision, Pressure
from .prompt_cache import Rewrite
from .questions import VERSION
from .receipts import CacheRecord, DecisionRecord, Outcome, Receipt
from .redact import redact
from .survey import Survey, calls_until_worth
from .tokens import content_text
from .transcript import Exchange, Transcript

_TOOL_CHARS = 100


@dataclass(frozen=True)
class Recorder:
    """Makes the result of a pass: the list, the decisions and the receipt, which it also files."""

    transcript: Transcript
    job: Job
    pressure: Pressure
    found: Survey
    cuts: Cuts
    verdict: Judged = field(default_factory=Judged)
    goal_hash: str = ""
    bounds: Calibration | None = None
    rewrite: Rewrite | None = None

    def with_verdicts(self, verdict: Judged, goal_hash: str, bounds: Calibration | None) -> Recorder:
        """The same recorder once the judge has spoken; `bounds` are the thresholds in force."""
        return replace(self, verdict=verdict, goal_hash=goal_hash, bounds=bounds)

    def with_rewrite(self, rewrite: Rewrite | None) -> Recorder:
        """The same recorder once it is known what the cuts mean for the prompt cache."""
        return replace(self, rewrite=rewrite)

    def unchanged(self, outcome: Outcome, why: str, decisions: Sequence[Decision] = ()) -> Pruned:
        """The very list that was given."""
        return self._result(self.transcript.messages, outcome, why, decisions, None, 0)

    def changed(self, after: list[Any], outcome: Outcome, stored: Stored, freed: int) -> Pruned:
        """The new list, or the given one when nothing could be stored."""
        decisions = stored.plan.decisions
        unstored = [d.reason for d in decisions if d.reason.startswith("not stored")]
        unstored += [f"not stored: {reason}" for reason in stored.refused]
        if stored.empty:
            return self.unchanged("error", unstored[0] if unstored else "", decisions)
        why = f"{len(unstored)} results stay whole: they could not be stored" if unstored else ""
        return self._result(after, outcome, why, decisions, stored, freed)

    def _result(
        self,
        messages: Any,
        outcome: Outcome,
        why: str,
        decisions: Sequence[Decision],
        stored: Stored | None,
        freed: int,
    ) -> Pruned:
        wait = calls_until_worth(self.found, len(self.transcript.completed), self.pressure, self.cuts)
        receipt = self._receipt(outcome, why, decisions, stored, freed)
        problems = list(receipt.problems)
        # A pass that looked at nothing writes nothing: with little to do the host asks several times a turn.
        if self.job.settings.receipts and decisions:
            try:
                self.job.store.add_receipt(self.job.session, receipt.to_json())
            except StoreError as error:
                problems.append(f"receipt not saved: {error}")
        return Pruned(messages, tuple(decisions), receipt.model_copy(update={"problems": tuple(problems)}), wait)

    def _receipt(
        self, outcome: Outcome, why: str, decisions: Sequence[Decision], stored: Stored | None, freed: int
    ) -> Receipt:
        settings, pressure, answers = self.job.settings, self.pressure, self.verdict.answers
        records = [_record(decision, self._content(decision.exchange), stored) for decision in decisions]
        records += self._further(stored) if stored is not None else []
        bounds = self.bounds or fixed(settings)
        chars_before = sum(exchange.size for exchange in self.transcript.completed)
        results = {exchange.result_at: exchange for exchange in self.transcript.completed}
        gone = stored.plan.gone if stored is not None else frozenset()
        chars_saved = sum(exchange.size for exchange in self.transcript.completed if exchange.ordinal in gone)
        chars_saved += sum(results[at].size - len(kept.text) for at, kept in (stored.results if stored else {}).items())
        return Receipt(
            outcome=outcome,
            why=why,
            mode=settings.mode,
            partial=self.verdict.partial,
            judge=answers.judge,
            model=answers.model,
            question_version=VERSION if answers.judge else "",
            goal_hash=self.goal_hash,
            call_threshold=bounds.call,
            output_threshold=bounds.output,
            messages=len(self.transcript.messages),
            calls=len(self.transcript.exchanges),
            pinned=dict(Counter(self.found.pinned.values())),
            window=pressure.window,
            used_before=pressure.used,
            used_after=round(pressure.after(freed)),
            tokens_before=pressure.estimated,
            tokens_after=pressure.estimated - freed,
            chars_before=chars_before,
            chars_after=chars_before - chars_saved,
            requests=answers.requests,
            failed_requests=answers.failed,
            input_tokens=answers.input_tokens,
            cost=answers.cost,
            latency_ms=answers.latency_ms,
            cache=CacheRecord.of(self.rewrite) if self.rewrite is not None else None,
            problems=self.verdict.problems,
            decisions=tuple(records),
        )

    def _content(self, exchange: Exchange) -> str:
        return self.cuts.content(exchange) or ""

    def _further(self, stored: Stored) -> list[DecisionRecord]:
        """What was shortened beside results: inputs, then messages."""
        by_place = {(exchange.call_at, exchange.slot): exchange for exchange in self.transcript.completed}
        found = [
            DecisionRecord(
                ordinal=(exchange := by_place[place]).ordinal,
                tool=redact(exchange.tool)[:_TOOL_CHARS],
                content=self._content(exchange),
                action="arguments",
                reason=stored.plan.inputs[exchange.ordinal],
                pointer=kept.id,
                chars_before=len(exchange.arguments),
                chars_after=len(kept.text),
            )
            for place, kept in stored.inputs.items()
        ]
        for at, kept in stored.texts.items():
            message = self.transcript.messages[at]
            size = len(content_text(message.get("content")))
            found.append(
                DecisionRecord(
                    ordinal=0,
                    tool=MESSAGE_TOOLS[message["role"]],
                    content="",
                    action="text",
                    reason=stored.plan.texts[at],
                    pointer=kept.id,
                    chars_before=size,
                    chars_after=len(kept.text),
                )
            )
        return found


def _record(decision: Decision, content: str, stored: Stored | None) -> DecisionRecord:
    exchange, verdict = decision.exchange, decision.verdict
    kept = stored.results.get(exchange.result_at) if stored and exchange.result_at is not None else None
    gone = stored.pointers.get(exchange.ordinal) if stored else None
    return DecisionRecord(
        ordinal=exchange.ordinal,
        tool=redact(exchange.tool)[:_TOOL_CHARS],
        content=content,
        action=decision.action,
        reason=decision.reason,
        pointer=kept.id if kept else gone or "",
        chars_before=exchange.size,
        chars_after=len(kept.text) if kept else 0 if gone else exchange.size,
        call=verdict.call if verdict else None,
        output=verdict.output if verdict else None,
        stage=verdict.stage if verdict else "",
        judge=verdict.judge if verdict else "",
        cached=verdict.cached if verdict else False,
    )
