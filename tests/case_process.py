"""The runner's end of the worker process: start it, ask it, and end it in time."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from case_files import ROOT
from case_worker import ENGINE_VARIABLE

WORKER = Path(__file__).resolve().parent / "case_worker.py"
ANSWER_SECONDS = 60.0
"""How long one answer may take before the process is given up."""


class WorkerGone(Exception):
    """The worker process ended, or gave no answer in time."""


class Worker:
    """A process that imported the engine once and forks a child for each case."""

    def __init__(self, python: Path, engine: str | None, extra: Mapping[str, str] | None = None) -> None:
        """`engine` is "module:class" of another engine; None is the package's own. `extra` goes into the
        environment of the interpreter itself: a hash seed must be there when it starts."""
        # What the host does when it is imported belongs nowhere: each case gets a home of its own later.
        self._home = tempfile.TemporaryDirectory(prefix="case-worker-")
        environment = {**interpreter_environment(engine, self._home.name), **(extra or {})}
        self._process = subprocess.Popen(
            [python, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self._pending = bytearray()
        try:
            self.read()
        except WorkerGone as gone:
            message = self.end()
            raise WorkerGone(f"the worker does not start: {message.strip()[-2000:]}") from gone

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """One request, one answer."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(request).encode("ascii") + b"\n")
            stdin.flush()
        except BrokenPipeError as error:
            raise WorkerGone("the worker is gone") from error
        return self.read()

    def read(self) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None
        deadline = time.monotonic() + ANSWER_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while (end := self._pending.find(b"\n")) < 0:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.kill()
                    raise WorkerGone(f"no answer within {ANSWER_SECONDS:.0f} s")
                chunk = os.read(stdout.fileno(), 1 << 20)
                if not chunk:
                    raise WorkerGone("the worker ended without an answer")
                self._pending += chunk
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        answer: dict[str, Any] = json.loads(line)
        if "crash" in answer:
            raise WorkerGone(f"the engine's process died: wait status {answer['crash']}")
        return answer

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process and the children it forked: they share one process group, which is theirs alone."""
        if self.alive:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def end(self) -> str:
        """Kill, close the streams, and return what was written to stderr."""
        self.kill()
        self._process.wait()
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        text = stderr.read().decode("utf-8", "replace")
        for stream in (stdout, stderr):
            stream.close()
        # What is still buffered has no reader any more.
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        self._home.cleanup()
        return text

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.end()


def interpreter_environment(engine: str | None, home: str) -> dict[str, str]:
    """What every interpreter of a worker needs: where the package is, and which engine to import."""
    path = os.environ.get("PATH", os.defpath)
    fixed = {"PATH": path, "HOME": home, "HERMES_HOME": home, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return fixed if engine is None else {**fixed, ENGINE_VARIABLE: engine}
