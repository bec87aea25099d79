"""The checks on the way back: `expand`, other tools, their replies and schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from case_expand import changed, expanded, joined, object_of, original_behind, slots_of
from case_messages import pointer, results, shortened, slots, strings, text_of
from case_run import Run, Step
from case_words import CaseFailed, check, need
from case_worker import same

TOOL_STEPS = ("tool", "append_tool_roundtrip", "follow_notice")


# -- originals ---------------------------------------------------------------------------------------------------


@check
def expand_equals_original(run: Run, tool_call_id: str) -> None:
    found = [slot for slot in slots_of(run, tool_call_id) if changed(slot)]
    need(bool(found), f"the result of {tool_call_id} stands whole: nothing to expand")
    for slot in found:
        value = original_behind(run, slot)
        need(same(value, slot.was), f"{tool_call_id}: expand gives {value!r:.200}, not {slot.was!r:.200}")


@check
def expand_pages_join_to_original(run: Run, tool_call_id: str) -> None:
    expand_equals_original(run, tool_call_id)


@check
def expand_or_verbatim(run: Run, tool_call_id: str) -> None:
    for slot in slots_of(run, tool_call_id):
        value = original_behind(run, slot) if changed(slot) else slot.now
        need(same(value, slot.was), f"{tool_call_id}: expand gives {value!r:.200}")


@check
def expand_starts_with(run: Run, tool_call_id: str, text: str) -> None:
    for slot in slots_of(run, tool_call_id):
        value = text_of(original_behind(run, slot))
        need(value.startswith(text), f"{tool_call_id}: expand gives {value[:80]!r}")


@check
def expand_occurrence(run: Run, tool_call_id: str, occurrence: int, text: str | None = None) -> None:
    slot = slots_of(run, tool_call_id)[occurrence]
    value = original_behind(run, slot)
    need(same(value, slot.was), f"{tool_call_id} number {occurrence}: expand gives {value!r:.200}")
    need(text is None or text_of(value).startswith(text), f"{tool_call_id}: {text_of(value)[:80]!r}")


@check
def unchanged_or_all_shrunk_are_expandable(run: Run) -> None:
    for slot in slots(run.baseline, run.messages):
        if changed(slot):
            value = original_behind(run, slot)
            need(same(value, slot.was), f"{slot.id}: expand gives {value!r:.200}")


@check
def some_result_or_expand_contains(run: Run, tool_call_id: str, text: str) -> None:
    found = results(run.messages, tool_call_id)
    texts = [text_of(message.get("content")) for _, message in found]
    texts += [text_of(expanded(run, named)) for _, message in found if (named := pointer(message.get("content")))]
    need(any(text in value for value in texts), f"{tool_call_id}: {text!r} is in {[t[:80] for t in texts]}")


@check
def all_stored_readable(run: Run) -> None:
    """After `multi_process`: every long result of every process was shortened, and each opens exactly."""
    steps = [step for step in run.steps if step.op == "multi_process"]
    need(bool(steps), "no processes ran")
    for step in steps:
        for given, reply in zip(step.inputs, step.value, strict=True):
            need("error" not in reply, f"a process failed: {reply.get('error')}")
            _all_readable(given, reply, step.params["count"])


def _all_readable(given: list[Any], reply: Mapping[str, Any], count: int) -> None:
    output, pages = reply["value"]["messages"], reply["pages"]
    need(len(output) == len(given), f"{len(given)} messages became {len(output)}")
    found = 0
    for at, (before, after) in enumerate(zip(given, output, strict=True)):
        if same(before, after):
            continue
        need(str(at) in pages, f"message {at} changed and names no original")
        value = joined(pages[str(at)], f"message {at}")
        need(same(value, before["content"]), f"message {at}: expand gives {value!r:.200}")
        found += 1
    need(found >= count, f"only {found} of {count} results were stored")


# -- replies -----------------------------------------------------------------------------------------------------


def _replies(run: Run) -> Iterator[tuple[int, Step]]:
    return ((number, step) for number, step in enumerate(run.steps) if step.op in TOOL_STEPS)


def _reply(run: Run, step: int) -> dict[str, Any]:
    found = run.steps[step]
    need(found.op in TOOL_STEPS, f"step {step} is {found.op}: no tool answered there")
    need(found.error is None, f"step {step}: the tool raised {found.error}")
    return object_of(found.reply)


@check
def all_tool_replies_are_json_objects(run: Run) -> None:
    numbers = [number for number, _ in _replies(run)]
    need(bool(numbers), "no tool was called")
    for number in numbers:
        _reply(run, number)


@check
def tool_reply_is_error(run: Run, step: int) -> None:
    reply = _reply(run, step)
    need(bool(reply.get("error")), f"step {step}: no error: {reply!r:.300}")
    leaked = _original_pieces(run, reply)
    need(not leaked, f"step {step}: the error holds original text: {leaked[:2]}")


def _original_pieces(run: Run, reply: Any) -> list[str]:
    """Pieces of originals, 40 characters from their starts, that stand in a reply."""
    said = "\n".join(strings(reply))
    starts = (text_of(content)[:40] for content in run.all_originals() if len(text_of(content)) >= 40)
    return [start for start in starts if start in said]


@check
def tool_reply_contains(run: Run, step: int, text: str | None = None, texts: list[str] | None = None) -> None:
    said = "\n".join(strings(_reply(run, step)))
    wanted = ([text] if text is not None else []) + list(texts or [])
    need(bool(wanted), "the check names no text")
    for one in wanted:
        need(one in said, f"step {step}: {one!r} is not in {said[:400]!r}")


@check
def tool_reply_max_chars(run: Run, step: int, max: int) -> None:
    _reply(run, step)
    length = len(run.steps[step].reply)
    need(length <= max, f"step {step}: {length} characters")


@check
def tool_reply_has_continuation(run: Run, step: int) -> None:
    reply = _reply(run, step)
    need({"offset", "next_offset", "total", "text"} <= reply.keys(), f"step {step}: only {sorted(reply)}")
    offset, following, total = reply["offset"], reply["next_offset"], reply["total"]
    whole = all(isinstance(number, int) for number in (offset, following, total))
    need(whole and following == offset + len(reply["text"]) < total, f"step {step}: {offset} → {following} of {total}")


@check
def tool_reply_starts_with_original(run: Run, step: int, tool_call_id: str) -> None:
    reply = _reply(run, step)
    need("error" not in reply, f"step {step}: {reply.get('error')}")
    need(_is_start(run, reply, tool_call_id), f"step {step}: not the original: {reply!r:.300}")


def _is_start(run: Run, reply: Mapping[str, Any], call_id: str) -> bool:
    """Whether a page starts at the beginning and holds nothing but the original."""
    text = reply.get("text")
    if reply.get("offset") != 0 or not isinstance(text, str) or not text:
        return False
    as_json = reply.get("format") == "json"
    originals = run.originals(call_id)
    return any(
        (json.dumps(content, ensure_ascii=False) if as_json else text_of(content)).startswith(text)
        for content in originals
    )


@check
def reply_is_original_or_plain_error(run: Run, step: int, tool_call_id: str) -> None:
    if _reply(run, step).get("error"):
        tool_reply_is_error(run, step)
    else:
        tool_reply_starts_with_original(run, step, tool_call_id)


@check
def no_wrong_text_returned(run: Run) -> None:
    """Whatever `expand` gave stands in the original of the call that was asked for."""
    seen = 0
    for number, step in _replies(run):
        asked = step.params.get("args", {})
        wanted = asked.get("id") if isinstance(asked, Mapping) else None
        if step.params.get("name") != "expand" or not isinstance(step.reply, str):
            continue
        seen += 1
        text = object_of(step.reply).get("text")
        if not text:
            continue
        need(isinstance(wanted, str) and wanted.startswith("$id:"), f"step {number}: text for the id {wanted!r}")
        known = [text_of(content) for content in run.originals(str(wanted).removeprefix("$id:"))]
        need(any(text in original for original in known), f"step {number}: not of {wanted}: {text[:120]!r}")
    need(seen > 0, "expand was never called")


@check
def search_hits(run: Run, step: int, equals: int | None = None, min: int | None = None, max: int | None = None) -> None:
    need((equals, min, max) != (None, None, None), "the check names no number")
    count = len(_hits(run, step))
    need(equals in (None, count), f"step {step}: {count} hits")
    need(min is None or count >= min, f"step {step}: {count} hits")
    need(max is None or count <= max, f"step {step}: {count} hits")


@check
def search_hits_min(run: Run, step: int, min: int) -> None:
    search_hits(run, step, min=min)


def _hits(run: Run, step: int) -> list[Any]:
    reply = _reply(run, step)
    need("error" not in reply, f"step {step}: {reply.get('error')}")
    for key in ("hits", "results", "matches"):
        if isinstance(found := reply.get(key), list):
            return found
    raise CaseFailed(f"step {step}: the reply has no list of hits: {sorted(reply)}")


_REPORT = ("status", "fates", "counts", "unjudged", "jev_calls", "errors", "latency_ms", "judge", "digest")


@check
def select_report(run: Run, step: int, **expected: Any) -> None:
    """The report of a selection: complete, its counts those of its fates, and with the fields that are named."""
    reply = _reply(run, step)
    need(not (missing := [name for name in _REPORT if name not in reply]), f"step {step}: no {missing}")
    fates = list(reply["fates"].values())
    wrong = {fate: count for fate, count in reply["counts"].items() if count != fates.count(fate)}
    need(not wrong and set(fates) <= set(reply["counts"]), f"step {step}: counts {reply['counts']} of {fates}")
    for name, value in expected.items():
        need(same(reply.get(name), value), f"step {step}: {name} is {reply.get(name)!r:.200}")


# -- notices and schemas -----------------------------------------------------------------------------------------


@check
def notice_call_returns_original(run: Run, tool_call_id: str) -> None:
    """The call that a `follow_notice` step made, paged on to the end, gives the original."""
    steps = [s for s in run.steps if s.op == "follow_notice" and s.params["tool_call_id"] == tool_call_id]
    need(bool(steps), f"no step followed the notice of {tool_call_id}")
    for step in steps:
        page = object_of(step.reply)
        need("error" not in page, f"the call in the notice fails: {page.get('error')}")
        rest = run.pages_of(page["id"])[1:] if page["next_offset"] is not None else []
        value = joined([step.reply, *rest], tool_call_id)
        need(any(same(value, original) for original in run.originals(tool_call_id)), f"it gives {value!r:.200}")


@check
def notice_tools_subset_of_schemas(run: Run) -> None:
    notices = [parts.notice for _, m in results(run.messages) if (parts := shortened(m.get("content")))]
    need(bool(notices), "there is no notice")
    named = {name for notice in notices for name in re.findall(r"\b([a-z_]+)\(", notice)}
    offered = {schema["name"] for schema in _schemas(run)}
    need(named <= offered, f"notices name {sorted(named - offered)}, offered are {sorted(offered)}")


def _schemas(run: Run) -> list[Any]:
    found = [step.value for step in run.steps if step.op == "schemas" and step.value is not None]
    listed = found[-1] if found else run.value("call", method="get_tool_schemas")
    need(isinstance(listed, list) and bool(listed), "the engine offers no tool")
    return [schema.get("function", schema) for schema in listed]


@check
def schema_names_unique_with_host(run: Run) -> None:
    """The one name of the host that is listed on purpose is `session_search`: the host drops the double."""
    names = [schema["name"] for schema in _schemas(run)]
    need(len(names) == len(set(names)), f"a name twice: {names}")
    host = {name for step in run.steps if step.op == "schemas" for name in step.params.get("host_tools", [])}
    taken = (set(names) & host) - {"session_search"}
    need(not taken, f"the host has these names: {sorted(taken)}")


@check
def schemas_valid_json_schema(run: Run) -> None:
    for schema in _schemas(run):
        name = schema.get("name")
        need(isinstance(name, str) and re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) is not None, f"name {name!r}")
        need(isinstance(schema.get("description"), str) and bool(schema["description"]), f"{name}: no description")
        parameters = schema.get("parameters")
        need(isinstance(parameters, Mapping) and parameters.get("type") == "object", f"{name}: {parameters!r:.200}")
        _valid(str(name), parameters)


_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_WORDS = frozenset(
    {
        *("type", "properties", "required", "items", "enum", "description", "default", "minimum", "maximum"),
        *("additionalProperties", "minLength", "maxLength", "pattern", "minItems", "maxItems", "title", "examples"),
    }
)


def _valid(where: str, schema: Any) -> None:
    need(isinstance(schema, Mapping), f"{where}: {schema!r:.100} is no schema")
    need(not (odd := set(schema) - _WORDS), f"{where}: unknown words {sorted(odd)}")
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    need(all(kind in _TYPES for kind in kinds), f"{where}: type {schema.get('type')!r}")
    need(not isinstance(schema.get("enum", ["x"]), str) and bool(schema.get("enum", ["x"])), f"{where}: enum")
    properties = schema.get("properties", {})
    need(set(schema.get("required", [])) <= set(properties), f"{where}: required names an unknown property")
    for name, inner in properties.items():
        _valid(f"{where}.{name}", inner)
    if "items" in schema:
        _valid(f"{where}[]", schema["items"])


@check
def schemas_have_no_type_arrays(run: Run) -> None:
    for schema in _schemas(run):
        need(not _type_arrays(schema), f"{schema['name']}: a type is a list of types")


def _type_arrays(value: Any) -> bool:
    if isinstance(value, Mapping):
        return isinstance(value.get("type"), list) or any(_type_arrays(item) for item in value.values())
    return isinstance(value, list) and any(_type_arrays(item) for item in value)
