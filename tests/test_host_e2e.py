"""The engine inside the real, installed hosts: a scripted model, real tools, a real window that fills.

Each scenario is one run of `hermes chat` (the resumed one two), shared by the tests that look at what it left.
"""

from __future__ import annotations

import itertools
import json
import re
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from host_run import CLOSED, TOOLSETS, HostHome, HostRun, make_home
from hosts import HOSTS, host_python
from model_server import POINTER, Conversation, Message, ModelServer, Steps, Usage, text_of
from system_one_server import KEY, SystemOneServer

pytestmark = pytest.mark.host

QUERY = "Please go through the shipment records and tell me what you find."
FINAL = "I have gone through all records."
SMALL = 1500
"""Results of at most this many characters are never touched, and nothing the engine writes is longer."""


# ---------------------------------------------------------------------------------------------------- scenarios


@dataclass(frozen=True, slots=True)
class Play:
    """One scenario: the run, what the host sent to the model, and what reached the judge."""

    host: HostHome
    run: HostRun
    talks: Sequence[Conversation]
    failures: Sequence[str]
    judged: Sequence[Mapping[str, Any]] = ()
    stored: Sequence[tuple[str, str]] = ()

    @property
    def last(self) -> Conversation:
        return self.talks[-1]

    def originals(self) -> dict[str, str]:
        """Call id → the result as the model first saw it."""
        seen: dict[str, str] = {}
        for talk in self.talks:
            for call_id, text in talk.results.items():
                seen.setdefault(call_id, text)
        return seen

    def shortened(self) -> dict[str, str]:
        """Call id → what stands in the last request where something longer stood before."""
        before = self.originals()
        return {call_id: text for call_id, text in self.last.results.items() if text != before[call_id]}


def terminal(number: int, size: int) -> dict[str, Any]:
    """A step that prints about `size` characters no other step prints, some of them hard to keep exact."""
    row = f"'record {number}-%04d  lot %06d  \\\"q\\\" \\\\path é ✓ 箱' % (i, i * 7919 * {number} % 999983)"
    command = f'python3 -c "for i in range({size // 47}): print({row})"'
    return {"text": f"I look at part {number}.", "calls": [{"name": "terminal", "arguments": {"command": command}}]}


def read_file(path: str) -> dict[str, Any]:
    return {"text": f"I read {path}.", "calls": [{"name": "read_file", "arguments": {"path": path}}]}


def expand(ordinal: int) -> dict[str, Any]:
    """A step that opens what stands for the call of that ordinal, page by page."""
    arguments = {"id": f"{{pointer:{ordinal}}}", "offset": "{next_offset}"}
    text = f"I need part {ordinal} again."
    return {"text": text, "calls": [{"name": "expand", "arguments": arguments}], "page": True}


FILL = [terminal(1, 24_000), read_file("notes.txt"), *(terminal(n, 30_000) for n in (3, 4, 5))]
FILL += [terminal(6, 10_000), terminal(7, 10_000)]
"""Seven calls, about 150,000 characters: over 60 % and below 85 % of 65,536 tokens, pinned ones small."""


def low(question_id: str) -> float:
    """No output is needed; every second call is worth knowing."""
    ordinal = int(re.findall(r"\d+", question_id)[0])
    return 0.9 if question_id.endswith("_call") and ordinal % 2 else 0.1


def judge_env(url: str) -> dict[str, str]:
    return {"TYPESAFE_API_KEY": KEY, "TYPESAFE_BASE_URL": url}


def home_with_notes(python: Path, folder: Path, model: ModelServer) -> HostHome:
    host = make_home(python, folder, model.url)
    lines = (f"note {i:03d}: pallet {i * 37 % 1009} moved to bay {i % 23}, \t checked twice\n" for i in range(250))
    (host.work / "notes.txt").write_text("".join(lines), encoding="utf-8")
    return host


def play(
    python: Path,
    folder: Path,
    steps: Sequence[Mapping[str, Any]],
    *,
    env: Mapping[str, str] | None = None,
    query: str = QUERY,
    toolsets: str = TOOLSETS,
    usage: Usage = "real",
) -> Play:
    """Run one scenario in a fresh home."""
    with ModelServer(Steps(steps), log=folder / "requests.jsonl", usage=usage) as model:
        host = home_with_notes(python, folder, model)
        run = host.chat(query, env=env, toolsets=toolsets)
        return Play(host, run, model.conversations(), model.failures)


