"""The checks on single results, on texts, and on the notices that the engine leaves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from case_expand import changed_slots, expanded, original_behind, slots_of
from case_messages import (
    NOTICE,
    Message,
    Shortened,
    Slot,
    payload,
    results,
    shortened,
    slots,
    strings,
    text_of,
    tokens,
)
from case_run import Run
from case_words import CaseFailed, check, need
from case_worker import same


@check
def note(run: Run, text: str) -> None:
    """For the reader only."""


# -- results -----------------------------------------------------------------------------------------------------


@check
def result_verbatim(run: Run, tool_call_id: str) -> None:
    for slot in slots_of(run, tool_call_id):
        _verbatim(slot)


@check
def nth_result_verbatim(run: Run, tool_call_id: str, occurrence: int) -> None:
    _verbatim(slots_of(run, tool_call_id)[occurrence])


def _verbatim(slot: Slot) -> None:
    need(slot.after is not None, f"the result of {slot.id} is gone")
    need(same(slot.was, slot.now), f"the result of {slot.id} became {slot.now!r:.400}")


@check
def some_results_verbatim(run: Run, ids: list[str], min: int, max: int) -> None:
    changed_ids = {slot.id for slot in changed_slots(run)}
    known = {slot.id for slot in slots(run.baseline, run.messages)}
    need(set(ids) <= known, "the input lacks some of these results")
    whole = [call_id for call_id in ids if call_id not in changed_ids]
    need(min <= len(whole) <= max, f"{len(whole)} results are whole: {whole}")


@check
def result_shrunk(run: Run, tool_call_id: str, excerpt_max: int) -> None:
    for slot in slots_of(run, tool_call_id):
        before, parts = text_of(slot.was), _shortened(slot)
        length = len(text_of(slot.now))
        need(length < len(before), f"{tool_call_id}: {len(before)} characters became {length}")
        words = payload(parts.body)
        need(len(words) <= excerpt_max, f"{tool_call_id}: {len(words)} characters of the original are left")
        need(words in payload(before), f"{tool_call_id}: holds text that is not the original's: {words!r:.300}")


def _shortened(slot: Slot) -> Shortened:
    need(slot.after is not None, f"the result of {slot.id} is gone")
    parts = shortened(slot.now)
    if parts is None:
        raise CaseFailed(f"the result of {slot.id} is not shortened: {slot.now!r:.120}")
    return parts


@check
def content_stable_after_first_shrink(run: Run, tool_call_id: str) -> None:
    originals = run.originals(tool_call_id)
    first: list[Any] | None = None
    for messages in run.history:
        contents = [message.get("content") for _, message in results(messages, tool_call_id)]
        if first is not None:
            need(same(contents, first), f"{tool_call_id}: changed again: {contents!r:.400}")
        elif contents and not any(same(contents[0], original) for original in originals):
            first = contents
    need(first is not None, f"{tool_call_id} was never shortened")


@check
def no_result_longer_than_before(run: Run) -> None:
    for slot in slots(run.baseline, run.messages):
        before, after = len(text_of(slot.was)), len(text_of(slot.now))
        need(after <= before, f"{slot.id}: {before} characters became {after}")


@check
def tokens_after_not_more(run: Run) -> None:
    before, after = tokens(run.baseline), tokens(run.messages)
    need(after <= before, f"{before} tokens became {after}")


@check
def fits_window(run: Run) -> None:
    _below(run, 1.0)


@check
def estimated_tokens_below(run: Run, fraction_of_window: float) -> None:
    _below(run, fraction_of_window)


def _below(run: Run, fraction: float) -> None:
    limit = fraction * run.case.config["context_length"]
    found = tokens(run.messages)
    need(found < limit, f"{found} tokens are not below {limit:.0f}")


@check
def result_max_chars(run: Run, tool_call_id: str, max: int) -> None:
    for slot in slots_of(run, tool_call_id):
        length = len(text_of(slot.now))
        need(slot.after is not None and length <= max, f"{tool_call_id}: {length} characters")


@check
def result_contains_any(run: Run, tool_call_id: str, texts: list[str]) -> None:
    for slot in slots_of(run, tool_call_id):
        text = text_of(slot.now)
        need(any(wanted in text for wanted in texts), f"{tool_call_id} has none of {texts}: {text!r:.600}")


@check
def result_encodes_utf8(run: Run, tool_call_id: str) -> None:
    for slot in slots_of(run, tool_call_id):
        try:
            text_of(slot.now).encode("utf-8")
        except UnicodeEncodeError as error:
            raise CaseFailed(f"the result of {tool_call_id} is not valid Unicode: {error}") from error


@check
def excerpt_is_substring_of_original(run: Run, tool_call_id: str) -> None:
    for slot in slots_of(run, tool_call_id):
        words, original = payload(_shortened(slot).body), text_of(slot.was)
        need(bool(words), f"{tool_call_id}: there is no excerpt")
        need(words in original or _ends_of(words, original), f"{tool_call_id}: not the original's: {words!r:.300}")


def _ends_of(words: str, original: str) -> bool:
    """Whether the words are a start and an end of the original, put together."""
    cuts = range(len(words) + 1)
    return any(original.startswith(words[:cut]) and original.endswith(words[cut:]) for cut in cuts)


@check
def shrunk_result_starts_with_original_start(run: Run, tool_call_id: str, min_chars: int) -> None:
    for slot in slots_of(run, tool_call_id):
        start = payload(text_of(slot.was))[:min_chars]
        words = payload(_shortened(slot).body)
        need(words.startswith(start), f"{tool_call_id} starts with {words[:min_chars]!r}")


@check
def each_tool_message_keeps_own_start(run: Run, min_chars: int = 20) -> None:
    found = slots(run.baseline, run.messages)
    need(bool(found), "the input has no result")
    for slot in found:
        start = payload(text_of(slot.was))[:min_chars]
        text = payload(text_of(slot.now))
        need(text.startswith(start), f"{slot.id} starts with {text[:min_chars]!r}")


@check
def content_type_legal(run: Run, tool_call_id: str) -> None:
    for slot in slots_of(run, tool_call_id):
        content = slot.now
        parts = content if isinstance(content, list) else []
        legal = all(isinstance(part, Mapping) and isinstance(part.get("type"), str) for part in parts)
        need(isinstance(content, str | list) and legal, f"{tool_call_id}: {content!r:.200}")
        need(text_of(content)[:2] not in ("[{", "{'"), f"{tool_call_id}: a list made into text: {content!r:.80}")


@check
def result_not_reassigned(run: Run, tool_call_id: str) -> None:
    for slot in slots_of(run, tool_call_id):
        text = text_of(slot.was)
        start = text[:60]
        kept = slot.after is not None and same(slot.was, slot.now)
        need(kept or same(original_behind(run, slot), slot.was), f"{tool_call_id}: text is lost")
        holders = [m for m in run.messages if start in text_of(m.get("content"))]
        others = [m for m in holders if m is not slot.after]
        need(not others, f"{tool_call_id}: its text stands in another message: {others!r:.200}")


@check
def result_count_not_increased(run: Run, tool_call_id: str) -> None:
    before, after = (len(results(given, tool_call_id)) for given in (run.baseline, run.messages))
    need(after <= before, f"{tool_call_id}: {before} results became {after}")


@check
def result_contains_id_of(run: Run, tool_call_id: str, of: str | None = None) -> None:
    wanted = run.pointer_of(of or tool_call_id)
    for slot in slots_of(run, tool_call_id):
        text = text_of(slot.now)
        need(wanted in text, f"{tool_call_id} does not name {wanted}: {text!r:.300}")


# -- texts and notices -------------------------------------------------------------------------------------------


@check
def contains(run: Run, text: str, role: str | None = None) -> None:
    found = [m for m in run.messages if role in (None, m.get("role")) and text in text_of(m.get("content"))]
    need(bool(found), f"no {role or ''} message contains {text!r}")


@check
def text_occurs_exactly(run: Run, text: str, times: int) -> None:
    found = sum(text_of(message.get("content")).count(text) for message in run.messages)
    need(found == times, f"{text!r} occurs {found} times")


@check
def text_only_in_role(run: Run, text: str, role: str) -> None:
    others = [m.get("role") for m in run.messages if m.get("role") != role and any(text in s for s in strings(m))]
    need(not others, f"{text!r} stands in {others}")


def _notices(message: Message) -> int:
    return text_of(message.get("content")).count(NOTICE)


@check
def marker_only_in_role(run: Run, role: str) -> None:
    for other in {message.get("role") for message in run.messages} - {role}:
        before, after = (sum(_notices(m) for m in given if m.get("role") == other) for given in _both(run))
        need(after <= before, f"{after - before} notices in messages of role {other}")
    need(any(_notices(message) for message in run.messages), "there is no notice at all")


def _both(run: Run) -> tuple[list[Message], list[Message]]:
    return run.baseline, run.messages


@check
def max_markers_per_message(run: Run, max: int) -> None:
    for slot in slots(run.baseline, run.messages):
        count = text_of(slot.now).count(NOTICE)
        need(count <= max or count <= _notices(slot.before), f"{slot.id} has {count} notices")


@check
def engine_text_has_no_imperative(run: Run, forbidden: list[str]) -> None:
    found = changed_slots(run)
    need(bool(found), "nothing was shortened")
    for slot in found:
        added = text_of(slot.now)
        parts = shortened(added)
        own = parts.notice if parts and parts.body in text_of(slot.was) else added
        words = [word for word in forbidden if word.lower() in own.lower()]
        need(not words, f"{slot.id}: the engine's text says {words}: {own!r:.300}")


@check
def every_shrunk_result_has_notice(run: Run, must_mention: list[str]) -> None:
    found = changed_slots(run)
    need(bool(found), "nothing was shortened")
    for slot in found:
        parts = _shortened(slot)
        original = slot.was
        for wanted in must_mention:
            need(_mentions(run, parts.notice, wanted, original), f"{slot.id}: no {wanted} in {parts.notice!r}")


def _mentions(run: Run, notice: str, wanted: str, original: Any) -> bool:
    if wanted == "original size":
        size = len(text_of(original))
        return bool(re.search(rf"(?<![\d,])(?:{size}|{size:,})(?![\d,]?\d)", notice))
    if wanted == "$own_id":
        named = re.search(r'"(r-[^"]+)"', notice)
        return named is not None and same(expanded(run, named[1]), original)
    return wanted in notice
