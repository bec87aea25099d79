"""Callbacks that hear of passes."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from hermes_jev import listeners
from hermes_jev.receipts import DecisionRecord, Receipt


def test_each_hears_each_event_and_a_failing_one_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Mapping[str, Any]] = []

    def fails(event: Mapping[str, Any]) -> None:
        raise RuntimeError("sk-secret-of-somebody")

    ours = listeners.Listeners()
    ours.add(fails)
    ours.add(heard.append)
    with caplog.at_level(logging.WARNING):
        ours.tell(listeners.before(5, 1_000, "S1"))

    assert heard == [{"phase": "before", "session": "S1", "messages": 5, "tokens_before": 1_000}]
    assert "RuntimeError" in caplog.text
    assert "sk-secret" not in caplog.text


def test_a_listener_cannot_change_what_the_next_one_hears() -> None:
    heard: list[Any] = []
    ours = listeners.Listeners()
    ours.add(lambda event: event.clear())  # type: ignore[attr-defined]
    ours.add(heard.append)
    ours.tell({"phase": "before"})

    assert heard == [{"phase": "before"}]


def test_copies_share_callbacks_and_a_pickle_has_none() -> None:
    heard: list[Any] = []
    ours = listeners.Listeners()
    ours.add(heard.append)
    copy.deepcopy(ours).tell({"phase": "x"})
    pickle.loads(pickle.dumps(ours)).tell({"phase": "y"})

    assert heard == [{"phase": "x"}]


def test_the_event_after_a_pass_counts_what_was_done() -> None:
    def record(action: Any, reason: str = "") -> DecisionRecord:
        return DecisionRecord(
            ordinal=1, tool="t", content="c", action=action, reason=reason, chars_before=9, chars_after=1
        )

    receipt = Receipt(
        outcome="compacted",
        decisions=(
            record("keep"),
            record("truncate"),
            record("drop", "ladder: drop"),
            record("text", "ladder: user text"),
        ),
        used_before=900,
        used_after=300,
    )
    event = listeners.after(receipt, "S1")

    assert (event["phase"], event["kept"], event["shrunk"]) == ("after", 1, 3)
    assert (event["tokens_before"], event["tokens_after"]) == (900, 300)
    assert event["rungs"] == ["ladder: drop", "ladder: user text"]
