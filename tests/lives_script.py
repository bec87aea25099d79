"""What hosts do to an engine in the life of a session, by the host's own classes. Run with a host's python, in a home
that has the plugin (`host_run.make_home`):

    HERMES_HOME=… python tests/lives_script.py NAME

`NAME` is a function below. A failed assertion ends the process with a traceback. No server is needed: each agent
compacts by its own `_compress_context`, database and all.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from hermes_state import SessionDB
from run_agent import AIAgent

Message = dict[str, Any]

POINTER = re.compile(r'expand\(id="(r-[a-z2-7]+)"')
HOME = Path(os.environ["HERMES_HOME"])
USED = 50_000


def database() -> SessionDB:
    return SessionDB()


def agent(
    session: str, db: Any = None, toolsets: tuple[str, ...] = ("terminal", "context_engine"), **more: Any
) -> AIAgent:
    """An agent as a front end of the host makes it, with the session in the database."""
    db = database() if db is None else db
    if db.get_session(session) is None:
        db.create_session(session, source="cli", model="scripted-model")
    made = AIAgent(
        base_url="http://127.0.0.1:9/v1",
        api_key="sk-local",
        provider="custom",
        model="scripted-model",
        quiet_mode=True,
        skip_memory=True,
        enabled_toolsets=list(toolsets),
        session_id=session,
        session_db=db,
        **{"platform": "cli", **more},
    )
    assert made.context_compressor.name == "hermes_jev", "the host fell back to its own engine"
    return made


def conversation(calls: int = 8, chars: int = 24_000, tag: str = "") -> list[Message]:
    """A request and calls with long results, none like another."""
    messages: list[Message] = [{"role": "user", "content": f"find the failing import {tag}".strip()}]
    for at in range(calls):
        messages += exchange(f"{tag}{at}", chars)
    return messages


def exchange(name: str, chars: int) -> list[Message]:
    function = {"name": "terminal", "arguments": json.dumps({"command": f"step {name}"})}
    call = {"id": f"c{name}", "call_id": f"c{name}", "type": "function", "function": function}
    text = json.dumps({"output": f"line {name} of the log\n" * (chars // 20), "exit_code": 0, "error": None})
    return [
        {"role": "assistant", "content": f"step {name}", "tool_calls": [call], "finish_reason": "tool_calls"},
        {"role": "tool", "name": "terminal", "tool_name": "terminal", "tool_call_id": f"c{name}", "content": text},
    ]


def compact(made: AIAgent, messages: list[Message], tokens: int = USED, **more: Any) -> list[Message]:
    """A compaction as the host makes one, flushed before as its turns are."""
    made._flush_messages_to_session_db(messages, [])
    after, _ = made._compress_context(messages, "", approx_tokens=tokens, **more)
    return list(after)


def rows(session: str) -> list[Message]:
    """The conversation as another process loads it."""
    return list(database().get_messages_as_conversation(session))


def pointers(messages: list[Message]) -> list[str]:
    texts = [str(message.get("content")) for message in messages if message["role"] == "tool"]
    return [found[-1] for text in texts if "[hermes_jev: " in text and (found := POINTER.findall(text))]


def opened(made: AIAgent, pointer: str) -> str:
    """What `expand` gives, all pages."""
    pages, offset = "", 0
    while offset is not None:
        page = json.loads(made.context_compressor.handle_tool_call("expand", {"id": pointer, "offset": offset}))
        assert "error" not in page, page
        pages += page["text"]
        offset = page["next_offset"]
    return pages


def refused(made: AIAgent, pointer: str) -> bool:
    return "error" in json.loads(made.context_compressor.handle_tool_call("expand", {"id": pointer}))


def originals() -> list[tuple[str, str]]:
    file = HOME / "hermes_jev" / "truth.sqlite3"
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT pointer, result_sha FROM originals ORDER BY pointer").fetchall()
    finally:
        connection.close()


def assert_settled(before: list[Message], after: list[Message]) -> None:
    """What a pass wrote stands in the later list, byte for byte."""
    written = [message["content"] for message in before if "[hermes_jev: " in str(message.get("content"))]
    assert written
    standing = [message.get("content") for message in after]
    assert all(text in standing for text in written)


def last_rungs(engine: Any) -> str:
    found = re.search(r"ladder: ([a-z, ]+)", engine.get_status()["last_pass"])
    return found[1] if found else ""


def child(name: str, *arguments: str) -> str:
    """Another process of the host on the same home."""
    done = subprocess.run(
        [sys.executable, __file__, name, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


# --- scenarios ------------------------------------------------------------------------------------------------------


def in_place() -> None:
    """Several passes under one id: rows replaced, pointers open, nothing stored twice, settled text settled."""
    made = agent("S1")
    given = conversation()
    first = compact(made, given)
    assert made.session_id == "S1"
    assert opened(made, pointers(first)[0]) == given[2]["content"]
    grown = [*first, *(m for n in range(6) for m in exchange(f"later{n}", 24_000))]
    second = compact(made, grown)
    assert_settled(first, second)
    assert len(pointers(second)) > len(pointers(first))
    assert len(set(originals())) == len(originals()) == len(set(pointers(second)))
    assert [m.get("content") for m in rows("S1")] == [m.get("content") for m in second]


def rotation() -> None:
    """`compression.in_place: false`: the session goes on under another id, twice; old pointers open."""
    made = agent("S1")
    made.compression_in_place = False
    first = compact(made, conversation())
    assert made.session_id != "S1"
    second = compact(made, [*first, *(m for n in range(6) for m in exchange(f"later{n}", 24_000))])
    assert len({"S1", made.session_id}) == 2
    assert_settled(first, second)
    for pointer in pointers(second):
        assert opened(made, pointer)
    assert len(originals()) == len(set(pointers(second)))
    # A process that knows nothing but the host's and our own records.
    assert child("resumed", made.session_id, pointers(second)[0]) == "opened"
    assert child("resumed_elsewhere", pointers(second)[0]) == "refused"


def resumed() -> None:
    session, pointer = sys.argv[2:4]
    made = agent(session)
    loaded = rows(session)
    assert all("name" not in message for message in loaded if message["role"] == "tool")
    assert opened(made, pointer)
    again, _ = made._compress_context(loaded, "", approx_tokens=USED)
    assert_settled(loaded, again)
    print("opened")


def resumed_elsewhere() -> None:
    print("refused" if refused(agent("OTHER"), sys.argv[2]) else "opened")


def resume_in_a_new_process() -> None:
    made = agent("S1")
    after = compact(made, conversation())
    stored = originals()
    assert child("resumed", "S1", pointers(after)[0]) == "opened"
    assert originals() == stored


def new_resume_and_branch() -> None:
    """/new brings nothing along, /resume brings back, /branch may read what it branched from."""
    db = database()
    made = agent("S1", db)
    after = compact(made, conversation())
    pointer = pointers(after)[0]
    move(made, db, "S2", after)
    assert refused(made, pointer)
    status = made.context_compressor.get_status()
    assert status["last_prompt_tokens"] == 0
    assert status["compression_count"] == 0
    move(made, db, "S1", [])
    assert opened(made, pointer)
    db.create_session("S3", source="cli", model="scripted-model", parent_session_id="S1")
    move(made, db, "S3", after)
    assert opened(made, pointer)


def move(made: AIAgent, db: Any, session: str, messages: list[Message]) -> None:
    """As the command line's /new, /resume and /branch move their agent."""
    old = made.session_id
    if db.get_session(session) is None:
        db.create_session(session, source="cli", model="scripted-model")
    made.session_id = session
    made.reset_session_state(previous_messages=messages, old_session_id=old)


