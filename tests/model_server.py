"""A scripted chat-completions server on loopback: the model in the end-to-end tests.

It speaks the OpenAI dialect (streamed and whole, with a usage chunk, `/v1/models` with `context_length`), keeps every
request body in full, and answers from a script. A script is any callable `Conversation -> Step`; `Steps` makes one
of a JSON list:

    [{"text": "I run the tests.", "calls": [{"name": "terminal", "arguments": {"command": "pytest -q"}}]},
     {"error": "overflow"},
     {"calls": [{"name": "expand", "arguments": {"id": "{pointer:1}", "offset": "{next_offset}"}}], "page": true},
     {"text": "Done."}]

`{pointer}` is the id in the newest notice of the conversation, `{pointer:N}` the one that stands for its N-th tool
call, `{next_offset}` what the last result says (0 without one). A step with `page` is said again while there is a next
offset. The last step is said again when the host asks on. Requests without tools (titles, summaries) are the host's own
errands: they get a canned answer and move no script.

As a program: python tests/model_server.py --script steps.json --portfile port.txt --log requests.jsonl
"""

from __future__ import annotations

import argparse
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Self, cast

Message = dict[str, Any]
Usage = Literal["real", "none", "zero"]

MODEL = "scripted-model"
POINTER = re.compile(r'expand\(id="(r-[a-z2-7]+)"')
_TEMPLATE = re.compile(r"\{(pointer|next_offset)(?::(\d+))?\}")
_HEAD = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": MODEL}


class ScriptError(Exception):
    """The conversation does not hold what the script refers to."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error in the provider's JSON shape."""

    status: int
    message: str
    code: str


def overflow(limit: int = 65_536, tokens: int = 71_234) -> Failure:
    """The provider counts more tokens than the window holds."""
    return Failure(
        400,
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} tokens."
        " Please reduce the length of the messages.",
        "context_length_exceeded",
    )


def too_large() -> Failure:
    """A gateway refuses the body by its size."""
    return Failure(413, "Request entity too large", "payload_too_large")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call the model makes; `arguments` may hold templates."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One answer of the model: text with calls, or an error."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    error: Failure | None = None
    page: bool = False

    @classmethod
    def from_json(cls, step: Mapping[str, Any]) -> Self:
        """Read one entry of a JSON script; an unknown key or error word is a ScriptError."""
        unknown = set(step) - {"text", "calls", "error", "page"}
        if unknown:
            raise ScriptError(f"unknown keys in a step: {sorted(unknown)}")
        calls = tuple(Call(call["name"], call.get("arguments", {})) for call in step.get("calls", ()))
        return cls(step.get("text", ""), calls, _failure(step.get("error")), bool(step.get("page", False)))


def _failure(value: Any) -> Failure | None:
    named = {None: None, "overflow": overflow(), "too_large": too_large()}
    if isinstance(value, Mapping):
        return Failure(int(value["status"]), str(value["message"]), str(value.get("code", "error")))
    if value not in named:
        raise ScriptError(f"unknown error in a step: {value!r}")
    return named[value]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the host sent: the messages and the names of the tools on offer."""

    messages: Sequence[Message]
    tools: frozenset[str]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        """The conversation in a request body."""
        names = frozenset(str(tool["function"]["name"]) for tool in body.get("tools") or ())
        return cls(cast("list[Message]", body.get("messages") or []), names)

    @property
    def call_ids(self) -> list[str]:
        """Ids of all tool calls, in order."""
        return [call["id"] for message in self.messages for call in message.get("tool_calls") or ()]

    @property
    def results(self) -> dict[str, str]:
        """Tool call id → text of its result."""
        return {
            str(message["tool_call_id"]): text_of(message) for message in self.messages if message["role"] == "tool"
        }

    @property
    def prose(self) -> list[Message]:
        """Every message that is no tool result."""
        return [message for message in self.messages if message["role"] != "tool"]

    def pointer(self, ordinal: int | None = None) -> str:
        """The id in the notice that stands for the call of that ordinal (from 1), or in the newest notice."""
        if ordinal is None:
            found = [match for text in self.results.values() for match in POINTER.findall(text)]
        else:
            found = POINTER.findall(self.results[self.call_ids[ordinal - 1]])
        if not found:
            raise ScriptError(f"no notice for call {ordinal or 'any'}")
        return str(found[-1])

    @property
    def next_offset(self) -> int:
        """Where the last result says to go on; 0 when it says nothing of the kind."""
        last = self.messages[-1]
        if last["role"] != "tool":
            return 0
        try:
            page = json.loads(text_of(last))
        except ValueError:
            return 0
        return int(page.get("next_offset") or 0) if isinstance(page, dict) else 0

    def fill(self, value: Any) -> Any:
        """The value with its templates resolved, at any depth; a lone `{next_offset}` becomes a number."""
        if isinstance(value, str):
            return self.next_offset if value == "{next_offset}" else _TEMPLATE.sub(self._resolve, value)
        if isinstance(value, Mapping):
            return {key: self.fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        return value

    def _resolve(self, match: re.Match[str]) -> str:
        word, ordinal = match.groups()
        if word == "next_offset":
            return str(self.next_offset)
        return self.pointer(int(ordinal) if ordinal else None)


Script = Callable[[Conversation], Step]


class Steps:
    """A script that walks a list of steps, given as objects or as JSON."""

    def __init__(self, steps: Sequence[Step | Mapping[str, Any]]) -> None:
        self._steps = [step if isinstance(step, Step) else Step.from_json(step) for step in steps]
        self._said = 0

    def __call__(self, conversation: Conversation) -> Step:
        if self._said and self._steps[self._said - 1].page and conversation.next_offset:
            return self._steps[self._said - 1]
        if self._said < len(self._steps):
            self._said += 1
        elif self._steps[-1].calls:
            raise ScriptError("the script ended with a call and the host asked on")
        return self._steps[self._said - 1]


def text_of(message: Message) -> str:
    """The text of a message, parts joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return content or ""