@pytest.fixture(scope="module", params=list(HOSTS))
def python(request: pytest.FixtureRequest) -> Path:
    return host_python(request.param)


@pytest.fixture(scope="module")
def sessions(python: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Play, Play]:
    """An ordinary session that opens two originals after the pass, and its resumption in a second process."""
    folder = tmp_path_factory.mktemp("ordinary")
    with SystemOneServer(decide=lambda question_id, *_: low(question_id)) as judge:
        env = judge_env(judge.url)
        script = Steps([*FILL, expand(1), expand(2), {"text": FINAL}])
        with ModelServer(script, log=folder / "requests.jsonl") as model:
            host = home_with_notes(python, folder, model)
            first = host.chat(QUERY, env=env)
            judged = [request.body for request in judge.requests]
            ordinary = Play(host, first, model.conversations(), list(model.failures), judged, stored(host))
            model.script = Steps([expand(1), {"text": "Still the same."}])
            second = host.chat("Is the first part still there?", env=env, resume=first.session_id)
            talks = model.conversations()[len(ordinary.talks) :]
            resumed = Play(host, second, talks, model.failures, stored=stored(host))
    return ordinary, resumed


@pytest.fixture(scope="module")
def ordinary(sessions: tuple[Play, Play]) -> Play:
    return sessions[0]


@pytest.fixture(scope="module")
def resumed(sessions: tuple[Play, Play]) -> Play:
    return sessions[1]


def stored(host: HostHome) -> list[tuple[str, str]]:
    """Pointer and content hash of every original in the store."""
    (file,) = (host.home / "hermes_jev").rglob("truth.sqlite3")
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT pointer, result_sha FROM originals ORDER BY pointer").fetchall()
    finally:
        connection.close()


# ------------------------------------------------------------------------------------------------------- checks


def assert_ended_well(played: Play, final: str = FINAL, errors: int = 0) -> None:
    """`errors` is how often the host was refused and logged it."""
    assert played.failures == []
    assert played.run.rc == 0, played.run.stdout + played.run.stderr + played.run.log[-4000:]
    assert final in played.run.stdout
    assert "registered context engine: hermes_jev" in played.host.log()
    assert "falling back" not in played.host.log().lower()
    assert played.host.log().count("Traceback") <= errors
    for talk in played.talks:
        assert_paired(talk.messages)


def assert_paired(messages: Sequence[Message]) -> None:
    """Every call is followed by its result before anything else, and no result stands alone."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, "a result without its call"
            waiting.remove(message["tool_call_id"])
            continue
        assert waiting == [], "a call without its result"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    assert waiting == []


def passes(played: Play) -> list[str]:
    """The engine's own log lines of passes that cut something."""
    return [line for line in played.run.log.splitlines() if "hermes_jev" in line and "compacted" in line]


def spoken(talk: Conversation) -> list[Message]:
    """User and assistant messages, calls included."""
    return [message for message in talk.prose if message["role"] != "system"]


def assert_words_kept(played: Play) -> None:
    """Each request begins with every word of the one before it."""
    for before, after in itertools.pairwise(played.talks):
        assert spoken(after)[: len(spoken(before))] == spoken(before)


def assert_settled(played: Play) -> None:
    """What a pass wrote stays byte for byte the same in every later request."""
    written: dict[str, str] = {}
    for talk in played.talks:
        for call_id, text in talk.results.items():
            if "[hermes_jev: " in text:
                assert text == written.setdefault(call_id, text)


def assert_cut(played: Play) -> None:
    """A pass happened, and what it left is short and says where the rest is."""
    assert passes(played)
    assert played.shortened()
    for text in played.shortened().values():
        assert len(text) <= SMALL
        assert text.splitlines()[-1].startswith("[hermes_jev: ")
        assert POINTER.search(text.splitlines()[-1])


