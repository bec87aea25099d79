"""The stand-in for the scorer: a System One service that answers as a case file says.

A file keys its answers by call id; the engine asks by ordinal. `expect_calls` says which call each ordinal is.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from system_one_schema import Reply
from system_one_server import Recorded, SystemOneServer, _Handler

KEY = "apikey_FAKE_for_the_case_files"
HOLD_SECONDS = 30.0
_QUESTION = re.compile(r"t([1-9]\d*)_(call|output)")

_MODES = {
    "ok": "ok",
    "values": "raw",
    "partial": "partial",
    "hang": "hang",
    "http_429": "http_429",
    "http_500": "http_500",
    "html_200": "html_200",
    "reject_over_bytes": "reject_over_bytes",
    "connection_refused": "reset",
    "no_key": "ok",
}
"""Mode in a case file → mode of the server."""

_BODIES = {
    "empty_200": (b"", "application/json"),
    "truncated_json": (b'{"model": "jev-1.13.0", "answers": {"t1_output": {"type": "noul", "no', "application/json"),
    "array_answers": (b'[{"type": "noul", "noul": 0.1}, {"type": "noul", "noul": 0.1}]', "application/json"),
    "wrong_content_type": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "image/png"),
}
"""Modes that answer 200 with a fixed body: the bytes and their content type."""

_KEYS = frozenset(
    {
        *("mode", "default", "scores", "call_scores", "call_default", "raw_scores", "retry_after_s", "limit_bytes"),
        *("omit", "add_unknown", "also", "delay_s"),
    }
)


class UnknownMode(Exception):
    """A case asks for something that this scorer cannot do."""


class Sent(NamedTuple):
    """A request the engine sent; `body` is None where it is not JSON."""

    raw: bytes
    body: Any

    @property
    def question_ids(self) -> list[str]:
        questions = self.body.get("questions") if isinstance(self.body, dict) else None
        return list(questions) if isinstance(questions, dict) else []

    @property
    def ordinals(self) -> set[int]:
        """Ordinals of the calls that this request asks about."""
        return {int(found[1]) for name in self.question_ids if (found := _QUESTION.fullmatch(name))}

    @property
    def state(self) -> Any:
        return self.body.get("state") if isinstance(self.body, dict) else None

    def item(self, ordinal: int) -> Any:
        """The description of a call among the state's items, None if it is not described."""
        items = self.state.get("items") if isinstance(self.state, dict) else None
        listed = items if isinstance(items, list) else []
        return next((i for i in listed if isinstance(i, dict) and i.get("id") == f"t{ordinal}"), None)


class CaseJudge:
    """Serves from `__enter__` to `__exit__`; `configure` sets how it answers, at any time."""

    def __init__(self) -> None:
        self._server = _Server(self)
        self._closed_port = socket.socket()
        self._closed_port.bind(("127.0.0.1", 0))
        self._fake: dict[str, Any] = {}
        self._calls: list[str | None] = []
        self._go = threading.Event()
        self._go.set()
        self.refuses = False
        self.strange: list[str] = []

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.release()
        self._closed_port.close()
        self._server.__exit__()

    @property
    def url(self) -> str:
        """Where the engine is told to ask. With `refuses` nothing listens there."""
        if self.refuses:
            return f"http://127.0.0.1:{self._closed_port.getsockname()[1]}"
        return self._server.url

    @property
    def requests(self) -> list[Sent]:
        return [Sent(request.raw, request.body) for request in self._server.requests]

    @property
    def max_concurrent(self) -> int:
        return self._server.max_concurrent

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Change what is named in `changes`; the rest stays. Raises UnknownMode."""
        fake = {**self._fake, **changes}
        if unknown := set(fake) - _KEYS:
            raise UnknownMode(f"fake_jev: {sorted(unknown)}")
        mode = fake["mode"]
        if mode not in _MODES and mode not in _BODIES:
            raise UnknownMode(f"fake_jev mode: {mode}")
        self._fake = fake
        self._server.mode = _MODES.get(mode, mode)
        self._server.delay_s = fake.get("delay_s", 0.0)
        self._server.limit_bytes = fake.get("limit_bytes", self._server.limit_bytes)
        self._server.retry_after = str(fake["retry_after_s"]) if "retry_after_s" in fake else None

    def expect_calls(self, ids: Sequence[str | None]) -> None:
        """The call ids of the list that is about to be passed, in order."""
        self._calls = list(ids)

    def hold(self) -> None:
        """Answers wait until `release`."""
        self._go.clear()

    def release(self) -> None:
        self._go.set()

    def decide(self, question_id: str, question: Mapping[str, Any], state: Any) -> float:
        self._go.wait(HOLD_SECONDS)
        call_id, asked = self._subject(question_id)
        if asked is None and question.get("type") == "noul":
            self.strange.append(question_id)
        if asked == "call":
            default = self._fake.get("call_default", 1.0)
            return float(self._fake.get("call_scores", {}).get(call_id, default))
        return float(self._fake.get("scores", {}).get(call_id, self._fake.get("default", 0.5)))

    def _subject(self, question_id: str) -> tuple[str | None, str | None]:
        """(call id, "call" or "output") of a question, (None, None) for one about no known call."""
        found = _QUESTION.fullmatch(question_id)
        if found is None or int(found[1]) > len(self._calls):
            return None, None
        return self._calls[int(found[1]) - 1], found[2]

    def raw_answer(self, question_id: str) -> dict[str, Any] | None:
        """In mode `values`: the answer with the case's raw value, as it is."""
        call_id, asked = self._subject(question_id)
        raw = self._fake.get("raw_scores", {})
        return {"type": "noul", "noul": raw[call_id]} if asked == "output" and call_id in raw else None

    def partial(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """In mode `partial`: without the calls to be left out, with answers nobody asked for."""
        omitted = set(self._fake.get("omit", ()))
        kept = {name: answer for name, answer in answers.items() if self._subject(name)[0] not in omitted}
        added = self._fake.get("add_unknown", 0)
        names = added if isinstance(added, list) else [f"unknown_{number}" for number in range(int(added))]
        return kept | {str(name): {"type": "noul", "noul": 0.0} for name in names}


class _Server(SystemOneServer):
    def __init__(self, judge: CaseJudge) -> None:
        super().__init__(judge.decide, key=KEY)
        self.judge = judge
        self._http.RequestHandlerClass = _CaseHandler

    def reply(self, request: Recorded, mode: str) -> Reply:
        if mode == "reject_over_bytes":
            if len(request.raw) > self.limit_bytes:
                return Reply(413, {"detail": "Request Entity Too Large"})
            mode = "ok"
        reply = super().reply(request, "ok" if mode in ("partial", "raw") else mode)
        if reply.status != 200 or mode not in ("partial", "raw"):
            return reply
        answers = reply.data["answers"]
        if mode == "partial":
            answers = self.judge.partial(answers)
        else:
            answers = {name: self.judge.raw_answer(name) or answer for name, answer in answers.items()}
        return Reply(200, {**reply.data, "answers": answers})


class _CaseHandler(_Handler):
    def _respond(self, service: SystemOneServer, request: Recorded, number: int, mode: str) -> None:
        if mode in _BODIES:
            body, content_type = _BODIES[mode]
            self._send_bytes(200, body, content_type, (), number)
        else:
            super()._respond(service, request, number, mode)
