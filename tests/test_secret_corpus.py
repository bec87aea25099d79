"""Fake secrets of every kind, in every place, on every edge the cutting makes: nothing of them is sent, logged, filed
in a receipt or shown in an error or a repr."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import GOAL, Message, assistant, call, pair, result, text, user
from judge_samples import judge_at
from secret_corpus import BY_NAME, KINDS, PIECE, Kind, leaked, some
from system_one_server import SystemOneServer

from hermes_jev.described import FACT_CHARS, HEAD_CHARS, INPUT_LEVELS, REACH, TAIL_CHARS
from hermes_jev.egress import Gate, gate
from hermes_jev.fact_lines import fact_lines
from hermes_jev.goal import GOAL_CHARS, actions_of, goal_of
from hermes_jev.job import Job
from hermes_jev.judge.protocol import Answers, Limits
from hermes_jev.prune import run
from hermes_jev.settings import Egress, Settings
from hermes_jev.store import Store
from hermes_jev.transcript import Transcript
from hermes_jev.window import Question, fit

KINDS_A_PASS = 8
"""So many kinds share a pass over the wire; each has its own calls."""
CHUNKS = [list(KINDS)[at : at + KINDS_A_PASS] for at in range(0, len(KINDS), KINDS_A_PASS)]


@pytest.fixture(scope="module")
def server() -> Iterator[SystemOneServer]:
    with SystemOneServer(lambda question_id, question, state: 0.1) as running:
        yield running


def everywhere(kinds: list[Kind]) -> list[Message]:
    """A session that holds the secrets in every place at once."""
    lines = "\n".join(kind.text for kind in kinds)
    made = [user(f"an older request {lines}")]
    for number, kind in enumerate(kinds):
        made += calls_with(kind, 10 * number)
    return [*made, user(f"{GOAL} with {lines} now"), assistant(f"done {lines}")]


def calls_with(kind: Kind, number: int) -> list[Message]:
    line = kind.text
    parts = [{"type": "text", "text": f"{text(900)}\n{line}\n"}, {"type": "text", "text": text(2_000)}]
    fields = {"command": f"run {line}", "deep": [{"list": [{"note": line}]}], f"key {line}": 1}
    named = {"config": [{"password": kind.secret, "inner": {"api_key": {"value": kind.secret}}}]}
    glued = f"[OUT-OF-BAND USER MESSAGE]\nuse {line}\n[/OUT-OF-BAND USER MESSAGE]"
    return [
        assistant(f"I see {line}", call(f"a{number}", arguments=fields), call(f"b{number}", f"run {line}")),
        result(f"a{number}", f"{line}\n{text(3_000)}"),
        result(f"b{number}", f"{text(3_000)}\n{line}"),
        *pair(number, f"{text(1_000)}\n{line}\nERROR at src/a.py:12: {line}\n{text(1_000)}", arguments=line),
        *pair(number + 1, parts, arguments=named),
        *pair(number + 2, {"stdout": text(2_500), "note": line, "env": {"DB_PASSWORD": kind.secret}}),
        *pair(number + 3, f"{text(12_000)}\n{line}\n{text(12_000)}"),
        *pair(number + 4, f"{text(2_000)}\n\n{glued}"),
    ]


def seen_of(server: SystemOneServer, start: int) -> str:
    """All that arrived since then: the raw bodies, and every string in them with its escapes undone."""
    bodies = [request.raw.decode("utf-8") for request in server.requests[start:]]
    return "\n".join([*bodies, *(_strings(json.loads(body)) for body in bodies)])


def _strings(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join([*value, *(_strings(held) for held in value.values())])
    if isinstance(value, list):
        return "\n".join(map(_strings, value))
    return str(value)


@pytest.mark.parametrize(
    ("names", "egress"),
    [*((names, "redacted") for names in CHUNKS), *((names, "metadata") for names in CHUNKS[::3])],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_nothing_leaves_in_a_whole_pass(
    names: list[str], egress: Egress, server: SystemOneServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    kinds = [KINDS[name] for name in names]
    start, store = len(server.requests), Store(tmp_path)
    settings = Settings(pin_last_calls=0, pin_max_chars=600, egress=egress)
    lines = "\n".join(kind.text for kind in kinds)
    job = Job(settings, judge_at(server.url), store, task=f"task {lines}", focus=f"topic {lines}")

    pruned = run(everywhere(kinds), job)

    assert len(server.requests) > start
    assert len(pruned.receipt.decisions) >= 6 * len(kinds)
    shown = [repr(pruned.receipt), pruned.receipt.summary(), repr(job), repr(pruned.decisions), caplog.text]
    seen = "\n".join([seen_of(server, start), *(row.body for row in store.receipts()), *shown])
    assert {name: found for name in names if (found := leaked(KINDS[name].secret, seen))} == {}


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_told_of_a_request_or_a_call(name: str) -> None:
    """Each kind alone, as the only thing that was asked for, in whatever the frame and the item hold."""
    kind = KINDS[name]
    for place in (*SIZES, "long input", "long output"):
        (request,) = fit(question_with(place, f"{text(40)}\n{kind.text}\n{text(40)}"), Gate(), 32).requests
        assert leaked(kind.secret, json.dumps(request.state, ensure_ascii=False)) == [], place
        assert leaked(kind.secret, repr(request)) == [], place


@pytest.mark.parametrize("mode", ["http_500", "too_large", "raw", "half_body"])
def test_nothing_is_told_when_the_service_fails(mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    kind = KINDS["env"]
    with SystemOneServer() as failing:
        failing.mode, failing.limit_bytes = mode, 10
        failing.raw = {"t1_call": {"type": "noul", "noul": kind.text}, "t1_output": kind.text}
        job = Job(Settings(pin_last_calls=0, pass_deadline_s=2), judge_at(failing.url), Store(tmp_path))
        pruned = run(everywhere([kind]), job)
        seen = "\n".join([seen_of(failing, 0), pruned.receipt.to_json(), repr(pruned.receipt), caplog.text])

    assert leaked(kind.secret, seen) == []


# --- every edge ---------------------------------------------------------------------------------------------------

EDGES = {
    "goal, end of its head": ("goal", GOAL_CHARS * 2 // 3),
    "goal, start of its tail": ("goal", -(GOAL_CHARS // 3)),
    "focus, end of its head": ("focus", 400),
    "focus, start of its tail": ("focus", -200),
    "message in the timeline": ("assistant", 160),
    "tool": ("tool", 100),
    **{f"input of {chars}": ("input", chars) for chars in INPUT_LEVELS},
    "input in the timeline": ("input", 60),
    "very long input": ("long input", INPUT_LEVELS[0]),
    "end of the head": ("output", HEAD_CHARS),
    "start of the tail": ("output", -TAIL_CHARS),
    "end of what is searched for facts": ("long output", REACH),
    "start of what is searched for facts": ("long output", -REACH),
    "end of what is redacted": ("long output", REACH + 2_048),
    "start of what is redacted": ("long output", -REACH - 2_048),
}
"""Edge → the place it is in, and the character at which something is cut there, from the end where negative."""

SIZES = {"goal": 6_000, "focus": 2_000, "assistant": 1_000, "tool": 400, "input": 3_000, "output": 6_000}
LONG = 24_000
ON_EDGES = ("openai project", "jwt", "rsa key", "env", "json", "url", "card")
FILLER = text(2 * LONG)


def across(line: str, place: str, at: int, shift: int) -> str:
    """A text in which the edge falls `shift` characters into the line."""
    size = SIZES.get(place, LONG)
    start = max(0, (at if at > 0 else size + at) - shift)
    before = f"{FILLER[: start - 1]} " if start else ""
    spaced = f"{before}{line} "
    return (spaced + FILLER[-size:])[: max(size, len(spaced))]


def question_with(place: str, words: str) -> Question:
    def of(name: str, otherwise: str) -> str:
        return words if name == place else otherwise

    output = words if place in ("output", "long output") else text(3_000)
    arguments = words if place in ("input", "long input") else '{"command": "ls"}'
    messages = [
        user(of("goal", GOAL)),
        *pair(1, output, of("tool", "terminal"), arguments),
        assistant(of("assistant", "done")),
    ]
    transcript = Transcript.parse(messages)
    return Question(transcript, transcript.completed, goal_of(transcript), of("focus", ""), actions_of(transcript))


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("name", ON_EDGES)
def test_no_piece_on_any_edge(name: str, edge: str) -> None:
    kind = KINDS[name]
    place, at = EDGES[edge]
    budgets = (24_000, 700, 1) if place == "input" else (24_000,)
    for shift in range(0, len(kind.text) + 1, max(1, len(kind.text) // 9)):
        what = question_with(place, across(kind.text, place, at, shift))
        for state_tokens in budgets:
            found = fit(what, Gate(), 32, Limits(state_tokens=state_tokens))
            assert found.requests
            seen = json.dumps([request.state for request in found.requests], ensure_ascii=False)
            assert leaked(kind.secret, seen) == [], shift


@pytest.mark.parametrize("name", BY_NAME)
def test_no_piece_in_a_line_of_fact(name: str) -> None:
    """The line is picked from what is redacted already, wherever in the output it stands."""
    kind = BY_NAME[name]
    for before in (HEAD_CHARS, 900, 2_000):
        output = f"{text(before)}\nERROR src/auth.py:17: {kind.text}\n{text(2_500)}"
        (request,) = fit(question_with("output", output), Gate(), 32).requests
        seen = json.dumps(request.state, ensure_ascii=False)
        assert leaked(kind.secret, seen) == []


def test_the_hosts_redactor_sees_a_secret_before_it_is_cut() -> None:
    """A secret that only the host knows by its form: torn apart, it would pass."""

    def of_the_host(words: str) -> str:
        return words.replace("plain-word-secret-of-the-host", "[host]")

    secret = "plain-word-secret-of-the-host"
    for place, at in EDGES.values():
        for shift in range(0, len(secret) + 1, 7):
            found = fit(question_with(place, across(secret, place, at, shift)), gate([of_the_host]), 32)
            seen = json.dumps([request.state for request in found.requests])
            assert not [secret[n : n + 12] for n in range(len(secret) - 11) if secret[n : n + 12] in seen], (place, at)


@pytest.mark.parametrize("name", ["openai", "openai project", "github", "google", "stripe", "system one", "aws secret"])
@pytest.mark.parametrize("mark", ["\n\n... [OUTPUT TRUNCATED - 900 chars omitted] ...\n\n", "[truncated]"])
def test_a_key_that_a_tool_cut_in_two_before(name: str, mark: str) -> None:
    """The transcript holds two halves: the first has its form or its name, the second stands behind the mark."""
    kind = KINDS[name]
    at = kind.text.index(kind.secret) + len(kind.secret) // 2
    halves = f"{kind.text[:at]}{mark}{kind.text[at:]}"
    for output in (f"{text(900)}\n{halves}\n{text(900)}", json.dumps({"output": f"{text(900)}\n{halves}\n"})):
        (request,) = fit(question_with("output", output), Gate(), 32).requests
        found = leaked(kind.secret, json.dumps(request.state, ensure_ascii=False))
        assert found == [], output[880:1200]


# --- the corpus itself --------------------------------------------------------------------------------------------


def test_the_corpus_would_notice() -> None:
    """Without a redactor every one of these secrets is seen."""
    assert len(KINDS) > 100
    for name, kind in KINDS.items():
        assert kind.secret in kind.text, name
        assert leaked(kind.secret, kind.text), name
        assert len(kind.secret) >= PIECE, name
    assert leaked("abcdefgh", f"x{some(3)}") == []


def test_fact_lines_are_of_the_text_and_within_their_budget() -> None:
    lines = fact_lines(text(9_000) + "\nE   AssertionError: 3 != 4\n", FACT_CHARS)

    assert "E   AssertionError: 3 != 4" in lines
    assert sum(map(len, lines)) <= FACT_CHARS


def test_an_answer_is_no_place_for_words() -> None:
    assert "swordfish" not in repr(Answers(judge="jev", errors=("transient",)))
