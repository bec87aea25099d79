"""The actions of the case files: one function each, by its name there."""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Mapping
from typing import Any

import case_store
from case_config import variables
from case_files import fill
from case_judge import UnknownMode
from case_messages import Message, results, shortened
from case_run import Run, Step
from case_words import CaseFailed, RunnerError, operation

PAUSE_SECONDS = 10.0
THREAD_SECONDS = 30.0


def _call(run: Run, step: Step, method: str, *args: Any, **kwargs: Any) -> Any:
    return run.take(step, run.ask("call", method=method, args=list(args), kwargs=kwargs))


# -- the engine --------------------------------------------------------------------------------------------------


@operation
def compress(run: Run, step: Step, **kwargs: Any) -> None:
    run.compress(step, kwargs)


@operation
def should_compress(run: Run, step: Step, **prompt_tokens: Any) -> None:
    if prompt_tokens.keys() - {"prompt_tokens"}:
        raise RunnerError(f"should_compress: {sorted(prompt_tokens)}")
    _call(run, step, "should_compress", *prompt_tokens.values())


@operation
def preflight(run: Run, step: Step) -> None:
    _call(run, step, "should_compress_preflight", run.messages)


@operation
def has_content(run: Run, step: Step) -> None:
    _call(run, step, "has_content_to_compress", run.messages)


@operation
def usage(run: Run, step: Step, prompt_tokens: int, completion_tokens: int = 0, **more: Any) -> None:
    total = prompt_tokens + completion_tokens
    counts = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, "total_tokens": total}
    _call(run, step, "update_from_response", {**counts, **more})


@operation
def usage_raw(run: Run, step: Step, usage: Any) -> None:
    _call(run, step, "update_from_response", usage)


@operation
def update_model(
    run: Run, step: Step, model: str, context_length: Any, kwargs: Mapping[str, Any] | None = None
) -> None:
    given = dict(kwargs or {})
    # The runner passes the largest answer as a setting when the engine's method, like the host's, has no place for it.
    if "max_tokens" in given and not run.value("accepts", method="update_model", parameter="max_tokens"):
        del given["max_tokens"]
    fixed = {"base_url": "", "api_key": "", "provider": "custom", "api_mode": "chat_completions"}
    _call(run, step, "update_model", **{**fixed, "model": model, "context_length": context_length, **given})


@operation
def session_start(run: Run, step: Step, session_id: str, kwargs: Mapping[str, Any] | None = None) -> None:
    given = run.filled(dict(kwargs or {}))
    if "hermes_home" in given:
        run.add_home(given["hermes_home"])
    _call(run, step, "on_session_start", session_id, **given)


@operation
def session_end(run: Run, step: Step, session_id: str, messages: list[Message] | None = None) -> None:
    _call(run, step, "on_session_end", session_id, run.messages if messages is None else messages)


@operation
def session_reset(run: Run, step: Step) -> None:
    _call(run, step, "on_session_reset")


@operation
def status(run: Run, step: Step, save: str | None = None) -> None:
    _call(run, step, "get_status")
    if save is not None:
        run.saved[save] = step.value


@operation
def schemas(run: Run, step: Step, host_tools: list[str] | None = None) -> None:
    _call(run, step, "get_tool_schemas")


@operation
def restart_engine(
    run: Run, step: Step, env: Mapping[str, str] | None = None, clock_shift_s: float = 0.0, wipe_store: bool = False
) -> None:
    run.restart(env or {}, clock_shift_s, wipe_store)


@operation
def new_engine_expect_error_or_clamp(run: Run, step: Step, config: Mapping[str, Any]) -> None:
    """The engine must refuse the value aloud, or say that it keeps another one; either way its numbers are finite."""
    reply = run.ask("new_engine", env=variables(config))
    step.value = reply.get("value")
    if error := reply.get("error"):
        if error["type"] not in ("ValueError", "ValidationError", "ConfigError"):
            step.error = error
        return
    told = json.dumps([step.value["status"], [line for line in step.value["logs"] if line["level"] != "DEBUG"]])
    names = [name.removeprefix("HERMES_JEV_") for name in variables(config)]
    if not any(name in told.upper() for name in names):
        raise CaseFailed(f"{dict(config)} is taken without a word")
    numbers = [value for value in step.value["attributes"].values() if isinstance(value, float)]
    if any(not -1e12 < number < 1e12 for number in numbers):
        raise CaseFailed(f"{dict(config)} leaves a number that is not finite")


