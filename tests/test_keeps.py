"""What a person asked to have back goes back, and no pass cuts it again."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import Fixed, assistant, call, pair, result, session, text, user

from hermes_jev.egress import Gate
from hermes_jev.job import Job
from hermes_jev.judge import Lexical
from hermes_jev.keeps import Keeps
from hermes_jev.prune import prune, run
from hermes_jev.registration import extend
from hermes_jev.restore import restore
from hermes_jev.settings import Resolved, Settings
from hermes_jev.slash import answer
from hermes_jev.store import Store
from hermes_jev.store.keeps import keep_whole, kept_whole, let_go
from hermes_jev.surroundings import Surroundings
from hermes_jev.transcript import Transcript

ALL = Settings(pin_last_calls=0)
POINTER = re.compile(r"r-[a-z2-7]{10}")


def pointers(messages: list[Any]) -> dict[int, str]:
    """The pointers of cut results by their place."""
    tools = {at: message["content"] for at, message in enumerate(messages) if message["role"] == "tool"}
    return {at: found[0] for at, text in tools.items() if (found := POINTER.search(text)) and len(text) <= 1_500}


def test_it_goes_back_and_stays(tmp_path: Path) -> None:
    store, before = Store(tmp_path), session(6)
    cut = prune(before, Fixed(), store, ALL).messages
    places = pointers(cut)
    at, pointer = next(iter(places.items()))
    assert keep_whole(store, pointer)
    assert not keep_whole(store, pointer)
    first = prune(cut, Fixed(), store, ALL)
    assert first.messages is not cut
    assert first.messages[at]["content"] == before[at]["content"]
    assert set(pointers(first.messages)) == set(places) - {at}
    assert first.receipt.pinned["kept"] == 1
    second = prune(first.messages, Fixed(), store, ALL)
    assert second.messages is first.messages
    fresh = prune(before, Fixed(), store, ALL)
    assert fresh.messages[at]["content"] == before[at]["content"]


def test_let_go_it_is_cut_again(tmp_path: Path) -> None:
    store, before = Store(tmp_path), session(6)
    places = pointers(prune(before, Fixed(), store, ALL).messages)
    at, pointer = next(iter(places.items()))
    keep_whole(store, pointer)
    whole = prune(before, Fixed(), store, ALL).messages
    assert let_go(store, [pointer, "r-aaaaaaaaaa"]) == 1
    assert pointers(prune(whole, Fixed(), store, ALL).messages)[at] == pointer


@pytest.mark.parametrize("settings", [replace_ for replace_ in ({"enabled": False}, {"mode": "shadow"})])
def test_an_engine_that_does_nothing_puts_nothing_back(tmp_path: Path, settings: dict[str, Any]) -> None:
    store = Store(tmp_path)
    cut = prune(session(6), Fixed(), store, ALL).messages
    keep_whole(store, next(iter(pointers(cut).values())))
    assert prune(cut, Fixed(), store, ALL.model_copy(update=settings)).messages is cut


def test_an_overflow_stands_above_it_and_is_no_tug_of_war(tmp_path: Path) -> None:
    """What the ladder cuts is off the list, so the next pass does not put it back."""
    store, before = Store(tmp_path), session(3, size=20_000)
    job = Job(ALL, Fixed(1.0, 1.0), store, Gate(), window=8_000)
    cut = prune(before, Fixed(), store, ALL).messages
    for pointer in pointers(cut).values():
        keep_whole(store, pointer)
    overflow = run(before, replace(job, overflow=True))
    assert pointers(overflow.messages)
    assert len(kept_whole(store)) == 3 - len(pointers(overflow.messages))
    assert run(cut, replace(job, overflow=True)).messages is cut, "nothing goes back into a full window"


def small_turns(size: int) -> list[Any]:
    return [user("go"), *(m for n in range(90) for m in pair(n, text(size, f"out{n}"), "look", {"n": n}))]


@pytest.mark.parametrize("size", [40, 600], ids=["held in the record", "stored by its pointer"])
@pytest.mark.parametrize("which", [0, 1, 2, 3, 20, -2, -1])
def test_a_call_that_left_with_others_comes_back(tmp_path: Path, size: int, which: int) -> None:
    """Whether a line names it or not, and also the one whose result names the others."""
    store, before = Store(tmp_path), small_turns(size)
    window = round(Transcript.parse(before).tokens / 0.7)
    cut = prune(before, Fixed(), store, context_length=window)
    gone = [record for record in cut.receipt.decisions if record.action in ("drop", "remove")]
    assert len(gone) > 40
    pointer, ordinal = gone[which].pointer, gone[which].ordinal
    keep_whole(store, pointer)

    first = prune(cut.messages, Fixed(), store, context_length=window)
    second = prune(first.messages, Fixed(), store, context_length=window)

    assert before[2 * ordinal] in first.messages
    assert before[2 * ordinal - 1] in first.messages
    assert second.messages is first.messages
    assert restore(second.messages, store) == before


def test_the_long_input_of_a_call_with_a_small_result_stays_too(tmp_path: Path) -> None:
    given = [{"path": f"m{n}.py", "content": text(4_000, f"in{n}")} for n in range(20)]
    before = [user("go"), *(m for n in range(20) for m in pair(n, "ok", "write_file", given[n])), assistant("so far")]
    store, window = Store(tmp_path), round(Transcript.parse(before).tokens / 0.7)
    cut = prune(before, Fixed(), store, context_length=window)
    record = next(record for record in cut.receipt.decisions if record.action == "arguments")
    keep_whole(store, record.pointer)

    again = cut.messages
    for _ in range(3):
        again = prune(again, Fixed(), store, context_length=window).messages

    assert before[2 * record.ordinal - 1] in again
    assert again != before


def test_a_list_that_cannot_be_read_costs_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.write_text("a file")
    assert Keeps.of(Store(folder)).pointers == frozenset()


# ------------------------------------------------------------------------------------------- /jev


class Host:
    """A host's context: it keeps what is registered; its model writes, or fails."""

    def __init__(self, written: str | None = "WRITTEN") -> None:
        self.tools: dict[str, Any] = {}
        self.commands: dict[str, Any] = {}
        self.skills: dict[str, Path] = {}
        self.asked: list[Any] = []
        self.written = written
        self.llm = self

    def register_tool(self, *, name: str, handler: Any, **more: Any) -> None:
        self.tools[name] = handler

    def register_command(self, name: str, handler: Any, **more: Any) -> None:
        self.commands[name] = handler

    def register_skill(self, name: str, path: Path, **more: Any) -> None:
        self.skills[name] = path

    def complete(self, messages: list[Any], **more: Any) -> Any:
        self.asked.append(messages)
        if self.written is None:
            raise RuntimeError("no model")
        return type("Reply", (), {"text": self.written})()


