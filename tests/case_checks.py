"""The checks on the list of messages as a whole: one function each, by the name in the case files."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from case_expand import slots_of
from case_messages import (
    Message,
    calls,
    payload,
    public,
    results,
    sequence_faults,
    shortened,
    slots,
    text_of,
)
from case_run import Run
from case_words import CaseFailed, check, need
from case_worker import same


@check
def note(run: Run, text: str) -> None:
    """For the reader only."""


@check
def no_exception(run: Run) -> None:
    for number, step in enumerate(run.steps):
        if step.error is not None:
            raise CaseFailed(f"step {number} ({step.op}) raised: {step.error['traceback']}")


# -- structure ---------------------------------------------------------------------------------------------------


@check
def valid_sequence(run: Run) -> None:
    faults = sequence_faults(run.messages)
    need(not faults, "; ".join(faults))


@check
def nothing_inserted_between_call_and_result(run: Run) -> None:
    valid_sequence(run)


@check
def each_output_valid(run: Run) -> None:
    outputs = list(_outputs(run))
    need(bool(outputs), "no step gave a list")
    for number, output in outputs:
        faults = sequence_faults(output)
        need(not faults, f"step {number}: {'; '.join(faults)}")


def _outputs(run: Run) -> Iterator[tuple[int, list[Message]]]:
    for number, step in enumerate(run.steps):
        every = step.outputs or ([step.output] if step.output is not None else [])
        yield from ((number, output) for output in every)


@check
def thread_output_corresponds_to_its_input(run: Run) -> None:
    pairs = [pair for step in run.steps for pair in zip(step.inputs, step.outputs, strict=True)]
    need(bool(pairs), "no step worked in a thread")
    for given, output in pairs:
        need(_shape(given) == _shape(output), "the output of a thread is not the list that it was given")
        for slot in slots(given, output):
            before, after = text_of(slot.was), text_of(slot.now)
            parts = shortened(after) if before != after else None
            need(before == after or parts is not None, f"{slot.id}: changed, and no notice says so")
            need(parts is None or payload(parts.body) in before, f"{slot.id}: holds another result's text")


def _shape(messages: list[Message]) -> list[Any]:
    return [(m.get("role"), m.get("tool_call_id"), [call.id for call in calls([m])]) for m in messages]


@check
def no_new_orphans(run: Run) -> None:
    need(not (new := _more(_orphans(run.messages), _orphans(run.baseline))), f"new orphans: {new}")
    need(not (new := _more(_unanswered(run.messages), _unanswered(run.baseline))), f"newly unanswered: {new}")


def _more(after: list[Any], before: list[Any]) -> list[Any]:
    return list((Counter(after) - Counter(before)).elements())


def _groups(messages: list[Message]) -> Iterator[tuple[list[str | None], list[str | None]]]:
    """(ids called, ids answered) of each assistant turn with the tool messages right after it."""
    called: list[str | None] = []
    answered: list[str | None] = []
    for message in messages:
        if message.get("role") == "tool":
            answered.append(message.get("tool_call_id"))
            continue
        yield called, answered
        called, answered = [call.id for call in calls([message])], []
    yield called, answered


def _orphans(messages: list[Message]) -> list[Any]:
    return [call_id for called, answered in _groups(messages) for call_id in _more(answered, called)]


def _unanswered(messages: list[Message]) -> list[Any]:
    return [call_id for called, answered in _groups(messages) for call_id in _more(called, answered)]


@check
def one_result_per_call(run: Run) -> None:
    groups = [group for group in _groups(run.messages) if group[0]]
    for number, (called, answered) in enumerate(groups):
        open_calls = _more(called, answered)
        need(not open_calls or number == len(groups) - 1, f"no result for {open_calls}")
        need(not (extra := _more(answered, called)), f"more than one result for {extra}")


@check
def same_message_count(run: Run) -> None:
    need(len(run.messages) == len(run.baseline), f"{len(run.baseline)} messages became {len(run.messages)}")


@check
def role_sequence_unchanged(run: Run) -> None:
    need(_roles(run.messages) == _roles(run.baseline), f"{_roles(run.baseline)} became {_roles(run.messages)}")


def _roles(messages: list[Message]) -> list[Any]:
    return [message.get("role") for message in messages]


@check
def list_equal_to_input(run: Run) -> None:
    need(same(run.messages, run.baseline), f"the list changed: {_first_difference(run.baseline, run.messages)}")


def _first_difference(before: Sequence[Message], after: Sequence[Message]) -> str:
    for at, (one, other) in enumerate(zip(before, after, strict=False)):
        if not same(one, other):
            return f"message {at}: {one!r:.200} became {other!r:.300}"
    return f"{len(before)} messages became {len(after)}"


@check
def input_not_mutated(run: Run) -> None:
    passes = [step.value for step in run.steps if step.output is not None]
    need(bool(passes), "no pass ran")
    need(not any(value["mutated"] for value in passes), "compress changed the list it was given")


@check
def message_unchanged(run: Run, index: int) -> None:
    before, after = run.baseline[index], run.messages[index]
    need(same(public(before), public(after)), f"message {index}: {before!r:.300} became {after!r:.300}")


@check
def role_messages_unchanged(run: Run, role: str) -> None:
    _same_role(run.baseline, run.messages, role)


@check
def role_messages_unchanged_from_input_of_step(run: Run, role: str, step: int) -> None:
    output = run.steps[step].output
    need(output is not None, f"step {step} gave no list")
    _same_role(run.steps[step].before, output or [], role)


def _same_role(before: list[Message], after: list[Message], role: str) -> None:
    mine, theirs = ([public(m) for m in given if m.get("role") == role] for given in (before, after))
    need(bool(mine), f"the input has no {role} message")
    need(same(mine, theirs), f"{role} messages changed: {_first_difference(mine, theirs)}")


@check
def only_content_changed(run: Run, tool_call_id: str) -> None:
    for slot in slots_of(run, tool_call_id):
        need(slot.after is not None, f"{tool_call_id}: the result is gone")
        before, after = ({**public(m or {}), "content": None} for m in (slot.before, slot.after))
        need(same(before, after), f"{tool_call_id}: {before!r:.300} became {after!r:.300}")
    turns = [
        [public(given[call.at]) for call in calls(given) if call.id == tool_call_id]
        for given in (run.baseline, run.messages)
    ]
    need(same(*turns), f"{tool_call_id}: the turn that made the call changed")


@check
def arguments_unchanged(run: Run, tool_call_id: str | None = None) -> None:
    before, after = (
        [[call.id, call.name, call.arguments] for call in calls(given) if tool_call_id in (None, call.id)]
        for given in (run.baseline, run.messages)
    )
    need(bool(before), f"the input has no call {tool_call_id}")
    need(same(before, after), f"arguments changed: {before!r:.300} became {after!r:.300}")


@check
def all_arguments_parse(run: Run) -> None:
    for call in calls(run.messages):
        _parsed_arguments(call.id, call.arguments)


def _parsed_arguments(call_id: str | None, arguments: Any) -> Any:
    try:
        return json.loads(arguments)
    except (TypeError, ValueError) as error:
        raise CaseFailed(f"the arguments of {call_id} do not parse: {arguments!r:.200}") from error


@check
def argument_field_equals(run: Run, tool_call_id: str, field: str, value: Any) -> None:
    found = [call.arguments for call in calls(run.messages) if call.id == tool_call_id]
    need(bool(found), f"there is no call {tool_call_id}")
    for arguments in found:
        got = _parsed_arguments(tool_call_id, arguments).get(field)
        need(same(got, value), f"{tool_call_id}.{field} is {got!r:.200}")


@check
def result_order(run: Run, ids: list[str]) -> None:
    found = [message.get("tool_call_id") for _, message in results(run.messages)]
    need(found == ids, f"the results stand in the order {found}")


@check
def call_present(run: Run, tool_call_id: str) -> None:
    need(any(call.id == tool_call_id for call in calls(run.messages)), f"there is no call {tool_call_id}")


@check
def no_fabricated_result(run: Run, tool_call_id: str) -> None:
    need(not results(run.messages, tool_call_id), f"there is a result of {tool_call_id}")


@check
def no_ids_matching(run: Run, pattern: str) -> None:
    found = {call.id for call in calls(run.messages)} | {m.get("tool_call_id") for _, m in results(run.messages)}
    matching = sorted(name for name in found if name is not None and re.search(pattern, name))
    need(not matching, f"the list names {matching}")


@check
def outputs_of_steps_equal(run: Run, steps: list[int]) -> None:
    outputs = [run.steps[number].output for number in steps]
    need(all(output is not None for output in outputs), f"not all of the steps {steps} gave a list")
    for number, output in zip(steps[1:], outputs[1:], strict=True):
        text = _first_difference(outputs[0] or [], output or [])
        need(same(outputs[0], output), f"the outputs of steps {steps[0]} and {number} differ: {text}")