def gateway_hygiene() -> None:
    """A fresh agent without the engine's tools compacts the rows before the turn; the session's agent goes on."""
    live = agent("S1", platform="telegram")
    given = conversation(calls=10)
    live._flush_messages_to_session_db(given, [])
    keep = [message for message in rows("S1") if message.get("role") in {"user", "assistant", "tool"}]
    cleaner = agent("S1", toolsets=("memory",), max_iterations=4)
    cleaner.compression_in_place = True
    cleaner.context_compressor.bind_session_state(database(), "S1")
    cleaner._end_session_on_close = False
    after, _ = cleaner._compress_context(keep, "", approx_tokens=60_000)
    assert pointers(after)
    cleaner.close()
    assert opened(live, pointers(after)[0]) == given[2]["content"]
    again, _ = live._compress_context(rows("S1"), "", approx_tokens=USED)
    assert_settled(after, again)
    assert len(originals()) == len(set(pointers(again)))


def gateway_compress() -> None:
    """/compress in a chat: a temporary agent, asked first whether there is anything to do."""
    live = agent("S1", platform="telegram")
    given = conversation(calls=10)
    live._flush_messages_to_session_db(given, [])
    loaded = rows("S1")
    helper = agent("S1", toolsets=("memory",))
    helper._end_session_on_close = False
    assert helper.context_compressor.has_content_to_compress(loaded) is True
    assert helper.context_compressor.has_content_to_compress(loaded[:3]) is False
    after, _ = helper._compress_context(loaded, "", approx_tokens=20_000, focus_topic="imports", force=True)
    assert pointers(after)
    assert opened(live, pointers(after)[0]) == given[2]["content"]


