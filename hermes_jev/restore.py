"""Put every original back: `restore(prune(x)) == x`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from . import arguments, drops, prose
from .effective import from_environment
from .errors import NotStored, StoreError
from .inputs import require_messages
from .notice import cut_in, read
from .store import Original, Store
from .store.values import MAX_ID_LENGTH, encode, pointer_hash, pointer_id
from .stores import stores_to_read
from .transcript import Transcript

Missing = Literal["raise", "keep"]
_SIDES: tuple[drops.Side, drops.Side] = ("before", "after")


class Restored(NamedTuple):
    """The messages, how many originals went back, and how many cuts no store knows."""

    messages: list[Any]
    originals: int
    left: int


def restore(
    messages: list[Any],
    store: str | os.PathLike[str] | Store | None = None,
    missing: Missing = "raise",
) -> list[Any]:
    """The list as it was before anything was cut; what was never cut are the same objects.

    Results, inputs of calls and messages that were shortened get their originals back, and turns that left the window
    return to their place. `store` is a folder or a Store; None looks into the user's own and Hermes' usual one. Only a
    text that a store itself recorded as a cut is replaced, so look-alikes stay what they are; words of the user that
    the host appended to a cut result follow its original. Raises NotStored when something is a cut by its whole form
    and no store knows it, StoreError when its store is damaged (with `missing="keep"` both stay as they are),
    InputError when the list is not made of messages.
    """
    return put_back(messages, store, missing).messages


def put_back(messages: list[Any], store: str | os.PathLike[str] | Store | None, missing: Missing) -> Restored:
    """As `restore`, with the figures."""
    require_messages(messages)
    stands = list(_standing(messages))
    if not stands:
        return Restored(messages, 0, 0)
    work = _Work(stores_to_read(store, from_environment(os.environ)))
    restored = work.restored(messages, stands)
    if missing == "raise" and work.problem is not None:
        raise work.problem
    return Restored(restored if work.originals else messages, work.originals, work.left)


def put_some_back(messages: list[Any], store: Store, pointers: Collection[str]) -> list[Any]:
    """The list with the originals of these pointers alone in their places; the very list when none of them is cut in
    it. A call that left with others comes back with them. What the store does not know stays. Raises StoreError for a
    damaged one."""
    work = _Work([store])
    stands = work.wanted(_standing(messages), frozenset(pointers))
    if not stands:
        return messages
    restored = work.restored(messages, stands)
    if work.problem is not None and not isinstance(work.problem, NotStored):
        raise work.problem
    return restored if work.originals else messages


class _Standing(NamedTuple):
    """A text that stands for something, by its form: where, the text itself, what was said since, and the pointer it
    names. `form` says whether only this package writes such a text, or whether a model may have copied one, or whether
    it merely ends like one. What `names` calls that left names the first of them; `own` is its own pointer."""

    at: int
    slot: int | None
    text: str
    words: str
    id: str
    form: Literal["whole", "copyable", "loose"]
    names: bool = False
    own: str = ""


def _standing(messages: Sequence[Any]) -> list[_Standing]:
    found: list[_Standing] = []
    for at, message in enumerate(messages):
        content, role = message.get("content"), message.get("role")
        if role == "tool":
            found += _in_result(at, content)
        elif (notice := prose.read(content)) is not None and role in ("user", "assistant"):
            found.append(_Standing(at, None, content, "", notice.id, "copyable" if notice.whole else "loose"))
        calls = message.get("tool_calls")
        for slot, call in enumerate(calls if isinstance(calls, list) else ()):
            function = call.get("function") if isinstance(call, Mapping) else None
            text = function.get("arguments") if isinstance(function, Mapping) else None
            if isinstance(text, str) and (pointers := arguments.pointers_in(text)):
                found.append(_Standing(at, slot, text, "", pointers[0], "copyable"))
    return found


def _in_result(at: int, content: Any) -> list[_Standing]:
    if (named := drops.naming_in(content)) is not None:
        notice = read(named.bare)
        whole = notice is not None and notice.whole
        form: Literal["whole", "copyable"] = "whole" if whole else "copyable"
        own = notice.id if notice is not None else ""
        return [_Standing(at, None, named.text, named.words, named.id, form, True, own)]
    cut = cut_in(content)
    if cut is None:
        return []
    return [_Standing(at, None, cut.text, cut.words, cut.notice.id, "whole" if cut.notice.whole else "loose")]


class _Work:
    """One restoration over several stores."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self.stores = stores
        self.originals = 0
        self.left = 0
        self.problem: StoreError | None = None
        self._unread: list[StoreError] = []

    def restored(self, messages: Sequence[Any], stands: Sequence[_Standing]) -> list[Any]:
        originals = self._behind([one.text for one in stands])
        named = [one for one in stands if one.names]
        runs = self._behind([drops.key(one.text, side) for one in named for side in _SIDES])
        inserted: dict[tuple[int, str], list[Any]] = {}
        broken: set[int] = set()
        for index, one in enumerate(named):
            for place, side in enumerate(_SIDES):
                if (found := runs.get(2 * index + place)) is None:
                    continue
                try:
                    inserted[one.at, side] = self._run(*found)
                except StoreError as error:
                    broken.add(one.at)
                    self._fail(error)
        new: dict[int, Any] = {}
        for index, one in enumerate(stands):
            behind = originals.get(index)
            if behind is None or behind[1].tool == drops.RECORD_TOOL:
                self._miss(one)
            elif one.at not in broken:
                self.originals += 1
                new[one.at] = _with_original(new.get(one.at, messages[one.at]), one, behind[1])
        return _assembled(messages, new, {place: run for place, run in inserted.items() if place[0] not in broken})

    def wanted(self, stands: Sequence[_Standing], pointers: frozenset[str]) -> list[_Standing]:
        """Those of the texts that stand for one of these pointers, or name a turn that left with one."""
        runs = self._behind([drops.key(one.text, side) for one in stands if one.names for side in _SIDES])
        holding = {place // 2 for place, (_, stored) in runs.items() if self._holds(stored.result, pointers)}
        found: list[_Standing] = []
        named = 0
        for one in stands:
            if not pointers.isdisjoint((one.id, one.own)) or (one.names and named in holding):
                found.append(one)
            named += one.names
        return found

    def _holds(self, record: Any, pointers: frozenset[str]) -> bool:
        """Whether one of the calls of a turn that left has one of these pointers."""
        if not pointers.isdisjoint(drops.pointers_of(record)):
            return True
        messages = record["messages"]
        if self.wanted(_standing(messages), pointers):
            return True
        # What is short stands in the record itself, without a pointer.
        hashes = [pointer_hash(e.tool, e.arguments, encode(e.result)) for e in Transcript.parse(messages).completed]
        return any(pointer_id(one, MAX_ID_LENGTH).startswith(pointer) for one in hashes for pointer in pointers)

    def _behind(self, texts: Sequence[str]) -> dict[int, tuple[Store, Original]]:
        """What stands behind each text, by its index, and in which store."""
        found: dict[int, tuple[Store, Original]] = {}
        for store in self.stores if texts else ():
            rest = [index for index in range(len(texts)) if index not in found]
            try:
                originals = store.originals_of([texts[index] for index in rest])
            except StoreError as error:
                self._unread.append(error)
                continue
            found |= {rest[place]: (store, original) for place, original in originals.items()}
        return found

    def _run(self, store: Store, stored: Original) -> list[Any]:
        """The messages of a run that left, restored in turn. Raises StoreError when an original is missing."""
        originals = {pointer: store.get(pointer, None) for pointer in drops.pointers_of(stored.result)}
        self.originals += 1
        run = drops.messages_of(stored.result, originals)
        return self.restored(run, _standing(run))

    def _miss(self, one: _Standing) -> None:
        if one.form == "loose" or (one.form == "copyable" and self._is_known(one.id)):
            return
        self.left += 1
        message = f"message {one.at + 1}: this store does not hold {one.id}; name the store it was cut with"
        self._fail(self._unread[0] if self._unread else NotStored(message))

    def _is_known(self, pointer: str) -> bool:
        return any(store.describe(pointer, None) is not None for store in self.stores)

    def _fail(self, error: StoreError) -> None:
        if self.problem is None:
            self.problem = error


def _with_original(message: Any, one: _Standing, original: Original) -> Any:
    if one.slot is None:
        return {**message, "content": _with_words(original.result, one.words)}
    calls = list(message["tool_calls"])
    call = calls[one.slot]
    calls[one.slot] = {**call, "function": {**call["function"], "arguments": original.arguments}}
    return {**message, "tool_calls": calls}


def _assembled(
    messages: Sequence[Any], new: Mapping[int, Any], inserted: Mapping[tuple[int, str], list[Any]]
) -> list[Any]:
    """The list with the new messages, and with the runs before or after the turns that named them."""
    runs: dict[int, list[Any]] = {}
    for (at, side), run in inserted.items():
        start, stop = _turn(messages, at)
        runs.setdefault(start if side == "before" else stop, []).extend(run)
    found: list[Any] = []
    for at, message in enumerate(messages):
        found += [*runs.get(at, ()), new.get(at, message)]
    return [*found, *runs.get(len(messages), ())]


def _turn(messages: Sequence[Any], at: int) -> tuple[int, int]:
    """Where the assistant's turn that a result at this position belongs to starts and stops."""
    start, stop = at, at + 1
    while start and messages[start].get("role") == "tool":
        start -= 1
    while stop < len(messages) and messages[stop].get("role") == "tool":
        stop += 1
    return start, stop


def _with_words(original: Any, words: str) -> Any:
    if not words:
        return original
    if isinstance(original, str):
        return original + words
    return [*(original if isinstance(original, list) else [original]), {"type": "text", "text": words}]