class ModelServer:
    """The server, as a context manager.

    `requests` holds the bodies of the model's own turns in order, `errands` those without tools, `failures` what the
    script could not do. `script` may be replaced between two runs of a host.
    """

    def __init__(
        self, script: Script, *, log: Path | None = None, usage: Usage = "real", context_length: int = 65_536
    ) -> None:
        self.script = script
        self.usage: Usage = usage
        self.context_length = context_length
        self.requests: list[dict[str, Any]] = []
        self.errands: list[dict[str, Any]] = []
        self.failures: list[str] = []
        self._log = log
        self._calls = 0
        self._lock = threading.Lock()
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Base URL, with `/v1`."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def conversations(self) -> list[Conversation]:
        """The model's turns as conversations, in order."""
        return [Conversation.of(body) for body in self.requests]

    def answer(self, body: dict[str, Any]) -> Failure | Message:
        """Record a request and say what comes back: an error or the assistant's message."""
        conversation = Conversation.of(body)
        with self._lock:
            self._write({"path": "/v1/chat/completions", "body": body})
            if not conversation.tools:
                self.errands.append(body)
                return {"role": "assistant", "content": "A short answer."}
            self.requests.append(body)
            try:
                step = self.script(conversation)
                return step.error or self._message(step, conversation)
            except (ScriptError, LookupError) as error:
                self.failures.append(f"{type(error).__name__}: {error}")
                return {"role": "assistant", "content": f"The script failed: {error}"}

    def note(self, method: str, path: str) -> None:
        """Record a request that asks the model nothing."""
        with self._lock:
            self._write({"method": method, "path": path})

    def usage_of(self, body: Mapping[str, Any]) -> dict[str, int] | None:
        """What the provider counts: a quarter of the characters, zeros, or nothing."""
        if self.usage == "none":
            return None
        sent = json.dumps([body.get("messages"), body.get("tools")], ensure_ascii=False)
        prompt, completion = (len(sent) // 4, 20) if self.usage == "real" else (0, 0)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    def _message(self, step: Step, conversation: Conversation) -> Message:
        message: Message = {"role": "assistant", "content": conversation.fill(step.text)}
        for call in step.calls:
            if call.name not in conversation.tools:
                raise ScriptError(f"the host offers no tool {call.name}")
            self._calls += 1
            arguments = json.dumps(conversation.fill(call.arguments), ensure_ascii=False)
            function = {"name": call.name, "arguments": arguments}
            entry = {"id": f"call_{self._calls:03d}", "type": "function", "function": function}
            message.setdefault("tool_calls", []).append(entry)
        return message

    def _write(self, record: Mapping[str, Any]) -> None:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(record) + "\n")


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """The tests read the recorded requests, not an access log."""

    @property
    def _model(self) -> ModelServer:
        return cast("_Http", self.server).model

    def do_GET(self) -> None:
        self._model.note("GET", self.path)
        if self.path.rstrip("/") != "/v1/models":
            return self._json(404, {"error": {"message": "not found"}})
        entry = {"id": MODEL, "object": "model", "context_length": self._model.context_length}
        return self._json(200, {"object": "list", "data": [entry]})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._model.note("POST", self.path)
            return self._json(404, {"error": {"message": "not found"}})
        body = json.loads(raw)
        reply = self._model.answer(body)
        if isinstance(reply, Failure):
            error = {"message": reply.message, "type": "invalid_request_error", "code": reply.code}
            return self._json(reply.status, {"error": error})
        usage = self._model.usage_of(body)
        if body.get("stream"):
            return self._events(_chunks(reply, usage))
        return self._json(200, _whole(reply, usage))

    def _json(self, status: int, value: object) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _events(self, chunks: Iterator[dict[str, Any]]) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
        self.wfile.flush()


def _whole(message: Message, usage: dict[str, int] | None) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": _finish(message), "message": message}
    return {**_HEAD, "object": "chat.completion", "choices": [choice], **({"usage": usage} if usage else {})}


def _chunks(message: Message, usage: dict[str, int] | None) -> Iterator[dict[str, Any]]:
    """The message in the pieces providers send: role, text and arguments in halves, the reason, the usage."""
    head: dict[str, Any] = {**_HEAD, "object": "chat.completion.chunk"}

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _halves(str(message["content"])):
        yield chunk({"content": piece})
    for index, call in enumerate(message.get("tool_calls", ())):
        named = {"name": call["function"]["name"], "arguments": ""}
        yield chunk({"tool_calls": [{**call, "index": index, "function": named}]})
        for piece in _halves(call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(message))
    if usage:
        yield {**head, "choices": [], "usage": usage}


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def _finish(message: Message) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def main() -> None:
    """Serve a JSON script until stopped."""
    parser = argparse.ArgumentParser(description="scripted chat-completions server on loopback")
    parser.add_argument("--script", type=Path, required=True, help="JSON list of steps")
    parser.add_argument("--portfile", type=Path, required=True, help="where the port is written")
    parser.add_argument("--log", type=Path, help="JSON lines of all requests")
    parser.add_argument("--usage", choices=("real", "none", "zero"), default="real")
    parser.add_argument("--context-length", type=int, default=65_536)
    options = parser.parse_args()
    script = Steps(json.loads(options.script.read_text(encoding="utf-8")))
    with ModelServer(script, log=options.log, usage=options.usage, context_length=options.context_length) as server:
        options.portfile.write_text(server.url.rsplit(":", 1)[1].split("/")[0], encoding="utf-8")
        threading.Event().wait()


if __name__ == "__main__":
    main()