def around(home: Path, session_id: str = "S1") -> Surroundings:
    return Surroundings(
        home=lambda: home,
        config=lambda: {},
        resolved=lambda: Resolved(Settings(), {}, ("colour is unknown",)),
        judge=lambda settings: Lexical(),
        session=lambda: session_id,
        gate=Gate,
    )


def history(home: Path, source: str = "cli") -> None:
    rows = [user("Fix the parser."), assistant("I look.", call("c1")), result("c1", "OUTPUT"), assistant("Done.")]
    with closing(sqlite3.connect(home / "state.db")) as db, db:
        db.execute("CREATE TABLE sessions (id TEXT, source TEXT)")
        db.execute("INSERT INTO sessions VALUES ('S1', ?)", (source,))
        db.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_calls TEXT, "
            "tool_call_id TEXT, tool_name TEXT, active INTEGER DEFAULT 1)"
        )
        db.executemany(
            "INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id) VALUES ('S1', ?, ?, ?, ?)",
            [
                (m["role"], m["content"], json.dumps(m["tool_calls"]) if "tool_calls" in m else None,
                 m.get("tool_call_id"))
                for m in rows
            ],
        )  # fmt: skip


async def said(raw: str, home: Path, host: Host | None = None, session_id: str = "S1") -> str:
    return await answer(raw, around(home, session_id), host or Host())