# -- the working list --------------------------------------------------------------------------------------------


@operation
def append(run: Run, step: Step, messages: list[Message]) -> None:
    added = run.filled(messages)
    run.both(lambda given: given + copy.deepcopy(added))


@operation
def insert_messages(run: Run, step: Step, at: int, messages: list[Message]) -> None:
    added = run.filled(messages)
    run.both(lambda given: given[:at] + copy.deepcopy(added) + given[at:])


@operation
def replace_messages(run: Run, step: Step, messages: list[Message]) -> None:
    run.both(lambda given: copy.deepcopy(messages))


@operation
def reset_messages(run: Run, step: Step) -> None:
    run.both(lambda given: copy.deepcopy(run.case.messages))


@operation
def truncate_messages(run: Run, step: Step, keep: int) -> None:
    run.both(lambda given: given[:keep])


@operation
def snapshot_messages(run: Run, step: Step, save: str) -> None:
    run.snapshot(save)


@operation
def restore_messages(run: Run, step: Step, **params: str) -> None:
    if params.keys() != {"from"}:
        raise RunnerError(f"restore_messages: {sorted(params)}")
    run.restore(params["from"])


# -- tools -------------------------------------------------------------------------------------------------------


@operation
def tool(run: Run, step: Step, name: str, args: Any) -> None:
    run.tool(step, name, run.filled(args))


@operation
def append_tool_roundtrip(run: Run, step: Step, name: str, args: Any, tool_call_id: str | None = None) -> None:
    given = run.filled(args)
    reply = run.tool(step, name, given)
    call_id = tool_call_id or f"roundtrip_{len(run.steps)}"
    function = {"name": name, "arguments": json.dumps(given)}
    call = {"id": call_id, "type": "function", "function": function}
    added = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "name": name, "content": reply},
    ]
    run.both(lambda messages: messages + copy.deepcopy(added))


@operation
def follow_notice(run: Run, step: Step, tool_call_id: str) -> None:
    found = [parts for _, message in results(run.messages, tool_call_id) if (parts := shortened(message["content"]))]
    if not found:
        raise CaseFailed(f"the result of {tool_call_id} has no notice to follow")
    name, args = notice_call(found[0].notice)
    run.tool(step, name, args)


@operation
def expand_all(run: Run, step: Step) -> None:
    """Every shortened result of the working list, from the first page to the last."""
    ids = [message.get("tool_call_id") for _, message in results(run.messages) if shortened(message.get("content"))]
    step.pages = {str(call_id): run.pages_of(run.pointer_of(str(call_id))) for call_id in ids}


# -- the world around --------------------------------------------------------------------------------------------


@operation
def clock_shift(run: Run, step: Step, seconds: float) -> None:
    run.move_clock(seconds)


@operation
def jev(run: Run, step: Step, **changes: Any) -> None:
    try:
        run.judge.configure(changes)
    except UnknownMode as error:
        raise RunnerError(str(error)) from error


@operation
def damage_store(run: Run, step: Step, how: str) -> None:
    try:
        case_store.damage(run.folders.store, how)
    except ValueError as error:
        raise RunnerError(str(error)) from error


@operation
def run_retention(run: Run, step: Step) -> None:
    _call(run, step, "run_retention")


@operation
def decision_log(run: Run, step: Step, save: str | None = None) -> None:
    step.value = case_store.receipts(run.folders.store)
    if save is not None:
        run.saved[save] = step.value


@operation
def register_listener(run: Run, step: Step) -> None:
    run.take(step, run.ask("listen"))


@operation
def install_failing_callbacks(run: Run, step: Step) -> None:
    run.take(step, run.ask("listen", failing=True))


# -- threads and processes ---------------------------------------------------------------------------------------


