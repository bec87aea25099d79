"""A System One service on loopback that is true to the published schema, for tests. Standard library only.

In a test:

    with SystemOneServer(decide=lambda question_id, question, state: 0.1) as server:
        ...  # post to server.url + "/v1/systemone"; read server.requests; set server.mode

As a program, for tests that run other programs:

    python tests/system_one_server.py --portfile F --log F.jsonl --default 0.1 [--mode hang] [--answer t3_output=0.9]

`decide` gives a number in [0, 1]: P(true) of a noul, and for a choice or score the place on its list of options, from
the first (0) to the last (1), the mass being shared by the two options next to it.
"""

from __future__ import annotations

import argparse
import http.server
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from system_one_schema import MODELS, Reply, error, invalid

Decide = Callable[[str, Mapping[str, Any], Any], float]

MODES = (
    "ok",
    "hang",
    "slow_first_byte",
    "drip",
    "reset",
    "half_body",
    "http_429",
    "http_500",
    "html_200",
    "redirect",
    "too_large",
    "partial",
    "raw",
)
KEY = "apikey_" + "k1" * 20
OVERHEAD_TOKENS = 270


class Recorded(NamedTuple):
    """A request as it arrived. Header names are in lower case; `body` is None where it is no JSON."""

    path: str
    headers: dict[str, str]
    raw: bytes
    body: Any