def sub_agent() -> None:
    """A child compacts on its own and takes nothing from its parent."""
    parent = agent("S1")
    mine = compact(parent, conversation(tag="mine"))
    nested = agent("S1-child", toolsets=("terminal",), platform="subagent")
    theirs = compact(nested, conversation(tag="theirs"))
    assert pointers(theirs)
    assert refused(nested, pointers(mine)[0])
    assert refused(parent, pointers(theirs)[0])
    assert opened(parent, pointers(mine)[0])


def review_fork() -> None:
    """The fork has a random id, and at its end the host announces the end of the live session."""
    live = agent("S1")
    first = compact(live, conversation())
    fork = copy.deepcopy(live.context_compressor)
    fork.bind_session_state(None, "random-id")
    fork.on_session_start("random-id", platform="background_review")
    worker = threading.Thread(target=lambda: fork.on_session_end("S1", []))
    worker.start()
    worker.join(30)
    assert opened(live, pointers(first)[0])
    assert fork.get_status()["session"] == "random-id"
    assert live.context_compressor.get_status()["session"] == "S1"
    second = compact(live, [*first, *(m for n in range(6) for m in exchange(f"later{n}", 24_000))])
    assert_settled(first, second)


def two_agents_in_threads() -> None:
    """Both compact at the same time; each opens its own and not the other's."""
    agents = [agent("S1"), agent("S2")]
    found: dict[int, list[Message]] = {}

    def work(number: int) -> None:
        found[number] = compact(agents[number], conversation(tag=f"t{number}-"))

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == [0, 1]
    for number in (0, 1):
        for pointer in pointers(found[number]):
            assert opened(agents[number], pointer)
            assert refused(agents[1 - number], pointer)


def smaller_window() -> None:
    """A model with a smaller window: the same prompt is due now, and the pass brings it under the new trigger."""
    made = agent("S1")
    engine = made.context_compressor
    engine.update_model(model="large", context_length=200_000, base_url="", api_key=lambda: "k", provider="custom")
    engine.update_from_response({"prompt_tokens": 50_000})
    assert engine.should_compress(50_000) is False
    engine.update_model(model="small", context_length=65_536, base_url="", api_key="k", provider="custom")
    assert engine.should_compress(50_000) is True
    after = compact(made, conversation())
    assert engine.get_status()["last_receipt"]["used_after"] < 0.6 * 65_536
    assert pointers(after)


def no_usage() -> None:
    """A provider that counts nothing, or zero: the rough numbers lead to passes all the same."""
    made = agent("S1")
    engine = made.context_compressor
    for usage in ({}, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}):
        engine.update_from_response(usage)
        assert engine.last_prompt_tokens == 0
        assert engine.should_compress(USED) is True
    assert pointers(compact(made, conversation(), tokens=0))


