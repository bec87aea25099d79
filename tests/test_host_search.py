"""The way back inside the real, installed hosts: a fact that stands only in a cut result is found, opened and used."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from host_run import HostHome, make_home
from hosts import HOSTS, host_python
from model_server import Conversation, ModelServer, Steps
from system_one_server import KEY, SystemOneServer

pytestmark = pytest.mark.host

SEARCHING = "terminal,file,context_engine,session_search"
QUERY = "Please go through the shipment records and tell me the lot of record 1-0250."
LOT = hashlib.md5(b"1-250").hexdigest()[:8]
"""What record 1-0250 says, far from the start of the first output."""

ASK = "record 1-0250 lot"
FINAL = f"The lot of record 1-0250 is {LOT}."


def terminal(number: int, size: int) -> dict[str, Any]:
    """A step that prints about `size` characters that no other step prints."""
    row = f"'record {number}-%04d  lot %s  checked' % (i, md5(b'{number}-%d' % i).hexdigest()[:8])"
    command = f'python3 -c "from hashlib import md5\nfor i in range({size // 36}): print({row})"'
    return {"text": f"I look at part {number}.", "calls": [{"name": "terminal", "arguments": {"command": command}}]}


def find(**arguments: Any) -> dict[str, Any]:
    return {"text": "I look for it.", "calls": [{"name": "session_search", "arguments": arguments or {"query": ASK}}]}


def opened(ordinal: int) -> dict[str, Any]:
    arguments = {"id": f"{{pointer:{ordinal}}}", "contains": "record 1-0250"}
    return {"text": "I open it.", "calls": [{"name": "expand", "arguments": arguments}]}


def fill(first: int, count: int = 6, size: int = 28_000) -> list[dict[str, Any]]:
    return [*(terminal(number, size) for number in range(first, first + count)), terminal(first + count, 6_000)]


@pytest.fixture(scope="module", params=list(HOSTS))
def python(request: pytest.FixtureRequest) -> Path:
    return host_python(request.param)


class Desk:
    """A host with a scripted model and a judge that lets every old output go."""

    def __init__(self, python: Path, folder: Path, model: ModelServer, judge: SystemOneServer) -> None:
        self.host: HostHome = make_home(python, folder, model.url)
        self.model = model
        self.env = {"TYPESAFE_API_KEY": KEY, "TYPESAFE_BASE_URL": judge.url}

    def rotating(self) -> None:
        """Each compaction opens a new session."""
        file = self.host.home / "config.yaml"
        config = json.loads(file.read_text(encoding="utf-8"))
        config["compression"]["in_place"] = False
        file.write_text(json.dumps(config), encoding="utf-8")

    def run(self, steps: Sequence[Mapping[str, Any]], query: str = QUERY, resume: str | None = None) -> Any:
        self.model.script = Steps([*steps, {"text": FINAL}])
        before = len(self.model.requests)
        run = self.host.chat(query, env=self.env, toolsets=SEARCHING, resume=resume)
        assert self.model.failures == []
        assert run.rc == 0, run.stdout + run.stderr + run.log[-4000:]
        assert FINAL in run.stdout
        assert self.host.log().count("Traceback") == 0
        return run, self.model.conversations()[before:]


@pytest.fixture
def desk(python: Path, tmp_path: Path) -> Iterator[Desk]:
    with desk_in(python, tmp_path) as made:
        yield made


@contextmanager
def desk_in(python: Path, folder: Path) -> Iterator[Desk]:
    with (
        SystemOneServer(decide=lambda *_: 0.1) as judge,
        ModelServer(Steps([{"text": FINAL}]), log=folder / "requests.jsonl") as model,
    ):
        yield Desk(python, folder, model, judge)


@dataclass(frozen=True)
class Story:
    """One session with three compactions, its resumption in another process, and a second session."""

    id: str
    log: str
    first: Sequence[Conversation]
    resumed: Sequence[Conversation]
    second: Sequence[Conversation]
    opened: Sequence[Conversation]


@pytest.fixture(scope="module")
def story(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Story:
    with desk_in(python, tmp_path_factory.mktemp("story")) as desk:
        run, first = desk.run([*fill(1), find(), opened(1), *fill(11), *fill(21), find()])
        own = find(session_id=run.session_id)
        _, resumed = desk.run([find(), own], "And the lot again?", resume=run.session_id)
        _, second = desk.run([find()], "What was the lot of record 1-0250, last time?")
        (found,) = replies(second[-1], "session_search")
        hit = next(hit for hit in found["past_tool_output"] if LOT in hit["snippet"])
        place = find(session_id=hit["session_id"], around_message_id=hit["message_id"])
        _, last = desk.run([place], "Show me the place.")
        return Story(run.session_id, desk.host.log(), first, resumed, second, last)


def replies(talk: Conversation, tool: str) -> list[Any]:
    """The parsed replies to the calls of a tool, in order, but for those that were cut since."""
    calls = [call for message in talk.messages for call in message.get("tool_calls") or ()]
    texts = [talk.results[call["id"]] for call in calls if call["function"]["name"] == tool]
    # A reply may quote notices; one that was cut ends with its own.
    return [json.loads(text) for text in texts if text.endswith("}")]


def assert_fact_is_cut(talk: Conversation) -> None:
    assert "[hermes_jev:" in talk.results[talk.call_ids[0]], "the first output was not cut"
    assert not any(LOT in text for text in talk.results.values()), "the fact is still in the window"


def test_found_opened_and_used_in_the_same_session(story: Story) -> None:
    at = next(n for n, talk in enumerate(story.first) if replies(talk, "session_search"))
    assert_fact_is_cut(story.first[at - 1])

    found = replies(story.first[at], "session_search")[0]
    hit = found["this_session"][0]
    assert hit["id"] == story.first[at].pointer(1)
    assert hit["tool"] == "terminal"
    assert "ago" in hit["age"] or hit["age"] == "just now"
    assert LOT in hit["snippet"]
    (page,) = replies(story.first[at + 1], "expand")
    assert page["id"] == hit["id"]
    assert f"lot {LOT}" in page["text"]


def test_found_after_three_compactions_and_a_resume(story: Story) -> None:
    assert story.log.count("hermes_jev: compacted") >= 3
    for talk in (story.first[-1], story.resumed[-1]):
        found = [reply for reply in replies(talk, "session_search") if "this_session" in reply][-1]
        assert any(LOT in hit["snippet"] for hit in found["this_session"])
        ids = [hit["id"] for hit in found["this_session"]]
        assert len(ids) == len(set(ids)), "a hit twice"


def test_the_session_itself_lists_what_it_stored(story: Story) -> None:
    listed = replies(story.resumed[-1], "session_search")[-1]
    assert {"id", "tool", "call", "age", "chars"} <= listed["this_session_stored"][0].keys()


def test_found_from_a_second_session(story: Story) -> None:
    (found,) = replies(story.second[-1], "session_search")
    assert "this_session" not in found, "another session's originals are nobody else's"
    hit = next(hit for hit in found["past_tool_output"] if LOT in hit["snippet"])
    assert hit["session_id"] == story.id
    (place,) = replies(story.opened[-1], "session_search")
    assert any(LOT in json.dumps(message) for message in place["messages"])


def test_found_after_a_rotation(desk: Desk) -> None:
    desk.rotating()
    _, talks = desk.run([*fill(1), find(), opened(1)])
    assert_fact_is_cut(talks[-3])

    (found,) = replies(talks[-1], "session_search")
    assert LOT in found["this_session"][0]["snippet"]
    (page,) = replies(talks[-1], "expand")
    assert f"lot {LOT}" in page["text"]


def test_without_the_hosts_tool_it_lists_and_answers(desk: Desk) -> None:
    """The toolset of the built-in is off: the model sees the engine's schema."""
    desk.model.script = Steps(
        [*fill(1), find(), {**find(), "calls": [{"name": "session_search", "arguments": {}}]}, {"text": FINAL}]
    )
    run = desk.host.chat(QUERY, env=desk.env, toolsets="terminal,file,context_engine")
    assert desk.model.failures == []
    assert run.rc == 0
    found, listed = replies(desk.model.conversations()[-1], "session_search")
    hits = found.get("this_session") or found["results"]
    assert LOT in hits[0]["snippet"]
    stored = listed.get("this_session_stored") or listed["results"]
    assert {"id", "tool", "call", "age", "chars"} <= stored[0].keys()