async def test_status_says_how_things_stand(tmp_path: Path) -> None:
    text = await said("", tmp_path)
    for words in ("active", "lexical", "no pass yet", "colour is unknown", "/jev keep ID"):
        assert words in text
    store = Store(tmp_path / "hermes_jev")
    cut = prune(session(6), Fixed(), store, ALL).messages
    keep_whole(store, (pointer := next(iter(pointers(cut).values()))))
    text = await said("status", tmp_path)
    assert "last pass: compacted" in text
    assert f"kept whole: {pointer}" in text


async def test_keep_and_unkeep(tmp_path: Path) -> None:
    store = Store(tmp_path / "hermes_jev")
    pointer = next(iter(pointers(prune(session(6), Fixed(), store, ALL).messages).values()))
    assert "next pass" in await said(f"keep {pointer}", tmp_path)
    assert "already" in await said(f"keep {pointer}", tmp_path)
    assert kept_whole(store) == {pointer}
    assert "may be cut again" in await said(f"unkeep {pointer}", tmp_path)
    assert kept_whole(store) == frozenset()


@pytest.mark.parametrize("raw", ["keep", "keep ../../x", "keep r-aaaaaaaaaa", "what", "handoff NONE", "handoff"])
async def test_what_cannot_be_done_is_said(raw: str, tmp_path: Path) -> None:
    assert (await said(raw, tmp_path)).startswith("/jev ")


async def test_the_hosts_own_model_writes_the_handoff(tmp_path: Path) -> None:
    history(tmp_path)
    host = Host()
    assert await said("handoff", tmp_path, host) == "WRITTEN"
    ((message,),) = host.asked
    assert "user: Fix the parser." in message["content"]
    assert "`S1`" in message["content"]
    assert "OUTPUT" not in message["content"]


async def test_without_a_model_the_request_is_shown(tmp_path: Path) -> None:
    history(tmp_path)
    text = await said("handoff", tmp_path, Host(written=None))
    assert "## Working on" in text
    assert "user: Fix the parser." in text


async def test_in_a_gateway_the_session_has_to_be_named(tmp_path: Path) -> None:
    """What the host says of the session at hand may be another chat's there."""
    history(tmp_path, source="telegram")
    assert "/jev handoff SESSION" in await said("handoff", tmp_path)
    assert await said("handoff S1", tmp_path) == "WRITTEN"


# ------------------------------------------------------------------------------------------- registration


def test_what_the_host_refuses_costs_nothing_else(tmp_path: Path) -> None:
    host = Host()
    problems = extend(host, around(tmp_path))
    assert [problem.split(" was not")[0] for problem in problems] == [
        "the command hermes jev",
        "what session_search finds more",
    ]
    assert set(host.tools) == {"jev_compact_select"}
    assert set(host.commands) == {"jev"}
    assert host.skills["jev-compaction"].is_file()
    assert len(extend(None, around(tmp_path))) == 5


def test_the_tool_reads_the_session_at_hand(tmp_path: Path) -> None:
    history(tmp_path)
    host = Host()
    extend(host, around(tmp_path))
    for found in (host.tools["jev_compact_select"]({}, session_id="S1"), host.tools["jev_compact_select"]({})):
        reply = json.loads(found)
        assert reply["status"] == "ok"
        assert "[KEEP VERBATIM] user: Fix the parser." in reply["digest"]
    assert "error" in json.loads(host.tools["jev_compact_select"]({"session_id": "S2"}, session_id="S1"))
