"""The checks on the store, the status, the logs, the receipts, threads and time."""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import case_store
from case_messages import strings, text_of
from case_run import OUR_STORE, Run
from case_words import CaseFailed, check, need
from case_worker import same

THREAD_GRACE_S = 2.0
LEAST_CHARS = 100

# -- store -------------------------------------------------------------------------------------------------------


def _stores(run: Run) -> list[Path]:
    return [home / OUR_STORE for home in run.homes]


def _files(run: Run) -> list[Path]:
    """Every file of the store; there must be some."""
    found = [path for store in _stores(run) for path in case_store.files(store)]
    need(bool(found), "the store has no file")
    return found


@check
def store_blob_count_for_text(run: Run, of: str, equals: int) -> None:
    for content in run.originals(of):
        count = sum(case_store.copies(store, [content]) for store in _stores(run))
        need(count == equals, f"the text of {of} is stored {count} times")


@check
def store_blob_count_max(run: Run, max: int) -> None:
    """How many copies of results are stored, of all results together. Very short texts could stand anywhere."""
    results = [content for content in run.all_originals() if len(text_of(content)) >= LEAST_CHARS]
    count = sum(case_store.copies(store, results) for store in _stores(run))
    need(0 < count <= max, f"{count} originals are stored")


@check
def store_bytes_max(run: Run, max: int) -> None:
    size = sum(path.stat().st_size for path in _files(run))
    need(size <= max, f"the store has {size} bytes")


@check
def store_file_mode_max(run: Run, mode: str) -> None:
    for path in _files(run):
        _mode(path, mode)


@check
def store_dir_mode_max(run: Run, mode: str) -> None:
    for path in {path.parent for path in _files(run)}:
        _mode(path, mode)


def _mode(path: Path, mode: str) -> None:
    found = stat.S_IMODE(path.stat().st_mode)
    need(not found & ~int(mode, 8), f"{path.name} has the mode {found:04o}")


@check
def no_files_outside_store(run: Run) -> None:
    """Nothing under the folders of this run but what is in a store, or what the host lays down in a new home."""
    outside = [
        path
        for path in case_store.files(run.folders.world)
        if path not in run.laid_down and not any(path.is_relative_to(store) for store in _stores(run))
    ]
    need(not outside, f"files outside the store: {[str(path.relative_to(run.folders.world)) for path in outside]}")


@check
def files_under(run: Run, dir: str, min: int = 1, max: int | None = None) -> None:
    count = len(case_store.files(Path(run.filled(dir))))
    need(count >= min, f"{count} files under {dir}")
    need(max is None or count <= max, f"{count} files under {dir}")


@check
def store_integrity_ok(run: Run) -> None:
    named = [path for store in _stores(run) for path in case_store.databases(store)]
    need(bool(named), "the store has no database")
    for path in named:
        faults = case_store.integrity(path)
        need(not faults, f"{path.name}: {faults[:3]}")


# -- status ------------------------------------------------------------------------------------------------------


def _status(run: Run, of: str | None) -> Mapping[str, Any]:
    value = run.value("call", method="get_status") if of is None else run.saved.get(of)
    if not isinstance(value, Mapping):
        raise CaseFailed(f"the status {of or 'now'} is {value!r:.100}")
    return value


@check
def status_field(run: Run, field: str, equals: Any, of: str | None = None) -> None:
    status = _status(run, of)
    need(field in status, f"the status has no {field}")
    need(same(status[field], equals), f"{field} is {status[field]!r}")


@check
def status_field_range(run: Run, field: str, min: float, max: float, of: str | None = None) -> None:
    value = _status(run, of).get(field)
    _range(field, value, min, max)


def _range(name: str, value: Any, least: float | None, most: float | None) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    need(number, f"{name} is {value!r}, no number")
    need(least is None or value >= least, f"{name} is {value}")
    need(most is None or value <= most, f"{name} is {value}")


@check
def status_has(run: Run, field: str | None = None, fields: list[str] | None = None, of: str | None = None) -> None:
    wanted = ([field] if field else []) + list(fields or [])
    need(bool(wanted), "the check names no field")
    status = _status(run, of)
    missing = [name for name in wanted if name not in status]
    need(not missing, f"the status has no {missing}")


@check
def status_not_contains(run: Run, text: str, of: str | None = None) -> None:
    said = "\n".join(strings(_status(run, of)))
    need(text not in said, f"the status says {text!r}")


@check
def outcome_not(run: Run, value: str) -> None:
    outcome = _status(run, None).get("outcome")
    need(isinstance(outcome, str) and bool(outcome), f"the status names no outcome: {outcome!r}")
    need(outcome != value, f"the outcome is {outcome}")


_CAUSES = {
    "store": r"not (?:be )?(?:stored|saved)|disk|writable|read-only|cannot be (?:written|made|opened)|not a folder",
    "key": r"\bkey\b",
    "judge": r"judge_failed|bad_response|transient|fail|no (?:usable )?answer|not (?:valid )?JSON|unreachable|HTTP",
    "nothing": r"nothing|not worth|gain|no progress|too (?:small|little)",
}


@check
def status_mentions_reason(run: Run) -> None:
    """What is wrong in this case is named in a text of the status that was not there from the start; a missing key
    may be said at once."""
    cause = _cause(run)
    now = set(strings(list(_status(run, None).values())))
    before = set() if cause == "key" else set(strings(list(run.first_status.values())))
    said = sorted(now - before)
    found = [text for text in said if re.search(_CAUSES[cause], text, re.I)]
    need(bool(found), f"nothing in the status names the cause ({cause}): {said}")


