"""From a case file to its verdict: run it, in every variant it asks for, and make its checks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import case_checks
import case_checks_back
import case_checks_judge
import case_checks_results
import case_checks_world
import case_steps
from case_config import fault_of
from case_expand import changed_slots
from case_files import Case
from case_judge import CaseJudge
from case_messages import results
from case_process import Worker, WorkerGone
from case_run import Folders, Run
from case_words import CHECKS, CaseFailed, RunnerError, bind

# Imported for what they register: the checks and the actions.
REGISTERED = (
    *(case_checks, case_checks_results, case_checks_back, case_checks_judge, case_checks_world),
    case_steps,
)

_BLOCK = 4096
_LARGEST_FILE = 4 << 20
_LARGE_CHARS = 400_000


class Workers:
    """The long-lived worker of each python, started when first asked for and again after it was lost."""

    def __init__(self, engine: str | None = None) -> None:
        self._engine = engine
        self._running: dict[Path, Worker] = {}

    def get(self, python: Path) -> Worker:
        known = self._running.get(python)
        if known is not None and not known.alive:
            known.end()
            known = None
        if known is None:
            known = self._running[python] = Worker(python, self._engine)
        return known

    def another(self, like: Worker, extra: Mapping[str, str]) -> Worker:
        """A new interpreter of the same python, with more environment."""
        python = next(python for python, worker in self._running.items() if worker is like)
        return Worker(python, self._engine, extra)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        for worker in self._running.values():
            worker.end()


def play(case: Case, worker: Worker, workers: Workers, folder: Path) -> list[str]:
    """What failed, a line each. Raises RunnerError when the runner cannot carry the case out."""
    unknown = [expected["check"] for expected in case.expect if expected["check"] not in CHECKS]
    if unknown:
        raise RunnerError(f"unknown check: {', '.join(unknown)}")
    case = _filling_the_disk(case)
    limit = _file_limit(case, worker, workers, folder)
    modes = [None, *case.fake_jev.get("also", [])]
    failures = []
    for number, mode in enumerate(modes):
        named = f"[{mode}] " if mode else ""
        with _started(case, worker, workers, folder / f"run{number}", mode, limit) as run:
            failures += [named + failure for failure in _failures(run)]
    return failures


@contextmanager
def _started(
    case: Case, worker: Worker, workers: Workers, folder: Path, mode: str | None, limit: int | None
) -> Iterator[Run]:
    def restarted(extra: Mapping[str, str]) -> Worker:
        return workers.another(worker, extra)

    with CaseJudge() as judge:
        run = Run(case, worker, judge, Folders(folder), restarted=restarted, mode=mode, file_limit=limit)
        with run.started():
            yield run


def _failures(run: Run) -> list[str]:
    try:
        run.play()
    except (CaseFailed, WorkerGone) as error:
        return [f"step {len(run.steps) - 1}: {error}"]
    failures = [failure for expected in run.case.expect if (failure := _failure(run, expected))]
    if run.judge.strange:
        failures.append(f"the scorer was asked about calls that do not exist: {run.judge.strange[:3]}")
    return [*failures, *_what_was_logged(run)] if failures else []


def _what_was_logged(run: Run) -> list[str]:
    """The engine's own words about what went on, to go with the failures."""
    try:
        records = [*run.logs, *run.value("logs")]
    except WorkerGone:
        return []
    own = [record for record in records if record["logger"].startswith("hermes_jev")]
    return [f"log: {record['level']} {record['text']}" for record in own]


def _failure(run: Run, expected: Mapping[str, Any]) -> str:
    params = {key: value for key, value in expected.items() if key != "check"}
    function = CHECKS[expected["check"]]
    bound = bind(function, run, params=params, what=f"check {expected['check']}")
    try:
        function(*bound.args, **bound.kwargs)
    except (CaseFailed, WorkerGone) as error:
        return f"{expected['check']}: {error}"
    return ""


def verdict(case: Case, failures: list[str]) -> None:
    """Raise CaseFailed with everything that failed."""
    if failures:
        raise CaseFailed("\n".join([f"{case.name} ({case.level})", *failures]))


def _filling_the_disk(case: Case) -> Case:
    """For a disk that is full from the n-th original on: that one is made large, of text that does not pack well.
    Short ones share a page of a database, so that no disk is full between two of them."""
    fault = fault_of(case)
    if fault.kind != "full partway":
        return case
    at, message = results(case.messages)[fault.first - 1]
    digests = "".join(hashlib.sha256(str(number).encode()).hexdigest() for number in range(_LARGE_CHARS // 64))
    heavy = {**message, "content": f"{message['content']}\n{digests}"}
    return replace(case, messages=[*case.messages[:at], heavy, *case.messages[at + 1 :]])


def _file_limit(case: Case, worker: Worker, workers: Workers, folder: Path) -> int | None:
    """The file size, in bytes, at which the disk of this case is full.

    Where it must be full partway, that size is searched: the largest, in blocks, with which not every original finds
    room.
    """
    fault = fault_of(case)
    if fault.kind != "full partway":
        return 0 if fault.kind == "full" else None
    trials = folder / "trials"
    wanted = _shortened(case, worker, workers, trials / "free", None)
    if wanted == 0:
        raise CaseFailed("nothing is shortened even with room on the disk")
    low, high = 0, _LARGEST_FILE // _BLOCK
    while high - low > 1:
        middle = (low + high) // 2
        if _shortened(case, worker, workers, trials / str(middle), middle * _BLOCK) < wanted:
            low = middle
        else:
            high = middle
    return low * _BLOCK


def _shortened(case: Case, worker: Worker, workers: Workers, folder: Path, limit: int | None) -> int:
    with _started(case, worker, workers, folder, None, limit) as run:
        run.play()
        return len(changed_slots(run))