@operation
def compress_in_thread(
    run: Run, step: Step, session: str | None = None, pause_in_scorer: bool = False, **kwargs: Any
) -> None:
    if pause_in_scorer:
        run.judge.hold()
    before = len(run.judge.requests)
    run.expect_calls(run.messages)
    run.thread_inputs.append(copy.deepcopy(run.messages))
    job = {"op": "compress", "messages": run.messages, "kwargs": kwargs}
    run.take(step, run.ask("thread_start", name="case", job=job))
    deadline = time.monotonic() + PAUSE_SECONDS
    while pause_in_scorer and len(run.judge.requests) == before:
        if time.monotonic() > deadline:
            raise CaseFailed("the pass in the thread never asked the scorer")
        time.sleep(0.005)


@operation
def resume_thread(run: Run, step: Step) -> None:
    if not run.thread_inputs:
        raise RunnerError("resume_thread: no thread was started")
    run.judge.release()
    step.before = run.thread_inputs.pop()
    run.taken(step, run.value("thread_join", name="case", timeout=THREAD_SECONDS))
    step.inputs, step.outputs = [step.before], [step.output] if step.output else []


@operation
def parallel(run: Run, step: Step, steps: list[Mapping[str, Any]], times: int = 1) -> None:
    """The steps at the same time, each in a thread; of `compress`, all work on the same list."""
    jobs = [_job(run, spec) for spec in steps] * times
    run.expect_calls(run.messages)
    replies = run.value("parallel", jobs=jobs, timeout=THREAD_SECONDS)
    for job, reply in zip(jobs, replies, strict=True):
        run.take(step, reply)
        if job["op"] == "compress" and step.value is not None:
            step.inputs.append(copy.deepcopy(job["messages"]))
            run.taken(step, reply)
            step.outputs.append(step.output or [])


def _job(run: Run, spec: Mapping[str, Any]) -> dict[str, Any]:
    params = {key: value for key, value in spec.items() if key not in ("op", "expect")}
    if spec["op"] == "compress":
        messages = params.pop("messages", run.messages)
        return {"op": "compress", "messages": messages, "kwargs": params}
    if spec["op"] == "tool":
        return {"op": "tool", "name": params["name"], "args": run.filled(params["args"]), "messages": run.messages}
    raise RunnerError(f"parallel: the runner cannot do {spec['op']} in a thread")


@operation
def multi_process(run: Run, step: Step, workers: int, each: str, count: int) -> None:
    if each != "store_and_expand":
        raise RunnerError(f"multi_process: unknown work {each}")
    step.inputs = [numbered_history(number, count) for number in range(workers)]
    run.expect_calls(step.inputs[0])
    jobs = [
        {"messages": messages, "session": f"process-{number}", "kwargs": {"current_tokens": 9000, "force": True}}
        for number, messages in enumerate(step.inputs)
    ]
    step.value = run.value("processes", jobs=jobs)
    failed = [reply["error"] for reply in step.value if "error" in reply]
    step.error = failed[0] if failed else None


@operation
def repeat(run: Run, step: Step, times: int, steps: list[Mapping[str, Any]]) -> None:
    """The steps again and again. In the checks all of it is one step: its output is the last one."""
    for _ in range(times):
        for spec in steps:
            inner = run.nested(spec)
            step.error = step.error or inner.error
            step.value, step.reply = inner.value, inner.reply
            if inner.output is not None:
                step.output = inner.output
                step.outputs.append(inner.output)


def numbered_history(worker: int, count: int) -> list[Message]:
    """A request and `count` calls with long results, all different, and three short ones at the end."""
    messages: list[Message] = [{"role": "user", "content": f"Read the {count} files of part {worker}."}]
    for number in range(count + 3):
        tag = f"w{worker}n{number}"
        size = 2500 if number < count else 40
        function = {"name": "read_file", "arguments": json.dumps({"path": f"{tag}.txt"})}
        call = {"id": tag, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": tag, "name": "read_file", "content": fill(tag, size)})
    return messages


NOTICE_CALL = re.compile(r"\b(?P<tool>[a-z_]+)\((?P<arguments>[a-z_]+=[^()]*)\)")
_ARGUMENT = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|-?\d+)')


def notice_call(notice: str) -> tuple[str, dict[str, Any]]:
    """The call that a notice writes out: its tool and its arguments."""
    found = NOTICE_CALL.search(notice)
    if found is None:
        raise CaseFailed(f"the notice names no call: {notice}")
    return found["tool"], {name: json.loads(value) for name, value in _ARGUMENT.findall(found["arguments"])}