def _cause(run: Run) -> str:
    if run.case.config.get("fault"):
        return "store"
    if run.fake["mode"] == "no_key":
        return "key"
    return "nothing" if run.fake["mode"] == "ok" else "judge"


# -- attributes that the host reads --------------------------------------------------------------------------------


def _attribute(run: Run, name: str, step: int) -> Any:
    attributes = run.steps[step].attributes
    need(name in attributes, f"the engine has no attribute {name}")
    return attributes[name]


@check
def engine_attr(
    run: Run, name: str, equals: Any = None, min: float | None = None, max: float | None = None, step: int = -1
) -> None:
    """The attribute as it was after a step, the last one if none is named."""
    value = _attribute(run, name, step)
    if (min, max) != (None, None):
        _range(name, value, min, max)
    else:
        need(same(value, equals), f"{name} is {value!r}")


@check
def engine_attr_after_step(
    run: Run, step: int, name: str, equals: Any = None, min: float | None = None, max: float | None = None
) -> None:
    engine_attr(run, name, equals, min, max, step)


@check
def engine_attr_present(run: Run, name: str | None = None, names: list[str] | None = None) -> None:
    wanted = ([name] if name else []) + list(names or [])
    need(bool(wanted), "the check names no attribute")
    for one in wanted:
        _attribute(run, one, -1)


# -- logs and receipts ---------------------------------------------------------------------------------------------


@check
def logs_not_contain(run: Run, text: str) -> None:
    """Log records of every process of this run, with tracebacks; what went to stdout and stderr; log files."""
    records = [*run.logs, *run.value("logs")]
    need(bool(records), "nothing was logged at all")
    files = [path for home in run.homes for path in case_store.files(home / "logs")]
    written = [run.folders.stderr.read_text(encoding="utf-8", errors="replace")]
    written += [path.read_text(encoding="utf-8", errors="replace") for path in files]
    said = [record["text"] for record in records] + written
    holding = [line for line in said if text in line]
    need(not holding, f"a log says {text!r}")


def _decisions(run: Run, of: str | None) -> list[Mapping[str, Any]]:
    receipts = run.saved[of] if of is not None else case_store.receipts(run.folders.store)
    found = [decision for receipt in receipts for decision in receipt.get("decisions", [])]
    need(bool(found), "no receipt names a decision")
    return found


@check
def log_has_entry(
    run: Run,
    tool_call_id: str | None = None,
    of: str | None = None,
    fields: list[str] | None = None,
    **expected: Any,
) -> None:
    """A decision in the receipts: of that call if one is named, with those fields, and with those values."""
    decisions = _decisions(run, of)
    if tool_call_id is not None:
        wanted = run.pointer_of(tool_call_id)
        decisions = [decision for decision in decisions if decision.get("pointer") == wanted]
    fitting = [
        decision
        for decision in decisions
        if set(fields or []) <= decision.keys() and all(same(decision.get(k), v) for k, v in expected.items())
    ]
    need(bool(fitting), f"none of {len(decisions)} decisions has {fields or []} and {expected}")


@check
def log_counts_regret(run: Run, equals: int | None = None, min: int = 1) -> None:
    count = sum(_regrets(case_store.receipts(run.folders.store)))
    need(count == equals if equals is not None else count >= min, f"{count} regrets are counted")


def _regrets(value: Any) -> Iterator[int]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if "regret" in key and isinstance(item, int):
                yield int(item)
            else:
                yield from _regrets(item)
    elif isinstance(value, list):
        for item in value:
            yield from _regrets(item)


@check
def listener_events(run: Run, min: int, fields: list[str]) -> None:
    """What a listener heard: `min` events, each with a phase, the last one with every field."""
    events = run.value("events")
    need(len(events) >= min, f"{len(events)} events")
    need(all(isinstance(event, Mapping) and "phase" in event for event in events), f"{events!r:.300}")
    missing = [name for name in fields if name not in events[-1]]
    need(not missing, f"the last event has no {missing}")


# -- steps, threads and time ---------------------------------------------------------------------------------------


@check
def step_expectations(run: Run) -> None:
    """Every step that names an expected value gave it."""
    expecting = [(number, step) for number, step in enumerate(run.steps) if "expect" in step.params]
    need(bool(expecting), "no step names an expected value")
    for number, step in expecting:
        wanted = step.params["expect"]
        need(same(step.value, wanted), f"step {number} ({step.op}) gave {step.value!r}, not {wanted!r}")


@check
def step_expectations_if_supported(run: Run) -> None:
    """As `step_expectations`: the largest answer, which the host's method has no place for, is a setting here."""
    step_expectations(run)


@check
def preflight_equals(run: Run, value: bool) -> None:
    found = [step.value for step in run.steps if step.op == "preflight"]
    need(bool(found), "no step ran the preflight")
    need(same(found[-1], value), f"the preflight says {found[-1]!r}")


@check
def wall_seconds(run: Run, max: float) -> None:
    seconds = sum(step.seconds for step in run.steps)
    need(seconds <= max, f"the steps took {seconds:.1f} s")


@check
def no_leftover_threads(run: Run) -> None:
    names = run.value("running_threads", grace=THREAD_GRACE_S)
    need(not names, f"threads still run: {names}")