def pages(talk: Conversation, pointer: str) -> list[dict[str, Any]]:
    """The replies to the `expand` calls for that pointer, in order."""
    results = talk.results
    found = []
    for message in talk.messages:
        for call in message.get("tool_calls") or ():
            if call["function"]["name"] == "expand" and json.loads(call["function"]["arguments"])["id"] == pointer:
                found.append(json.loads(results[call["id"]]))
    return found


def opened(talk: Conversation, ordinal: int, since: int = 0) -> str:
    """What the model reads when it opens the call of that ordinal, its pages checked and joined."""
    found = pages(talk, talk.pointer(ordinal))[since:]
    assert found, "expand was not called"
    offset = 0
    for page in found:
        assert page["format"] == "text"
        assert page["offset"] == offset
        offset += len(page["text"])
        assert page["next_offset"] == (offset if page is not found[-1] else None)
        assert page["total"] == sum(len(one["text"]) for one in found)
    return "".join(page["text"] for page in found)


# -------------------------------------------------------------------------------------------------------- tests


def test_ordinary_session_is_pruned_and_goes_on(ordinary: Play) -> None:
    assert_ended_well(ordinary)
    assert_cut(ordinary)
    assert ordinary.judged, "System One was not asked"


def test_ordinary_session_shows_both_kinds_of_cut(ordinary: Play) -> None:
    kept_start = [text for text in ordinary.shortened().values() if "are above" in text]
    assert kept_start, "no result was shortened"
    assert len(kept_start) < len(ordinary.shortened()), "no result was removed"


def test_ordinary_session_keeps_every_word(ordinary: Play, resumed: Play) -> None:
    assert_words_kept(ordinary)
    said = [(message["role"], text_of(message)) for message in spoken(resumed.last)]
    kept = [row for row in resumed.host.rows(ordinary.run.session_id) if row.active and row.role != "tool"]
    assert [(row.role, row.content) for row in kept][: len(said)] == said


def test_ordinary_session_never_touches_settled_text(ordinary: Play, resumed: Play) -> None:
    assert_settled(replace(ordinary, talks=[*ordinary.talks, *resumed.talks]))


def test_ordinary_session_leaves_the_last_three_results_whole(ordinary: Play) -> None:
    originals = ordinary.originals()
    for talk in ordinary.talks:
        assert all(talk.results[call_id] == originals[call_id] for call_id in talk.call_ids[-3:])


def test_expand_gives_back_the_terminal_output(ordinary: Play) -> None:
    first = ordinary.last.call_ids[0]
    assert len(pages(ordinary.last, ordinary.last.pointer(1))) > 1, "one page is no test of paging"
    assert opened(ordinary.last, 1) == ordinary.originals()[first]


def test_expand_gives_back_the_file(ordinary: Play) -> None:
    second = ordinary.last.call_ids[1]
    assert opened(ordinary.last, 2) == ordinary.originals()[second]


def test_no_page_becomes_a_host_stub(ordinary: Play, resumed: Play) -> None:
    for played in (ordinary, resumed):
        assert not [text for text in played.last.results.values() if "<persisted-output>" in text]


def test_resumed_session_still_opens_pointers(ordinary: Play, resumed: Play) -> None:
    assert_ended_well(resumed, "Still the same.")
    before = len(pages(ordinary.last, ordinary.last.pointer(1)))
    original = ordinary.originals()[ordinary.last.call_ids[0]]
    assert opened(resumed.last, 1, since=before) == original


def test_resumed_session_begins_with_the_same_bytes(ordinary: Play, resumed: Play) -> None:
    def bare(talk: Conversation) -> list[tuple[Any, ...]]:
        bodies = [message for message in talk.messages if message["role"] != "system"]
        return [(body["role"], text_of(body), body.get("tool_call_id"), body.get("tool_calls")) for body in bodies]

    before = bare(ordinary.last)
    assert bare(resumed.talks[0])[: len(before)] == before


def test_resumed_session_stores_no_original_twice(ordinary: Play, resumed: Play) -> None:
    assert len(ordinary.stored) == len(ordinary.shortened())
    assert resumed.stored == ordinary.stored


