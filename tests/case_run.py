"""One case, carried out: the working list, the steps, and what came of each.

Beside the working list runs `baseline`: the same list with every step applied but the engine's. What the checks call
the input is that one.
"""

from __future__ import annotations

import copy
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from case_config import fault_of, settings
from case_files import Case
from case_judge import KEY, CaseJudge, UnknownMode
from case_messages import Message, calls, pointer, results, slots
from case_process import Worker, WorkerGone
from case_words import OPERATIONS, CaseFailed, RunnerError, bind
from case_worker import same

OUR_STORE = "hermes_jev"


@dataclass
class Step:
    """What one step did.

    `before` is the working list as the step found it, `output` the list that `compress` returned, `reply` what a tool
    answered, as it came, `pages` the replies of `expand` by call id. `requests` is the range of scorer requests sent
    in it, `calls` the ids behind the ordinals they ask about. A step of several threads or processes has one entry of
    `inputs` and `outputs` for each.
    """

    op: str
    params: Mapping[str, Any]
    value: Any = None
    error: Mapping[str, str] | None = None
    seconds: float = 0.0
    attributes: Mapping[str, Any] = field(default_factory=dict)
    requests: range = range(0)
    calls: list[str | None] = field(default_factory=list)
    before: list[Message] = field(default_factory=list)
    output: list[Message] | None = None
    inputs: list[list[Message]] = field(default_factory=list)
    outputs: list[list[Message]] = field(default_factory=list)
    reply: Any = None
    pages: Mapping[str, list[Any]] = field(default_factory=dict)


class Folders:
    """The folders of one run, all under `root`, so that a write anywhere near them is seen."""

    def __init__(self, root: Path) -> None:
        self.world = root / "world"
        self.home = self.world / "a" / "b" / "home"
        self.scratch = self.world / "a" / "b" / "scratch"
        self.work = self.world / "a" / "b" / "work"
        self.user = self.world / "a" / "b" / "user"
        self.stderr = root / "stderr.txt"
        for folder in (self.home, self.scratch, self.work, self.user):
            folder.mkdir(parents=True)

    @property
    def store(self) -> Path:
        return self.home / OUR_STORE


