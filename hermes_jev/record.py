"""The result of a pass: the list, the decisions, and the receipt that says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .calibration import Calibration, fixed
from .errors import StoreError
from .job import Job, Pruned
from .judged import Judged
from .policy import Cuts, Decision, Pressure, gain_of
from .questions import VERSION
from .receipts import DecisionRecord, Outcome, Receipt
from .redact import redact
from .store import Kept
from .survey import Survey, calls_until_worth
from .transcript import Transcript

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

    def with_verdicts(self, verdict: Judged, goal_hash: str, bounds: Calibration | None) -> Recorder:
        """The same recorder once the judge has spoken; `bounds` are the thresholds in force."""
        return replace(self, verdict=verdict, goal_hash=goal_hash, bounds=bounds)

    def unchanged(self, outcome: Outcome, why: str, decisions: Sequence[Decision] = ()) -> Pruned:
        """The very list that was given."""
        return self._result(self.transcript.messages, outcome, why, decisions, {}, 0)

    def changed(
        self, after: list[Any], outcome: Outcome, decisions: Sequence[Decision], kept: Mapping[int, Kept]
    ) -> Pruned:
        """The new list, or the given one when nothing could be stored."""
        if not kept:
            why = next((d.reason for d in decisions if d.reason.startswith("not stored")), "")
            return self.unchanged("error", why, decisions)
        freed = gain_of(decisions, self.cuts)
        unstored = sum(1 for decision in decisions if decision.reason.startswith("not stored"))
        why = f"{unstored} results stay whole: they could not be stored" if unstored else ""
        return self._result(after, outcome, why, decisions, kept, freed)

    def _result(
        self,
        messages: Any,
        outcome: Outcome,
        why: str,
        decisions: Sequence[Decision],
        kept: Mapping[int, Kept],
        freed: int,
    ) -> Pruned:
        wait = calls_until_worth(self.found, len(self.transcript.completed), self.pressure, self.cuts)
        receipt = self._receipt(messages, outcome, why, decisions, kept, freed)
        problems = list(receipt.problems)
        # A pass that looked at nothing writes nothing: with little to do the host asks several times a turn.
        if self.job.settings.receipts and decisions:
            try:
                self.job.store.add_receipt(self.job.session, receipt.to_json())
            except StoreError as error:
                problems.append(f"receipt not saved: {error}")
        return Pruned(messages, tuple(decisions), receipt.model_copy(update={"problems": tuple(problems)}), wait)

    def _receipt(
        self,
        messages: Any,
        outcome: Outcome,
        why: str,
        decisions: Sequence[Decision],
        kept: Mapping[int, Kept],
        freed: int,
    ) -> Receipt:
        settings, pressure, answers = self.job.settings, self.pressure, self.verdict.answers
        bounds = self.bounds or fixed(settings)
        chars_before = sum(exchange.size for exchange in self.transcript.completed)
        chars_saved = sum(
            exchange.size - len(kept[exchange.result_at].text)
            for exchange in self.transcript.completed
            if exchange.result_at is not None and exchange.result_at in kept
        )
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
            problems=self.verdict.problems,
            decisions=tuple(_record(decision, self.found.contents, kept) for decision in decisions),
        )


def _record(decision: Decision, contents: Mapping[int, str], kept: Mapping[int, Kept]) -> DecisionRecord:
    exchange, verdict = decision.exchange, decision.verdict
    stored = kept.get(exchange.result_at) if exchange.result_at is not None else None
    return DecisionRecord(
        ordinal=exchange.ordinal,
        tool=redact(exchange.tool)[:_TOOL_CHARS],
        content=contents[exchange.ordinal],
        action=decision.action,
        reason=decision.reason,
        pointer=stored.id if stored else "",
        chars_before=exchange.size,
        chars_after=len(stored.text) if stored else exchange.size,
        call=verdict.call if verdict else None,
        output=verdict.output if verdict else None,
        stage=verdict.stage if verdict else "",
        judge=verdict.judge if verdict else "",
        cached=verdict.cached if verdict else False,
    )
