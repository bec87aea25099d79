"""The process in which a case's engine lives; started with a host's python, talks in JSON lines.

One process imports the engine once and forks a child for each `begin` line it reads. The child takes over the two
streams, builds a fresh engine in the environment it was given, answers one line per line until `end`, and leaves. So
every case has a process of its own at the price of a fork. Every answer is an object with `error` (type, text,
traceback) or `value`, and with `seconds`. Standard library only.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
import json
import logging
import os
import pathlib
import re
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, TextIO

ENGINE_VARIABLE = "HERMES_JEV_CASE_ENGINE"
DEFAULT_ENGINE = "hermes_jev.engine:JevEngine"
HOST_ATTRIBUTES = (
    *("name", "last_prompt_tokens", "last_completion_tokens", "last_total_tokens", "threshold_tokens"),
    *("context_length", "compression_count", "threshold_percent", "protect_first_n", "protect_last_n"),
)
LOADED_ONCE = ("anyio._backends._asyncio", "certifi", "h11", "httpcore")
"""What an HTTP client imports at its first request: here once, not in every child."""

MAX_PAGES = 2_000
_POINTER = re.compile(r'expand\(id="([^"\s]+)"\)')
_NOTICE = "[hermes_jev: "


class Clock:
    """The clocks of this process, moved by `offset` seconds. Installed before the engine is imported, so that a
    function taken from the module by name moves too."""

    def __init__(self) -> None:
        self.offset = 0.0

    def install(self) -> None:
        for name in ("time", "monotonic"):
            setattr(time, name, self._seconds(getattr(time, name)))
            setattr(time, f"{name}_ns", self._nanoseconds(getattr(time, f"{name}_ns")))

    def _seconds(self, real: Callable[[], float]) -> Callable[[], float]:
        return lambda: real() + self.offset

    def _nanoseconds(self, real: Callable[[], int]) -> Callable[[], int]:
        return lambda: real() + int(self.offset * 1e9)


CLOCK = Clock()


class Records(logging.Handler):
    """Every log record of the process, formatted with its traceback."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[dict[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append({"level": record.levelname, "logger": record.name, "text": self.format(record)})


def failure(error: BaseException) -> dict[str, str]:
    return {
        "type": type(error).__name__,
        "text": str(error),
        "traceback": "".join(traceback.format_exception(error)),
    }