def test_resumed_session_stores_no_message_twice(ordinary: Play, resumed: Play) -> None:
    rows = [row for row in resumed.host.rows(ordinary.run.session_id) if row.active]
    said = [message for message in resumed.last.messages if message["role"] != "system"]
    assert [row.role for row in rows] == [message["role"] for message in said] + ["assistant"]


def test_host_has_nothing_of_ours_installed(ordinary: Play) -> None:
    script = "import importlib.util as u; print([n for n in ('platformdirs', 'hermes_jev') if u.find_spec(n)])"
    command = [str(ordinary.host.python), "-c", script]
    found = subprocess.run(command, cwd=ordinary.host.work, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
    assert_cut(ordinary)


def test_without_a_key_the_lexical_judge_does_the_pass(python: Path, tmp_path: Path) -> None:
    played = play(python, tmp_path, [*FILL, {"text": FINAL}])
    assert_ended_well(played)
    assert_cut(played)
    assert_words_kept(played)
    assert all("lexical" in line for line in passes(played))
    said = [line for line in played.run.log.splitlines() if "hermes_jev" in line and "TYPESAFE_API_KEY" in line]
    assert len(said) == 1


def test_with_the_judge_down_nothing_is_lost(python: Path, tmp_path: Path) -> None:
    played = play(python, tmp_path, [*FILL, {"text": FINAL}], env=judge_env(CLOSED))
    assert_ended_well(played)
    assert_words_kept(played)
    assert played.shortened() == {}
    assert passes(played) == []
    assert "judge_failed" in played.run.log


def test_without_the_engine_toolset_a_pass_still_runs(python: Path, tmp_path: Path) -> None:
    """The model has no `expand` here, and the provider counts no tokens either."""
    steps = [terminal(number, size) for number, size in enumerate([24_000, 30_000, 30_000, 30_000, 20_000, 20_000], 1)]
    with SystemOneServer(decide=lambda question_id, *_: low(question_id)) as judge:
        env = judge_env(judge.url)
        played = play(python, tmp_path, [*steps, {"text": FINAL}], env=env, toolsets="terminal", usage="none")
    assert all("expand" not in talk.tools for talk in played.talks)
    assert_ended_well(played)
    assert_cut(played)
    assert_words_kept(played)


def test_with_nothing_to_prune_the_session_is_left_alone(python: Path, tmp_path: Path) -> None:
    query = "\n".join(f"Line {i} of a long report I paste here: value {i * 31 % 977}." for i in range(2_400))
    commands = [f"seq {n}000 {n}220" for n in range(1, 15)]
    steps: list[dict[str, Any]] = [{"calls": [{"name": "terminal", "arguments": {"command": c}}]} for c in commands]
    steps.append({"text": FINAL})
    with SystemOneServer(decide=lambda question_id, *_: low(question_id)) as judge:
        env = {**judge_env(judge.url), "HERMES_JEV_DEEPEN": "off"}
        played = play(python, tmp_path, steps, query=query, env=env)
        asked = len(judge.requests)
    assert_ended_well(played)
    assert_words_kept(played)
    assert asked == 0
    assert "context compression started" in played.run.log, "the window never filled"
    assert played.shortened() == {}
    rows = played.host.rows(played.run.session_id)
    said = [message for message in played.last.messages if message["role"] != "system"]
    assert all(row.active for row in rows)
    assert [row.role for row in rows] == [message["role"] for message in said] + ["assistant"]


def test_overflow_ends_with_the_answer(python: Path, tmp_path: Path) -> None:
    """One refusal, then two in a row: three passes, the most a host allows in a turn; 0.22 gives one back when the
    prompt came under the trigger."""
    refused = {"error": "overflow"}
    steps: list[Mapping[str, Any]] = [*(terminal(n, 12_000) for n in range(1, 10)), {"error": "too_large"}]
    steps += [*(terminal(n, 12_000) for n in range(10, 16)), refused, refused, {"text": FINAL}]
    with SystemOneServer(decide=lambda question_id, *_: low(question_id)) as judge:
        played = play(python, tmp_path, steps, env=judge_env(judge.url))
    assert_ended_well(played, errors=3)
    assert_words_kept(played)
    assert_cut(played)
    assert played.run.log.count("context compression started") in (3, 4)