class Run:
    """A case in work. Use as `with Run(…).started() as run: run.play()`."""

    def __init__(
        self,
        case: Case,
        worker: Worker,
        judge: CaseJudge,
        folders: Folders,
        *,
        restarted: Callable[[Mapping[str, str]], Worker],
        mode: str | None = None,
        file_limit: int | None = None,
    ) -> None:
        """`restarted` starts another interpreter with more environment. `mode` replaces the scorer's first mode;
        `file_limit` is the size in bytes at which the disk is full."""
        self.case = case
        self.judge = judge
        self.folders = folders
        self.fake = {**case.fake_jev, **({"mode": mode} if mode else {})}
        self.file_limit = file_limit
        self.messages: list[Message] = copy.deepcopy(case.messages)
        self.baseline: list[Message] = copy.deepcopy(case.messages)
        self.steps: list[Step] = []
        self.history: list[list[Message]] = []
        self.saved: dict[str, Any] = {}
        self.logs: list[dict[str, str]] = []
        self.first_status: Any = None
        self.homes: list[Path] = [folders.home]
        self.laid_down: set[Path] = set()
        self._originals: dict[str | None, list[Any]] = {}
        self._pointers: dict[str | None, str] = {}
        self._snapshots: dict[str, tuple[list[Message], list[Message]]] = {}
        self._restarted = restarted
        self._worker = worker
        self._first_worker = worker
        self._extra: dict[str, str] = {}
        self._clock = 0.0
        self.thread_inputs: list[list[Message]] = []
        self._remember(self.baseline)

    # -- the process ---------------------------------------------------------------------------------------------

    @contextmanager
    def started(self) -> Iterator[Run]:
        """The engine's process, from its start to its end."""
        self._break_what_the_case_breaks()
        if extra := self.filled(dict(self.case.config.get("env", {}))):
            self._in_new_interpreter(extra)
        try:
            self.judge.configure(self.fake)
        except UnknownMode as error:
            raise RunnerError(str(error)) from error
        self.judge.refuses = self.fake["mode"] == "connection_refused" and not any(
            step["op"] == "jev" for step in self.case.steps
        )
        self._begin()
        try:
            yield self
        finally:
            self.judge.release()
            self._end()

    def ask(self, op: str, **request: Any) -> dict[str, Any]:
        """One request to the engine's process."""
        return self._worker.ask({"op": op, **request})

    def value(self, op: str, **request: Any) -> Any:
        """The value of a request that must not fail."""
        reply = self.ask(op, **request)
        if "error" in reply:
            raise CaseFailed(f"{op}: {reply['error']['type']}: {reply['error']['text']}")
        return reply["value"]

    def add_home(self, home: str) -> None:
        """A folder that the host named as its home: a store may be there."""
        self.homes.append(Path(home))

    def _break_what_the_case_breaks(self) -> None:
        fault = fault_of(self.case)
        if fault.kind == "not writable":
            # A file where the folder should be: no user, root included, can write into that.
            self.folders.store.write_bytes(b"")

    def _begin(self) -> None:
        session = None if any(step["op"] == "session_start" for step in self.case.steps) else f"case-{self.case.id}"
        reply = self._worker.ask(
            {
                "env": self._environment(),
                "folder": str(self.folders.work),
                "home": str(self.folders.home),
                "stderr": str(self.folders.stderr),
                "clock_offset": self._clock,
                "context_length": self.case.config["context_length"],
                "session": session,
                "file_limit": self.file_limit,
            }
        )
        if "error" in reply:
            raise CaseFailed(f"the engine cannot be built: {reply['error']['traceback']}")
        self.laid_down |= {Path(name) for name in reply["value"] if OUR_STORE not in Path(name).parts}
        if self.first_status is None:
            self.first_status = self.value("call", method="get_status")

    def _end(self) -> None:
        try:
            self.logs.extend(self.ask("logs").get("value", []))
            self.ask("end")
        except WorkerGone as gone:
            self.logs.append({"level": "CRITICAL", "logger": "runner", "text": str(gone)})
        if self._worker is not self._first_worker:
            self._worker.end()
            self._worker = self._first_worker

    def _environment(self) -> dict[str, str]:
        folders = self.folders
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folders.user),
            "HERMES_HOME": str(folders.home),
            "TMPDIR": str(folders.scratch),
            **settings(self.case, self.fake),
            **self._extra,
        }
        if self.fake["mode"] != "no_key":
            environment |= {"TYPESAFE_API_KEY": KEY, "TYPESAFE_BASE_URL": self.judge.url}
        return environment

    # -- the steps -----------------------------------------------------------------------------------------------

    def play(self) -> None:
        """All steps of the case, in order. What the engine raises is recorded, and the next step follows."""
        for step in self.case.steps:
            self.step(step)

    def step(self, spec: Mapping[str, Any]) -> Step:
        """One step of the case."""
        step = Step(spec["op"], spec, before=copy.deepcopy(self.messages))
        self.steps.append(step)
        sent = len(self.judge.requests)
        started = time.perf_counter()
        self.perform(step, spec)
        step.seconds = time.perf_counter() - started
        step.requests = range(sent, len(self.judge.requests))
        return step

    def nested(self, spec: Mapping[str, Any]) -> Step:
        """A step inside another one: it has no number of its own."""
        step = Step(spec["op"], spec, before=copy.deepcopy(self.messages))
        self.perform(step, spec)
        return step

    def perform(self, step: Step, spec: Mapping[str, Any]) -> None:
        params = {key: value for key, value in spec.items() if key not in ("op", "expect")}
        handler = OPERATIONS.get(spec["op"])
        if handler is None:
            raise RunnerError(f"unknown action: {spec['op']}")
        bound = bind(handler, self, step, params=params, what=f"action {spec['op']}")
        handler(*bound.args, **bound.kwargs)
        self.history.append(copy.deepcopy(self.messages))

    def take(self, step: Step, reply: Mapping[str, Any]) -> Any:
        """Note in the step what the engine's process answered; the value, or None after an error."""
        step.error = reply.get("error", step.error)
        step.attributes = reply.get("attributes", step.attributes)
        step.value = reply.get("value")
        return step.value

    def compress(self, step: Step, kwargs: Mapping[str, Any]) -> None:
        self.expect_calls(self.messages)
        self.taken(step, self.ask("compress", messages=self.messages, kwargs=kwargs))

    def taken(self, step: Step, reply: Mapping[str, Any]) -> None:
        """Make what `compress` returned the working list."""
        value = self.take(step, reply)
        if value is None:
            return
        if not isinstance(value["messages"], list) or not value["messages"]:
            raise CaseFailed(f"compress returned {value['messages']!r:.80}")
        step.output = copy.deepcopy(value["messages"])
        self.messages = value["messages"]
        self._learn_pointers()

    def expect_calls(self, messages: list[Message]) -> None:
        """The scorer is asked by ordinal; which call that is follows from the list that is passed."""
        ids = [call.id for call in calls(messages)]
        self.steps[-1].calls = ids
        self.judge.expect_calls(ids)

    def _learn_pointers(self) -> None:
        for slot in slots(self.baseline, self.messages):
            after = slot.after.get("content") if slot.after else None
            found = None if same(after, slot.before.get("content")) else pointer(after)
            if found is not None:
                self._pointers.setdefault(slot.id, found)

    def _remember(self, messages: list[Message]) -> None:
        for _, message in results(messages):
            known = self._originals.setdefault(message.get("tool_call_id"), [])
            if not any(same(message.get("content"), other) for other in known):
                known.append(message.get("content"))

    def originals(self, call_id: str | None) -> list[Any]:
        """Every content that a result with that id ever came with, in order."""
        return self._originals.get(call_id, [])

    def all_originals(self) -> list[Any]:
        return [content for contents in self._originals.values() for content in contents]

    def pointer_of(self, call_id: str) -> str:
        """The id of a call's stored original, from the notice in the working list, else as first seen."""
        for _, message in results(self.messages, call_id):
            found = pointer(message.get("content"))
            if found is not None and not any(same(message.get("content"), other) for other in self.originals(call_id)):
                return found
        if call_id not in self._pointers:
            raise CaseFailed(f"no notice ever named a stored original of {call_id}")
        return self._pointers[call_id]

    def filled(self, value: Any) -> Any:
        """`$id:<call id>` and `$TMP` replaced, at any depth."""
        if isinstance(value, str):
            if value.startswith("$id:"):
                return self.pointer_of(value.removeprefix("$id:"))
            return value.replace("$TMP", str(self.folders.scratch))
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if isinstance(value, dict):
            return {key: self.filled(item) for key, item in value.items()}
        return value

    def tool(self, step: Step, name: str, args: Any) -> Any:
        step.reply = self.take(step, self.ask("tool", name=name, args=args, messages=self.messages))
        return step.reply

    def pages_of(self, pointer_id: str, part: str | None = None) -> list[Any]:
        """The replies of `expand`, from the first page to the last."""
        args = {"id": pointer_id, **({"part": part} if part else {})}
        pages: list[Any] = self.value("pages", args=args, messages=self.messages)
        return pages

    def both(self, change: Callable[[list[Message]], list[Message]]) -> None:
        """The same change to the working list and to the baseline."""
        self.messages = change(self.messages)
        self.baseline = change(self.baseline)
        self._remember(self.baseline)

    def restart(self, extra: Mapping[str, str], clock: float, wipe_store: bool) -> None:
        """The old process ends, a new one starts on the same home."""
        self._end()
        if wipe_store:
            for home in self.homes:
                shutil.rmtree(home / OUR_STORE, ignore_errors=True)
        self._clock += clock
        if extra:
            self._in_new_interpreter(extra)
        self._begin()

    def _in_new_interpreter(self, extra: Mapping[str, str]) -> None:
        """A hash seed or the like must be there when an interpreter starts."""
        self._extra |= extra
        if "HERMES_HOME" in extra:
            self.add_home(extra["HERMES_HOME"])
        self._worker = self._restarted(self._extra)

    def move_clock(self, seconds: float) -> None:
        self._clock += seconds
        self.value("clock", seconds=seconds)

    def snapshot(self, name: str) -> None:
        self._snapshots[name] = copy.deepcopy((self.messages, self.baseline))

    def restore(self, name: str) -> None:
        if name not in self._snapshots:
            raise RunnerError(f"no snapshot named {name}")
        self.messages, self.baseline = copy.deepcopy(self._snapshots[name])