def same(left: Any, right: Any) -> bool:
    """Equal in value and, at every depth, in type."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def scalars(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if isinstance(value, bool | int | float | str | None)}


class Desk:
    """The operations on one engine. Each method named `on_<op>` takes the request and returns the value."""

    def __init__(self, begin: dict[str, Any], records: Records, factory: Callable[[], Any]) -> None:
        self.begin = begin
        self.factory = factory
        self.records = records
        self.engine = self.build(begin["context_length"])
        self.threads: dict[str, tuple[threading.Thread, list[dict[str, Any]]]] = {}
        self.events: list[Any] = []
        if (session := begin.get("session")) is not None:
            self.engine.on_session_start(session, **begin.get("session_kwargs", {}))

    def build(self, context_length: int) -> Any:
        engine = self.factory()
        engine.update_model(
            model="fake",
            context_length=context_length,
            base_url="",
            api_key="",
            provider="custom",
            api_mode="chat_completions",
        )
        return engine

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out one request. What the engine raises is part of the answer: the checks judge it."""
        started = time.perf_counter()
        try:
            reply = {"value": getattr(self, "on_" + request["op"])(request)}
        except Exception as error:  # noqa: BLE001 - whatever the engine raises is what the case is about
            reply = {"error": failure(error)}
        reply["seconds"] = time.perf_counter() - started
        reply["attributes"] = self.attributes()
        return reply

    def attributes(self) -> dict[str, Any]:
        named = {name: getattr(self.engine, name) for name in HOST_ATTRIBUTES if hasattr(self.engine, name)}
        return scalars({**vars(self.engine), **named})

    def on_compress(self, request: dict[str, Any]) -> dict[str, Any]:
        messages = request["messages"]
        before = copy.deepcopy(messages)
        result = self.engine.compress(messages, **request.get("kwargs", {}))
        return {
            "messages": result,
            "same_object": result is messages,
            "mutated": not same(before, messages),
        }

    def on_call(self, request: dict[str, Any]) -> Any:
        return getattr(self.engine, request["method"])(*request.get("args", []), **request.get("kwargs", {}))

    def on_tool(self, request: dict[str, Any]) -> Any:
        return self.engine.handle_tool_call(request["name"], request["args"], messages=request["messages"])

    def on_pages(self, request: dict[str, Any]) -> list[Any]:
        return pages(self.engine, request["args"], request["messages"])

    def on_thread_start(self, request: dict[str, Any]) -> None:
        answers: list[dict[str, Any]] = []
        thread = threading.Thread(target=lambda: answers.append(self.answer(request["job"])))
        self.threads[request["name"]] = (thread, answers)
        thread.start()

    def on_thread_join(self, request: dict[str, Any]) -> dict[str, Any]:
        thread, answers = self.threads.pop(request["name"])
        thread.join(request["timeout"])
        if not answers:
            raise TimeoutError("the thread did not finish")
        return answers[0]

    def on_parallel(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        names = [f"parallel {number}" for number in range(len(request["jobs"]))]
        for name, job in zip(names, request["jobs"], strict=True):
            self.on_thread_start({"name": name, "job": job})
        return [self.on_thread_join({"name": name, "timeout": request["timeout"]}) for name in names]

    def on_processes(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Each job in a process of its own, all at once: compress, then expand every pointer."""
        return in_processes([functools.partial(self._store_and_expand, job) for job in request["jobs"]])

    def _store_and_expand(self, job: dict[str, Any]) -> dict[str, Any]:
        self.engine = self.build(self.begin["context_length"])
        self.engine.on_session_start(job["session"])
        reply = self.answer({**job, "op": "compress"})
        messages = reply.get("value", {}).get("messages", [])
        replies = {str(at): pages(self.engine, {"id": found}, messages) for at, found in pointers(messages)}
        return {**reply, "pages": replies}

    def on_new_engine(self, request: dict[str, Any]) -> dict[str, Any]:
        """Another engine under other settings; the first one is untouched."""
        kept, mark = dict(os.environ), len(self.records.lines)
        try:
            os.environ.update(request["env"])
            engine = self.build(self.begin["context_length"])
            status = engine.get_status()
        finally:
            os.environ.clear()
            os.environ.update(kept)
        return {"attributes": scalars(vars(engine)), "status": status, "logs": self.records.lines[mark:]}

    def on_accepts(self, request: dict[str, Any]) -> bool:
        """Whether a method of the engine has a parameter of its own by that name."""
        return request["parameter"] in inspect.signature(getattr(self.engine, request["method"])).parameters

    def on_listen(self, request: dict[str, Any]) -> None:
        self.engine.add_listener(self._fail if request.get("failing") else self.events.append)

    @staticmethod
    def _fail(event: Any) -> None:
        raise RuntimeError("a listener that fails")

    def on_events(self, request: dict[str, Any]) -> list[Any]:
        return self.events

    def on_logs(self, request: dict[str, Any]) -> list[dict[str, str]]:
        return self.records.lines

    def on_clock(self, request: dict[str, Any]) -> None:
        CLOCK.offset += request["seconds"]

    def on_file_limit(self, request: dict[str, Any]) -> None:
        limit_files(request["bytes"])

    def on_running_threads(self, request: dict[str, Any]) -> list[str]:
        """Names of threads beside the main one that are still there after at most `grace` seconds."""
        deadline = time.perf_counter() + request["grace"]
        while (others := others_running()) and time.perf_counter() < deadline:
            time.sleep(0.02)
        return others


def others_running() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]


def limit_files(size: int) -> None:
    """A disk that is full at `size` bytes a file: the write fails, as it does on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


def pages(engine: Any, args: dict[str, Any], messages: list[Any]) -> list[Any]:
    """The replies of `expand` from the first page to the last, as they came."""
    replies: list[Any] = []
    offset: Any = 0
    while offset is not None and len(replies) < MAX_PAGES:
        reply = engine.handle_tool_call("expand", {**args, "offset": offset}, messages=messages)
        replies.append(reply)
        parsed = json.loads(reply)
        following = parsed.get("next_offset")
        offset = following if isinstance(following, int) and following > offset else None
    return replies


def pointers(messages: list[Any]) -> list[tuple[int, str]]:
    """(place of the message, pointer) of every notice at the end of a tool message."""
    found = []
    for at, message in enumerate(messages):
        content = message.get("content") if message.get("role") == "tool" else None
        line = content.rpartition("\n")[2] if isinstance(content, str) else ""
        if line.startswith(_NOTICE) and (match := _POINTER.search(line)):
            found.append((at, match[1]))
    return found


def in_processes(jobs: list[Callable[[], dict[str, Any]]]) -> list[dict[str, Any]]:
    """Run each job in a forked process; all start at the same moment."""
    gate_read, gate_write = os.pipe()
    running: list[tuple[int, int]] = []
    for job in jobs:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(gate_write)
            os.read(gate_read, 1)
            leave_with(job, write)
        os.close(write)
        running.append((child, read))
    os.close(gate_read)
    os.close(gate_write)
    results = []
    for child, read in running:
        with os.fdopen(read, encoding="ascii") as stream:
            text = stream.read()
        os.waitpid(child, 0)
        results.append(json.loads(text) if text else {"error": {"type": "Crash", "text": "no answer", "traceback": ""}})
    return results


def leave_with(job: Callable[[], dict[str, Any]], descriptor: int) -> None:
    try:
        result = job()
    except Exception as error:  # noqa: BLE001 - reported to the case, which judges it
        result = {"error": failure(error)}
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        json.dump(result, stream)
    os._exit(0)


def child(begin: dict[str, Any], requests: TextIO, answers: TextIO, factory: Callable[[], Any]) -> None:
    """Serve one case in this process."""
    present = prepare(begin)
    records = Records()
    logging.basicConfig(level=logging.DEBUG, handlers=[records], force=True)
    started = time.perf_counter()
    try:
        desk = Desk(begin, records, factory)
    except Exception as error:  # noqa: BLE001 - an engine that cannot be built is an answer
        write(answers, {"error": failure(error), "seconds": time.perf_counter() - started})
        return
    write(answers, {"value": present, "seconds": time.perf_counter() - started, "attributes": desk.attributes()})
    for line in iter(requests.readline, ""):
        request = json.loads(line)
        if request["op"] == "end":
            write(answers, {"value": None})
            return
        write(answers, desk.answer(request))


def prepare(begin: dict[str, Any]) -> list[str]:
    """The environment, folder, clock, streams and file limit of the case. Returns the files that the host itself
    lays down in a new home."""
    os.environ.clear()
    os.environ.update(begin["env"])
    time.tzset()
    os.chdir(begin["folder"])
    stream = os.open(begin["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for standard in (1, 2):
        os.dup2(stream, standard)
    os.close(stream)
    CLOCK.offset = begin.get("clock_offset", 0.0)
    if "hermes_cli.config" in sys.modules:
        sys.modules["hermes_cli.config"].ensure_hermes_home()
    present = [str(path) for path in pathlib.Path(begin["home"]).rglob("*") if path.is_file()]
    if (limit := begin.get("file_limit")) is not None:
        limit_files(limit)
    return present


def write(stream: TextIO, reply: dict[str, Any]) -> None:
    try:
        text = json.dumps(reply)
    except (TypeError, ValueError) as error:
        text = json.dumps({"error": failure(error), "seconds": 0.0})
    stream.write(text + "\n")
    stream.flush()


def main() -> None:
    requests = sys.stdin
    # The protocol's stream is taken out of reach: a stray print of the engine must not be read as an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    CLOCK.install()
    module, _, name = os.environ.get(ENGINE_VARIABLE, DEFAULT_ENGINE).partition(":")
    factory = getattr(importlib.import_module(module), name)
    for needed in LOADED_ONCE:
        with contextlib.suppress(ImportError):
            importlib.import_module(needed)
    write(answers, {"value": "ready"})
    for line in iter(requests.readline, ""):
        begin = json.loads(line)
        if "env" not in begin:
            # Meant for a child that is gone.
            write(answers, {"crash": None})
            continue
        pid = os.fork()
        if pid == 0:
            child(begin, requests, answers, factory)
            answers.flush()
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if status:
            write(answers, {"crash": status})


if __name__ == "__main__":
    main()