def home_changes() -> None:
    """One process, two homes: each session's originals are in its own."""
    made = agent("S1")
    first = compact(made, conversation())
    other = HOME.parent / "other"
    other.mkdir()
    engine = copy.deepcopy(made.context_compressor)
    engine.on_session_start("S2", hermes_home=str(other))
    second = engine.compress(conversation(tag="other"), current_tokens=USED)
    assert (other / "hermes_jev" / "truth.sqlite3").is_file()
    found = json.loads(engine.handle_tool_call("expand", {"id": pointers(second)[0]}))
    assert "text" in found
    assert refused(made, pointers(second)[0])
    assert opened(made, pointers(first)[0])


def overflow_of_one_result() -> None:
    """One result larger than the window, not read yet: it is cut, and its original is there."""
    made = agent("S1")
    given = [*conversation(calls=1, chars=400), *exchange("huge", 400_000)]
    assert made.context_compressor.should_compress(20_000) is False
    after = compact(made, given, tokens=110_000)
    assert len(after[-1]["content"]) <= 1_500
    assert opened(made, pointers(after)[0]) == given[-1]["content"]
    assert made.context_compressor.get_status()["last_receipt"]["outcome"] == "compacted"


def twelve_thousand_messages() -> None:
    """Thousands of small results that no judge is asked about: old turns leave whole, and the host takes the list."""
    made = agent("S1")
    given: list[Message] = [{"role": "user", "content": "watch the queue"}]
    for at in range(6_000):
        pair = exchange(str(at), 60)
        pair[0]["content"] = None
        given += pair
    engine = made.context_compressor
    assert engine.should_compress(30_000) is False
    after = compact(made, given, tokens=300_000)
    assert len(after) < len(given) / 4
    assert engine.get_status()["last_receipt"]["outcome"] == "compacted"
    assert "deep pass: old turn" in engine.get_status()["last_pass"]
    assert [m["role"] for m in after[-20:]] == [m["role"] for m in given[-20:]]
    assert after[0]["content"] == "watch the queue"
    assert all(a["role"] != "user" or b["role"] != "user" for a, b in itertools.pairwise(after))


def capacity_is_said() -> None:
    """Everything is cut that may be, and it is still too much: the list is as short as it can be, and it is said."""
    made = agent("S1")
    given = [{"role": "user", "content": "word " * 120_000}, *exchange("a", 3_000)]
    assert made.context_compressor.should_compress(20_000) is False
    compact(made, given, tokens=200_000)
    status = made.context_compressor.get_status()
    assert status["outcome"] == "capacity"
    assert "capacity" in (HOME / "logs" / "agent.log").read_text() if (HOME / "logs" / "agent.log").exists() else True


def forty_passes() -> None:
    """A growing session: 40 passes, none stuck, no original twice, nothing settled changed outside a named rung."""
    made = agent("S1")
    engine = made.context_compressor
    messages = conversation(calls=8, chars=12_000)
    for number in range(40):
        grown = [m for n in range(7) for m in exchange(f"{number}-{n}", 16_000)]
        grown[0]["content"] = None
        messages += grown
        size = sum(len(str(message.get("content"))) for message in messages) // 4
        before = list(messages)
        after = compact(made, messages, tokens=max(size, 45_000))
        last = engine.get_status()["last_receipt"]
        assert last["outcome"] == "compacted", engine.get_status()["last_pass"]
        assert after is not before
        if not last_rungs(engine):
            assert len(after) == len(before)
            for old, new in zip(before, after, strict=True):
                settled = "[hermes_jev: " in str(old.get("content"))
                assert not settled or new["content"] == old["content"], "settled text changed outside a named rung"
        messages = after
    assert engine.get_status()["compression_count"] == 40
    assert len({sha for _, sha in originals()}) == len(originals())


if __name__ == "__main__":
    globals()[sys.argv[1]]()