class SystemOneServer:
    """Serves from `__enter__` to `__exit__`. All attributes may be set while it runs.

    `mode` is one of MODES; with `faults` set to a number only that many of the next requests meet it.
    `key` None accepts any. `limit_bytes` is the longest body that "too_large" accepts. `omit` are the ids that
    "partial" leaves out (every second one if empty). "slow_first_byte" says nothing for `first_byte_s` seconds after it
    has read the request, and then answers. `retry_after` and `retry_after_ms` go with a 429 as they are; `location` and
    `redirect_status` are those of "redirect". `raw` are whole answers that "raw" gives as they are.
    """

    def __init__(self, decide: Decide | None = None, *, key: str | None = KEY, log: Path | None = None) -> None:
        self.decide: Decide = decide or (lambda question_id, question, state: 0.1)
        self.key = key
        self.log = log
        self.mode = "ok"
        self.faults: int | None = None
        self.delay_s = 0.0
        self.first_byte_s = 0.0
        self.retry_after: str | None = None
        self.retry_after_ms: str | None = None
        self.location = "/v1/systemone?moved"
        self.redirect_status = 307
        self.limit_bytes = 20_000
        self.omit: frozenset[str] = frozenset()
        self.raw: dict[str, Any] = {}
        self.requests: list[Recorded] = []
        self.max_concurrent = 0
        self.stopping = threading.Event()
        self._concurrent = 0
        self._lock = threading.Lock()
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> SystemOneServer:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        """The root, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def begin(self, request: Recorded) -> tuple[int, str]:
        """Record a request; its number from 1 and the mode it meets."""
        with self._lock:
            self.requests.append(request)
            self._concurrent += 1
            self.max_concurrent = max(self.max_concurrent, self._concurrent)
            mode = self.mode
            if mode != "ok" and self.faults is not None:
                mode = mode if self.faults > 0 else "ok"
                self.faults = max(0, self.faults - 1)
            number = len(self.requests)
            if self.log is not None:
                self._write_log(self.log, number, request)
        return number, mode

    def end(self) -> None:
        with self._lock:
            self._concurrent -= 1

    def _write_log(self, log: Path, number: int, request: Recorded) -> None:
        authorized = self.key is None or request.headers.get("authorization") == f"Bearer {self.key}"
        line = {"number": number, "path": request.path, "authorized": authorized, "bytes": len(request.raw)}
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, "body": request.body}) + "\n")

    def reply(self, request: Recorded, mode: str) -> Reply:
        """What the service answers, transport faults aside."""
        if request.path.partition("?")[0] != "/v1/systemone":
            return Reply(404, {"detail": "Not Found"})
        refusal = self._refusal(request.headers) or self._http_fault(mode) or invalid(request.body)
        if refusal:
            return refusal
        if mode == "too_large" and len(request.raw) > self.limit_bytes:
            return Reply(400, {"detail": {"error_type": "max_tokens_exceeded"}})
        body = request.body
        answers = {name: self._answer(name, question, body["state"]) for name, question in body["questions"].items()}
        if mode == "partial":
            omit = self.omit or frozenset(list(answers)[1::2])
            answers = {name: answer for name, answer in answers.items() if name not in omit}
            answers["t999_unknown"] = {"type": "noul", "noul": 0.5}
        if mode == "raw":
            answers |= {name: answer for name, answer in self.raw.items() if name in answers}
        tokens = OVERHEAD_TOKENS + -(-len(request.raw) // 4)
        usage = {"input_tokens": tokens, "output_tokens": 11 * len(answers)}
        return Reply(200, {"model": MODELS[body["model"]], "answers": answers, "usage": usage})

    def _http_fault(self, mode: str) -> Reply | None:
        if mode == "http_429":
            given = (("Retry-After", self.retry_after), ("Retry-After-Ms", self.retry_after_ms))
            headers = tuple((name, value) for name, value in given if value is not None)
            return Reply(429, {"detail": {"error_type": "rate_limit_error", "message": "Too many requests"}}, headers)
        if mode == "http_500":
            return Reply(500, "Internal Server Error")
        if mode == "redirect":
            return Reply(self.redirect_status, {"detail": "moved"}, (("Location", self.location),))
        return None

    def _refusal(self, headers: Mapping[str, str]) -> Reply | None:
        given = headers.get("authorization", "")
        if self.key is None or given == f"Bearer {self.key}":
            return None
        if not given.removeprefix("Bearer").strip():
            return error(403, "authentication_error", "Must supply an API key! Check your request and try again.")
        return error(401, "authentication_error", "Cannot authenticate with the server. Check your API key.")

    def _answer(self, name: str, question: Mapping[str, Any], state: Any) -> dict[str, Any]:
        value = min(1.0, max(0.0, self.decide(name, question, state)))
        if question["type"] == "noul":
            return {"type": "noul", "noul": round(value, 2)}
        criteria = question["criteria"]
        names = list(criteria) if question["type"] == "choice" else [str(level) for level in range(len(criteria))]
        weights = _spread(value, len(names))
        probabilities = {option: round(weight, 2) for option, weight in zip(names, weights, strict=True)}
        if question["type"] == "choice":
            best = max(probabilities, key=lambda option: probabilities[option])
            confidence = _choice_confidence(weights)
            return {"type": "choice", "choice": best, "probabilities": probabilities, "confidence": confidence}
        return {
            "type": "score",
            "score": round(sum(level * weight for level, weight in enumerate(weights)), 2),
            "legend": dict(zip(names, criteria, strict=True)),
            "probabilities": probabilities,
            "confidence": _score_confidence(weights),
        }


class _Http(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, service: SystemOneServer) -> None:
        self.service = service
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is an ordinary event here."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            models = [{"name": name, "description": "", "release_date": "2026-09-15"} for name in MODELS]
            self._send(Reply(200, {"models": models}), 0)
        else:
            self._send(Reply(405 if self.path == "/v1/systemone" else 404, {"detail": "Not Found"}), 0)

    def do_POST(self) -> None:
        service = self.server.service
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Recorded(self.path, headers, raw, _parsed(raw))
        number, mode = service.begin(request)
        try:
            service.stopping.wait(service.delay_s)
            self._respond(service, request, number, mode)
        finally:
            service.end()

    def _respond(self, service: SystemOneServer, request: Recorded, number: int, mode: str) -> None:
        if mode == "hang":
            service.stopping.wait()
            self.close_connection = True
        elif mode == "slow_first_byte":
            service.stopping.wait(service.first_byte_s)
            self._send(service.reply(request, "ok"), number)
        elif mode == "drip":
            self._send_bytes(200, b" ", "application/json", (), number, claimed=100_000)
            while not service.stopping.wait(0.02):
                self.wfile.write(b" ")
            self.close_connection = True
        elif mode == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
        elif mode == "html_200":
            self._send_bytes(200, b"<html><body>Welcome to this network</body></html>", "text/html", (), number)
        elif mode == "half_body":
            payload = _dump(service.reply(request, "ok").data)
            self._send_bytes(200, payload[: len(payload) // 2], "application/json", (), number, claimed=len(payload))
            self.close_connection = True
        else:
            self._send(service.reply(request, mode), number)

    def _send(self, reply: Reply, number: int) -> None:
        self._send_bytes(reply.status, _dump(reply.data), "application/json", reply.headers, number)

    def _send_bytes(
        self,
        status: int,
        payload: bytes,
        content_type: str,
        headers: Iterable[tuple[str, str]],
        number: int,
        claimed: int | None = None,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(payload) if claimed is None else claimed))
        self.send_header("x-typesafe-request-id", f"req_{number:032x}")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)


def _dump(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _parsed(raw: bytes) -> Any:
    """The body, or None where it is no JSON; the names NaN and Infinity are not JSON."""
    try:
        return json.loads(raw, parse_constant=_refuse_constant)
    except ValueError:
        return None


def _spread(value: float, options: int) -> list[float]:
    """All of the mass at one place of [0, options - 1], shared by the two options next to it."""
    place = value * (options - 1)
    return [max(0.0, 1 - abs(place - option)) for option in range(options)]


def _choice_confidence(weights: list[float]) -> float:
    chance = 1 / len(weights)
    return round((max(weights) - chance) / (1 - chance), 2)


def _score_confidence(weights: list[float]) -> float:
    mode = weights.index(max(weights))
    middle = (len(weights) - 1) / 2
    chance = sum(abs(level - middle) for level in range(len(weights))) / len(weights)
    spread = sum(weight * abs(level - mode) for level, weight in enumerate(weights))
    return float(round(max(0.0, 1 - spread / chance), 2))


def main() -> None:
    """Serve until terminated. The port is in `--portfile` once requests are served."""
    parser = argparse.ArgumentParser(description="A System One service on loopback, for tests.")
    parser.add_argument("--portfile", type=Path, required=True)
    parser.add_argument("--log", type=Path, help="JSON lines, one for each request")
    parser.add_argument("--default", type=float, default=0.1, help="the answer to every other question")
    parser.add_argument("--answer", action="append", default=[], metavar="ID=VALUE")
    parser.add_argument("--mode", choices=MODES, default="ok")
    parser.add_argument("--delay", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--retry-after", default=None)
    parser.add_argument("--limit-bytes", type=int, default=20_000)
    parser.add_argument("--key", default=None, help="the one key that is accepted; any is, without it")
    options = parser.parse_args()
    answers = {name: float(value) for name, _, value in (text.partition("=") for text in options.answer)}

    def decide(question_id: str, question: Mapping[str, Any], state: Any) -> float:
        return answers.get(question_id, float(options.default))

    server = SystemOneServer(decide, key=options.key, log=options.log)
    server.mode, server.delay_s = options.mode, options.delay
    server.retry_after, server.limit_bytes = options.retry_after, options.limit_bytes
    with server:
        # Written aside and moved: whoever waits for the file never reads half a number.
        ready = options.portfile.with_name(options.portfile.name + ".new")
        ready.write_text(str(server.port), encoding="ascii")
        ready.replace(options.portfile)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
