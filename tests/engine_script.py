"""Checks of the engine that need the host's classes and no server. Run with a host's python:

    HERMES_HOME=… python tests/engine_script.py NAME

`NAME` is a function below. A failed assertion ends the process with a traceback.
"""

from __future__ import annotations

import copy
import inspect
import json
import logging
import os
import pickle
import re
import sqlite3
import sys
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agent.context_engine import ContextEngine  # noqa: E402 - the host's, from the venv this runs in

from hermes_jev.engine import JevEngine, register  # noqa: E402

WINDOW = 65_536


def engine(session: str = "S1", window: int = WINDOW) -> JevEngine:
    """An engine as an agent has it."""
    made = copy.deepcopy(JevEngine())
    made.update_model(model="m", context_length=window, base_url="", api_key="", provider="custom", api_mode="x")
    made.bind_session_state(None, session)
    made.on_session_start(session, hermes_home="", platform="cli", model="m", context_length=window)
    return made


def messages(calls: int = 8, chars: int = 24_000) -> list[dict[str, Any]]:
    """A conversation as the host passes it, private keys and all."""
    made: list[dict[str, Any]] = [{"role": "user", "content": "find the failing import", "_db_persisted": True}]
    for at in range(calls):
        function = {"name": "terminal", "arguments": json.dumps({"command": f"step {at}"})}
        call = {"id": f"c{at}", "call_id": f"c{at}", "type": "function", "function": function}
        made.append({"role": "assistant", "content": f"step {at}", "reasoning": None, "tool_calls": [call]})
        text = json.dumps({"output": f"line {at} of the log\n" * (chars // 18), "exit_code": 0, "error": None})
        made.append({"role": "tool", "name": "terminal", "tool_call_id": f"c{at}", "content": text, "_row_id": at})
    return made


def signatures_match() -> None:
    """Each method that the host's class has can be called as the host's can."""
    for name, theirs in inspect.getmembers(ContextEngine, inspect.isfunction):
        ours = inspect.getattr_static(JevEngine, name)
        if ours is theirs or name.startswith("__"):
            continue
        wanted = [p for p in inspect.signature(theirs).parameters.values() if p.kind is not p.VAR_KEYWORD]
        got = inspect.signature(ours).parameters
        for parameter in wanted:
            assert parameter.name in got, f"{name} has no {parameter.name}"
        extra = [p for n, p in got.items() if n not in inspect.signature(theirs).parameters]
        assert all(p.default is not p.empty or p.kind is p.VAR_KEYWORD for p in extra), name
    assert issubclass(JevEngine, ContextEngine)


def a_rolling_pass_needs_growth_and_keeps_the_hosts_objects() -> None:
    """Where hosts offer it: nothing at first, then old results; what is untouched stays the very same object."""
    os.environ["HERMES_JEV_SCHEDULE"] = "rolling"
    made, given = engine(), messages(12, 6_000)
    same, none = made.prune_tool_results_only(given, current_tokens=1_000)
    assert (same is given, none) == (True, 0)
    after, count = made.prune_tool_results_only(given, current_tokens=20_000)
    assert count > 0
    changed = [at for at, (old, new) in enumerate(zip(given, after)) if old is not new]  # noqa: B905
    assert len(changed) == count
    assert all(after[at]["_row_id"] == given[at]["_row_id"] for at in changed)
    assert made.get_status()["last_receipt"]["cache"]["rewritten_tokens"] >= 0
    again, none = made.prune_tool_results_only(after, current_tokens=20_000)
    assert (again is after, none) == (True, 0)


def copies() -> None:
    """A deep copy, a clone and a pickle work, also after a pass, and share no state."""
    made = engine()
    assert made.compress(messages(), current_tokens=50_000) is not None
    for other in (copy.deepcopy(made), made.clone_for_agent(), pickle.loads(pickle.dumps(made))):
        other.update_model(model="n", context_length=128_000)
        assert made.context_length == WINDOW


def copies_after_the_host_put_its_lock_here() -> None:
    """Newer hosts keep a lock on the engine they run; a copy goes on without it."""
    import threading

    made = engine()
    made._host_lock = threading.Lock()
    made._host_note = "kept"
    other = copy.deepcopy(made)
    assert not hasattr(other, "_host_lock")
    assert other._host_note == "kept"
    assert other.compress(messages(), current_tokens=50_000) is not None


def attributes() -> None:
    """The host writes these without asking."""
    made = engine()
    for name in ("last_prompt_tokens", "last_completion_tokens", "threshold_tokens", "context_length"):
        setattr(made, name, -1)
    made.threshold_percent = 0.4
    made.last_compression_rough_tokens = 5
    assert made.should_compress(0) is False
    assert made.compression_count == 0
    assert made.name == "hermes_jev"
    assert isinstance(made.last_real_prompt_tokens, int)


def real_pass() -> None:
    """New dicts without private keys; the given list and its messages are untouched."""
    given = messages()
    before = copy.deepcopy(given)
    made = engine()
    after = made.compress(given, current_tokens=50_000)
    assert given == before
    assert after is not given
    assert len(after) == len(given)
    assert not any(key.startswith("_") for message in after for key in message)
    assert not any(new is old for new, old in zip(after, given, strict=True))
    assert [m["role"] for m in after] == [m["role"] for m in given]
    assert made.compression_count == 0
    assert made.get_status()["compression_count"] == 1
    again = made.compress(after, current_tokens=50_000)
    assert again is after


def no_op() -> None:
    """Nothing to cut: the very list, and quiet until the prompt grew."""
    given = messages(calls=3, chars=2_000)
    made = engine()
    assert made.should_compress(45_000) is True
    assert made.compress(given, current_tokens=45_000) is given
    assert made.should_compress(45_100) is False
    assert made.should_compress(49_000) is True
    assert "nothing_to_prune" in made.get_status()["last_pass"]


def quiet_ends_with_new_results() -> None:
    """Recent results that become old are worth a pass before the prompt has grown."""
    made = engine()
    given = messages(calls=3)
    made.update_from_response({"prompt_tokens": 45_000})
    assert made.should_compress(45_000) is True
    assert made.compress(given, current_tokens=45_000) is given
    made.update_from_response({"prompt_tokens": 45_050})
    assert made.should_compress(45_050) is False
    assert made.should_compress(50_000) is False
    made.update_from_response({"prompt_tokens": 45_100})
    assert made.should_compress(45_100) is True


def manual_compaction_is_no_overflow() -> None:
    """Some hosts compact by hand without saying so: after an answer, with room in the window, recent results stay."""
    made = engine()
    given = messages()
    assert made.should_compress(30_000) is False
    made.update_from_response({"prompt_tokens": 30_000})
    after = made.compress(given, current_tokens=30_000)
    assert [message["content"] for message in after[-6:]] == [message["content"] for message in given[-6:]]


def refused_after_a_pass_without_gain() -> None:
    """Asked once, due, nothing gained, and the provider refuses the prompt: the host does not ask again."""
    made = engine()
    given = messages(calls=3)
    assert made.should_compress(46_000) is True
    assert made.compress(given, current_tokens=46_000) is given
    assert made.compress(given, current_tokens=47_000) is not given


def a_turn_has_its_passes_anew() -> None:
    """Two passes for nothing in one turn leave only urgent pressure; the next turn starts afresh."""
    made = engine()
    given = messages(calls=3, chars=2_000)
    for count in (40_000, 43_500):
        made.update_from_response({"prompt_tokens": count})
        assert made.should_compress(count) is True
        assert made.compress(given, current_tokens=count) is given
    made.update_from_response({"prompt_tokens": 48_000})
    assert made.should_compress(48_000) is False
    made.update_from_response({"prompt_tokens": 48_100})
    if hasattr(ContextEngine, "on_turn_complete"):
        made.on_turn_complete([], None)
    assert made.should_compress(48_900) is False
    assert made.should_compress(52_900) is True


def the_idle_compaction_of_newer_hosts_finds_its_share() -> None:
    assert 0 < engine().summary_target_ratio < 1


def another_conversation_brings_no_ancestors() -> None:
    """A boundary that names a session this agent did not run begins another conversation."""
    made = engine("S1")
    after = made.compress(messages(), current_tokens=50_000)
    pointer = re.search(r"r-[a-z2-7]{10}", after[2]["content"])[0]  # type: ignore[index]
    made.on_session_start("S2", boundary_reason="compression", old_session_id="S1")
    made.on_session_start("S9", boundary_reason="compression", old_session_id="OTHER")
    assert "error" in json.loads(made.handle_tool_call("expand", {"id": pointer}))


def words_after_a_cut_are_settled() -> None:
    """The host appends what the user says to a result that was cut already: it is not cut again."""
    made = engine()
    after = made.compress(messages(), current_tokens=50_000)
    words = f"\n\n[OUT-OF-BAND USER MESSAGE — x]\n{'please ' * 400}\n[/OUT-OF-BAND USER MESSAGE]"
    after[2]["content"] += words
    again = made.compress(after, current_tokens=50_000, force=True)
    assert again is after


def unread_results_stay() -> None:
    """At urgent pressure without an overflow, what the model has not read yet is not cut; in an overflow it may be."""
    given = messages(calls=8, chars=25_000)
    made = engine()
    assert made.should_compress(60_000) is True
    after = made.compress(given, current_tokens=60_000)
    assert after is not given
    assert after[-1]["content"] == given[-1]["content"]
    lone = messages(calls=1, chars=30_000)
    made = engine()
    assert made.should_compress(20_000) is False
    assert made.compress(lone, current_tokens=20_000)[-1]["content"] != lone[-1]["content"]


def dense_text_is_seen_before_the_first_request() -> None:
    """The host counts four characters for a token; our estimate of dense text is higher, and the pass goes by it."""
    made = engine()
    given = messages(calls=8, chars=400)
    for message in given:
        if message["role"] == "tool":
            message["content"] = "导入订单时发生错误，供应商编号不匹配，请重新核对后再试。" * 200
    rough = sum(len(str(message["content"])) for message in given) // 4
    assert made.should_compress(rough) is False
    assert made.should_compress_preflight(given) is True
    after = made.compress(given, current_tokens=rough)
    assert after is not given
    assert "ladder" not in made.get_status()["last_pass"]
    assert made.should_compress_preflight(after) is False
    made = engine()
    made.update_from_response({"prompt_tokens": 20_000})
    assert made.should_compress_preflight(given) is False
    assert made.should_compress_preflight(messages(calls=1, chars=400)) is False
    for odd in (None, [None], "text", []):
        assert made.should_compress_preflight(odd) is False  # type: ignore[arg-type]


def the_status_is_complete() -> None:
    """Where it runs, under which settings, with which judge and store, and what the last pass did; one line a pass."""
    os.environ["TYPESAFE_API_KEY"] = "ts-" + "secret" * 4
    os.environ["HERMES_JEV_JUDGE"] = "lexical"
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("hermes_jev").addHandler(handler)
    logging.getLogger("hermes_jev").setLevel(logging.INFO)
    made = engine()
    empty = made.get_status()
    assert empty["outcome"] == ""
    assert empty["store"]["state"] == "empty"
    lines.clear()
    made.compress(messages(), current_tokens=50_000)
    status = made.get_status()
    assert (status["session"], status["judge"], status["mode"]) == ("S1", "lexical", "active")
    assert status["settings"]["trigger_percent"] == 0.6
    assert status["origins"] == {"judge": "environment"}
    assert status["store"]["state"] == "ready"
    assert status["store"]["bytes"] > 0
    assert status["last_receipt"]["outcome"] == status["outcome"] == "compacted"
    assert status["context_length"] == WINDOW
    json.dumps(status)
    assert "secretsecret" not in json.dumps(status)
    assert [line for line in lines if "compacted" in line] == lines


def what_cannot_be_copied_costs_no_turn() -> None:
    """A message that the host's own code made uncopyable: the very list goes back, and the state says that nothing
    happened."""
    import threading

    made = engine()
    given = messages()
    given[0]["lock"] = threading.Lock()
    assert made.compress(given, current_tokens=50_000) is given
    assert made.get_status()["outcome"] == "error"
    assert made.get_status()["compression_count"] == 0
    assert made.has_content_to_compress([None]) is False  # type: ignore[list-item]
    made.update_from_response([1])  # type: ignore[arg-type]
    made.context_length = None  # type: ignore[assignment]
    assert made.should_compress(5) is False


def a_reserve_larger_than_the_window() -> None:
    """It is capped at half and said; the engine goes on as it would."""
    os.environ["HERMES_JEV_RESERVE_OUTPUT_TOKENS"] = "200000"
    made = engine()
    assert made.should_compress(10_000) is False
    assert made.should_compress(30_000) is True
    assert any("reserve_output_tokens" in problem for problem in made.get_status()["problems"])


def never_raises() -> None:
    """Whatever comes, the same object goes back."""
    made = engine()
    for odd in ([], None, [5], [None], "text", [{"role": "tool"}], [{"role": "assistant", "tool_calls": [3]}]):
        assert made.compress(odd, current_tokens=60_000) is odd, odd  # type: ignore[arg-type]
    assert made.compress(messages(), current_tokens=float("nan")) is not None  # type: ignore[arg-type]
    for usage in ({}, {"prompt_tokens": None}, {"prompt_tokens": "x"}, {"prompt_tokens": -1}, None):
        made.update_from_response(usage)  # type: ignore[arg-type]
    for length in (0, -5, None, "x", float("inf")):
        made.update_model(model="m", context_length=length)  # type: ignore[arg-type]
        assert made.should_compress(10_000_000) is False
    assert made.on_session_end("S1", []) is None


def overflow() -> None:
    """The host asks although no pass was due: recent results are cut too, and twice if need be."""
    made = engine()
    given = messages(calls=3)
    assert made.should_compress(30_000) is False
    first = made.compress(given, current_tokens=30_000)
    assert first is not given
    shorter = [m for m in first if m["role"] == "tool" and len(m["content"]) <= 1_500]
    assert shorter
    assert made.should_compress(20_000) is False
    second = made.compress(first, current_tokens=20_000)
    rough = [sum(len(str(m["content"])) for m in step) for step in (given, first, second)]
    assert rough[1] < 0.95 * rough[0]
    assert second is first or rough[2] < rough[1]


def store_is_a_file() -> None:
    """No folder can be made: nothing is cut, and it is said."""
    Path(os.environ["HERMES_HOME"], "hermes_jev").write_text("in the way")
    made = engine()
    given = messages()
    assert made.compress(given, current_tokens=50_000) is given
    status = made.get_status()
    assert status["outcome"] == "error"
    assert "not stored" in status["last_pass"]


def bad_settings() -> None:
    """A value that cannot be used keeps its default and is said once; an address that cannot be used costs no turn."""
    home = Path(os.environ["HERMES_HOME"])
    settings = (
        "plugins:\n  entries:\n    hermes_jev:\n      settings: {trigger_percent: nine, judge: jev, colour: red}\n"
    )
    (home / "config.yaml").write_text(settings)
    os.environ["TYPESAFE_BASE_URL"] = "http://judge.example/v1"
    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("hermes_jev").addHandler(handler)
    made = engine()
    made.on_session_start("S1")
    given = messages()
    assert made.should_compress(40_000) is True
    assert made.compress(given, current_tokens=40_000) is given
    problems = " ".join(made.get_status()["problems"])
    assert "trigger_percent" in problems
    assert "nine" in problems
    assert "colour" in problems
    assert "TYPESAFE_BASE_URL" in problems
    assert sum("trigger_percent" in text for text in records) == 1
    assert made.get_status()["outcome"] == "judge_failed"


class Refusing(BaseHTTPRequestHandler):
    """Knows no route."""

    asked = 0

    def do_POST(self) -> None:
        Refusing.asked += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


def a_service_is_remembered() -> None:
    """After three failed passes, of whichever copy, the lexical judge answers; status and receipt say so."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    os.environ |= {
        "HERMES_JEV_JUDGE": "jev",
        "TYPESAFE_API_KEY": "apikey_FAKE",
        "TYPESAFE_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}",
    }
    made = engine()
    given = messages()
    for other in (made, made.clone_for_agent(), engine("S2")):
        assert other.compress(given, current_tokens=50_000) is given
        assert other.get_status()["outcome"] == "judge_failed"
        assert "HTTP 404" in " ".join(other.get_status()["problems"])
    asked = Refusing.asked
    after = engine("S3").compress(given, current_tokens=50_000)
    last = made.clone_for_agent()
    last.compress(given, current_tokens=50_000)
    server.shutdown()
    server.server_close()
    assert Refusing.asked == asked == 3
    assert after is not given
    status = last.get_status()
    assert status["spent_today_usd"] == 0.0
    assert "failed three passes in a row" in " ".join(status["problems"])
    assert "the lexical judge stood in" in " ".join(status["problems"])


def expand_for_a_session() -> None:
    """Its own and its ancestors' pointers open; another session's do not."""
    made = engine("S1")
    after = made.compress(messages(), current_tokens=50_000)
    found = re.search(r'expand\(id="(r-[a-z2-7]+)"\)', after[2]["content"])
    assert found
    pointer = found[1]
    page = json.loads(made.handle_tool_call("expand", {"id": pointer}, messages=after))
    assert messages()[2]["content"].startswith(page["text"])
    assert page["next_offset"] == len(page["text"])
    made.on_session_start("S2", boundary_reason="compression", old_session_id="S1")
    assert "text" in json.loads(made.handle_tool_call("expand", {"id": pointer}))
    made.on_session_start("S3", old_session_id="S2")
    assert "error" in json.loads(made.handle_tool_call("expand", {"id": pointer}))
    assert "error" in json.loads(engine("S9").handle_tool_call("expand", {"id": pointer}))
    assert "text" in json.loads(engine("S2").handle_tool_call("expand", {"id": pointer}))


def opens(made: JevEngine, pointer: str) -> bool:
    """Whether `expand` gives this session the original."""
    reply = json.loads(made.handle_tool_call("expand", {"id": pointer}))
    assert ("text" in reply) != ("error" in reply)
    return "text" in reply


def cut_in(after: list[dict[str, Any]]) -> str:
    """The pointer of one cut result."""
    found = [re.search(r"r-[a-z2-7]{10,}", str(message["content"])) for message in after if message["role"] == "tool"]
    return next(match[0] for match in found if match)


def host_session(name: str, parent: str | None) -> None:
    """A session in the host's own records."""
    with closing(sqlite3.connect(Path(os.environ["HERMES_HOME"]) / "state.db")) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, parent_session_id TEXT)")
        connection.execute("INSERT INTO sessions VALUES (?, ?)", (name, parent))


def a_session_reaches_its_own_and_its_ancestors() -> None:
    """Rotations, resume, branches and sub-agents reach upwards; a new conversation, a parent, a stranger do not."""
    made = engine("S1")
    first = cut_in(made.compress(messages(), current_tokens=50_000))
    made.on_session_start("S2", boundary_reason="compression", old_session_id="S1")
    second = cut_in(made.compress(messages(chars=30_000), current_tokens=50_000))
    made.on_session_start("S3", boundary_reason="compression", old_session_id="S2")
    assert opens(made, first)
    assert opens(made, second)
    resumed = engine("S3")
    assert opens(resumed, first)
    assert not opens(engine("S1"), second), "an ancestor reaches nothing of those after it"
    host_session("S3", None)
    host_session("BRANCH", "S3")
    host_session("SUB", "BRANCH")
    branch = engine("BRANCH")
    assert opens(branch, second)
    own = cut_in(branch.compress(messages(chars=36_000), current_tokens=50_000))
    assert opens(engine("SUB"), own)
    assert not opens(made, own), "the one it branched from does not see the branch"
    made.on_session_reset()
    made.on_session_start("NEW", old_session_id="S3", carry_over_context=True)
    assert not opens(made, first), "a bare old_session_id is no parent"
    made.on_session_start("OTHER", conversation_id="S3")
    assert not opens(made, first)


def a_parent_named_by_mistake_opens_nothing() -> None:
    """A boundary continues the bound session or one that is known to come before it, and no other."""
    victim = cut_in(engine("VICTIM").compress(messages(), current_tokens=50_000))
    made = engine("MINE")
    mine = cut_in(made.compress(messages(chars=30_000), current_tokens=50_000))
    made.on_session_start("NEXT", boundary_reason="compression", old_session_id="VICTIM")
    assert not opens(made, victim)
    assert not opens(made, mine), "it started clean"
    made.on_session_start("AGAIN", boundary_reason="compression", old_session_id="NEXT")
    assert not opens(made, victim)
    assert made._store().ancestry("AGAIN") == ["AGAIN", "NEXT"]


def what_the_host_forgets_the_store_remembers() -> None:
    """Hermes cuts a branch loose when its parent is deleted; the branch still holds the parent's pointers."""
    pointer = cut_in(engine("P").compress(messages(), current_tokens=50_000))
    host_session("B", "P")
    assert opens(engine("B"), pointer)
    with closing(sqlite3.connect(Path(os.environ["HERMES_HOME"]) / "state.db")) as connection, connection:
        connection.execute("UPDATE sessions SET parent_session_id = NULL")
    assert opens(engine("B"), pointer)


def a_damaged_store_is_set_aside_and_said_once() -> None:
    """What it held goes on to open, passes go on to cut, and the status says it."""
    made = engine()
    pointer = cut_in(made.compress(messages(), current_tokens=50_000))
    path = made._store().path
    path.write_bytes(bytes(100) + path.read_bytes()[100:])
    assert opens(made, pointer)
    later = cut_in(made.compress(messages(chars=30_000), current_tokens=50_000))
    assert opens(made, later)
    assert opens(made, pointer)
    said = [problem for problem in made.get_status()["problems"] if "set aside" in problem]
    assert len(said) == 1, said
    assert len(made._store().aside()) == 1


def the_store_is_kept_within_its_limits() -> None:
    """Once a day after a pass, and when asked; never what the bound session may open."""
    os.environ["HERMES_JEV_STORE_MAX_AGE_DAYS"] = "0.00000001"
    old = cut_in(engine("OLD").compress(messages(), current_tokens=50_000))
    made = engine("MINE")
    mine = cut_in(made.compress(messages(chars=30_000), current_tokens=50_000))
    assert made._store().swept() is not None
    assert {one.id for one in made._store().each("OLD")} >= {old}, "a sweep a day is enough"
    swept = made.run_retention()
    assert swept is not None
    assert old in swept.pointers
    assert opens(made, mine)
    assert not opens(engine("OLD"), old)
    path = made._store().path
    path.unlink()
    path.mkdir()
    assert made.run_retention() is None
    assert any("not tended" in problem for problem in made.get_status()["problems"])


def search_for_a_session() -> None:
    """`session_search` finds what this session had cut and nobody else's; the middleware adds it to the host's."""
    from hermes_jev.running import search_middleware

    made = engine("S1")
    made.compress(messages(), current_tokens=50_000)
    found = json.loads(made.handle_tool_call("session_search", {"query": "line 2 of the log"}))
    assert found["results"][0]["id"].startswith("r-")
    assert json.loads(engine("S2").handle_tool_call("session_search", {"query": "line 2"}))["results"] == []
    base = json.dumps({"success": True, "results": []})
    wrapped = search_middleware("session_search", {"query": "line 2"}, lambda args: base, session_id="S1")
    assert json.loads(wrapped)["this_session"][0]["tool"] == "terminal"
    assert search_middleware("session_search", {"query": "line 2"}, lambda args: base, session_id="S9") is base


def pages_of_one_turn_fit_together() -> None:
    """What was handed out since the last response counts as used."""
    made = engine("S1")
    after = made.compress(messages(), current_tokens=50_000)
    pointer = re.search(r"r-[a-z2-7]{10}", after[2]["content"])[0]  # type: ignore[index]
    made.update_from_response({"prompt_tokens": WINDOW - 4_000})
    replies = [made.handle_tool_call("expand", {"id": pointer}) for _ in range(12)]
    assert sum("error" not in json.loads(reply) for reply in replies) >= 2
    assert sum(len(reply) for reply in replies if "error" not in json.loads(reply)) <= 16_000
    assert "error" in json.loads(replies[-1])
    made.update_from_response({"prompt_tokens": WINDOW - 4_000})
    assert "error" not in json.loads(made.handle_tool_call("expand", {"id": pointer}))


def registration() -> None:
    """The engine first, then what else the host's context can take; nothing written, nothing opened."""

    class Reduced:
        def __init__(self) -> None:
            self.taken: list[Any] = []

        def register_context_engine(self, made: Any) -> None:
            self.taken.append(type(made).__name__)

    class Whole(Reduced):
        def register_middleware(self, kind: str, callback: Any) -> None:
            assert callable(callback)
            self.taken.append(kind)

    reduced, whole = Reduced(), Whole()
    register(reduced)
    register(whole)
    assert reduced.taken == ["JevEngine"]
    assert whole.taken == ["JevEngine", "tool_execution"]
    assert not Path(os.environ["HERMES_HOME"], "hermes_jev").exists()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
