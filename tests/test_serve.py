"""`jev serve`: the lexical judge in the words of System One, over loopback."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from builders import Message, assistant, pair, text, user
from judge_samples import judge_at
from pydantic import SecretStr

import hermes_jev
from hermes_jev.cli.main import main
from hermes_jev.errors import ConfigError
from hermes_jev.judge import Lexical
from hermes_jev.judge.endpoints import PRESETS, resolve_endpoint
from hermes_jev.judge.system_one import SystemOne
from hermes_jev.serve import Server

ROOT = Path(__file__).resolve().parent.parent
KEY = "a-key-of-my-own"


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """What a shell starts in the background ignores it, and hands that down."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def serving(**options: Any) -> Iterator[Server]:
    server = Server(**options)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def post(server: Server, body: Any, **more: Any) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{server.url}/v1/systemone", content=content, trust_env=False, **more)


def ask(server: Server, questions: Mapping[str, Any], state: Any = "a text") -> dict[str, Any]:
    response = post(server, {"model": "jev-latest", "state": state, "questions": dict(questions)})
    assert response.status_code == 200, response.text
    answers: dict[str, Any] = response.json()["answers"]
    return answers


NOUL = {"type": "noul", "instructions": "Is it?"}


# --- the format -------------------------------------------------------------------------------------------------------


def test_every_must_of_the_conformance_kit_is_met(server: Server) -> None:
    kit = Path(sys.executable).with_name("jevcompat")
    if not kit.exists():
        pytest.skip("jevcompat is not installed")

    done = subprocess.run([str(kit), "test", server.url], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout
    assert "MUST 32/32" in done.stdout
    # The live service answers 400 to what is over its limits, and so do we; the kit would have 422.
    assert "SHOULD 12/13" in done.stdout


def test_the_three_kinds_of_answers_have_their_fields(server: Server) -> None:
    state = "The invoice was charged twice and the customer is very angry."
    found = ask(
        server,
        {
            "n": {
                "type": "noul",
                "instructions": "Is it about money?",
                "criteria": {"true": "an invoice was charged", "false": "a login fails"},
            },
            "c": {
                "type": "choice",
                "instructions": "Which team?",
                "criteria": {"billing": "invoice, charged, refund", "technical": None, "sales": "price, upgrade"},
            },
            "s": {
                "type": "score",
                "instructions": "How angry?",
                "criteria": ["calm and content", "annoyed", "very angry"],
            },
        },
        state,
    )

    assert found["n"]["type"] == "noul"
    assert found["n"]["noul"] > 0.9
    assert found["c"]["choice"] == "billing"
    assert list(found["c"]["probabilities"]) == ["billing", "technical", "sales"]
    assert 0 < found["c"]["confidence"] < 1
    assert found["s"]["legend"] == {"0": "calm and content", "1": "annoyed", "2": "very angry"}
    assert found["s"]["score"] > 1


def test_where_no_word_is_shared_the_answer_is_flat(server: Server) -> None:
    found = ask(server, {"n": NOUL, "c": {"type": "choice", "criteria": {"red": None, "blue": None}}}, "zzz qqq")

    assert found["n"]["noul"] == 0.5
    assert found["c"]["probabilities"] == {"red": 0.5, "blue": 0.5}
    assert found["c"]["confidence"] == 0


def test_a_question_may_point_into_the_state(server: Server) -> None:
    state = {"items": [{"id": "a", "text": "apples and pears"}, {"id": "b", "text": "iron and copper"}]}
    sides = {"true": "it is about iron or copper", "false": "it is about apples or pears"}

    def noul(place: str) -> dict[str, Any]:
        return {"type": "noul", "instructions": f"Is `{place}` about metal?", "criteria": sides}

    found = ask(server, {"1": noul("items[1].text"), "2": noul("items[0].text"), "3": noul("b"), "4": noul("a")}, state)

    assert found["1"]["noul"] > 0.5 > found["2"]["noul"]
    assert found["3"]["noul"] > 0.5 > found["4"]["noul"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 422, "json_invalid"),
        (b'{"model": "jev", "state": NaN, "questions": {}}', 422, "json_invalid"),
        (b'{"model": "jev", "state": [1e999], "questions": {"q": {"type": "noul"}}}', 422, "json_invalid"),
        (b"\xff\xfe\xfd", 422, "json_invalid"),
        (b"[" * 100_000, 422, "json_invalid"),
        ([], 422, "model_type"),
        ({"state": "x", "question": "q", "type": "score", "levels": ["a"]}, 422, "missing"),
        ({"model": "jev", "state": None, "questions": {"q": NOUL}}, 422, "string_type"),
        ({"model": "jev", "state": "x", "questions": {}}, 422, "too_short"),
        ({"model": "jev", "state": "x", "questions": {"": NOUL}}, 422, "string_too_short"),
        ({"model": "jev", "state": "x", "questions": {"q": {"type": "boolean"}}}, 422, "union_tag_invalid"),
        ({"model": "jev", "state": "x", "questions": {"q": {"type": "choice", "criteria": {}}}}, 422, "too_short"),
        ({"model": "jev", "state": "x", "questions": {"q": {"type": "score", "criteria": {"a": "b"}}}}, 422, "list"),
        ({"model": "gpt-6-luna", "state": "x", "questions": {"q": NOUL}}, 400, "api_usage_error"),
        (
            {
                "model": "jev",
                "state": "x",
                "questions": {"q": {"type": "choice", "criteria": dict.fromkeys(map(str, range(256)))}},
            },
            400,
            "at most 255 choices",
        ),
        (
            {"model": "jev", "state": "x", "questions": {"q": {"type": "score", "criteria": list("abcdefghijk")}}},
            400,
            "at most 10 levels",
        ),
        ({"model": "jev", "state": text(150_000), "questions": {"q": NOUL}}, 400, "max_tokens_exceeded"),
    ],
)
def test_what_is_refused_is_refused_in_the_services_words(server: Server, body: Any, status: int, said: str) -> None:
    response = post(server, body)

    assert response.status_code == status
    assert said in response.text
    assert response.headers["x-typesafe-request-id"].startswith("req_")


def test_a_refusal_does_not_repeat_what_was_sent(server: Server) -> None:
    secret = "sk-live-0123456789abcdef"
    for questions in ({"q": {"type": secret}}, {"q": {"type": "noul", "criteria": secret}}, secret):
        response = post(server, {"model": "jev", "state": secret, "questions": questions})
        assert response.status_code == 422
        assert secret not in response.text


@pytest.mark.parametrize("model", ["jev", "jev-1.14.0", "typesafe/jev-1.13", "~typesafe/jev-latest", Lexical.version])
def test_every_name_of_a_jev_is_answered_by_the_one_judge(server: Server, model: str) -> None:
    response = post(server, {"model": model, "state": "x", "questions": {"q": NOUL}})

    assert response.json()["model"] == Lexical.version
    assert response.json()["usage"]["input_tokens"] > 270


def test_other_routes_and_methods(server: Server) -> None:
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        assert client.get("/v1/systemone").status_code == 405
        assert client.get("/").json() == {"detail": "Not Found"}
        assert client.post("/v1/other", content=b"{}").status_code == 404
        assert client.put("/v1/systemone", content=b"{}").headers["content-type"] == "application/json"
        names = [model["name"] for model in client.get("/v1/models").json()["models"]]
        assert names[:2] == [Lexical.version, "jev-latest"]


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Content-Length": "5000000"}, b"", b"413"),
        ({"Content-Length": "x"}, b"", b"411"),
        ({"Transfer-Encoding": "chunked"}, b"0\r\n\r\n", b"411"),
        ({"Content-Length": "2", "Content-Encoding": "zstd"}, b"{}", b"415"),
    ],
)
def test_bodies_that_cannot_be_read(server: Server, headers: dict[str, str], body: bytes, status: bytes) -> None:
    lines = [f"{name}: {value}" for name, value in {"Host": "x", **headers}.items()]
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        connection.sendall("\r\n".join(["POST /v1/systemone HTTP/1.1", *lines, "", ""]).encode() + body)
        assert connection.recv(100).split()[1] == status


def test_a_client_that_hangs_up_ends_nothing(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        connection.sendall(b"POST /v1/systemone HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")

    assert ask(server, {"q": NOUL})


# --- who may ask ------------------------------------------------------------------------------------------------------


def test_a_key_is_asked_for_where_one_was_set() -> None:
    body = {"model": "jev", "state": "x", "questions": {"q": NOUL}}
    with serving(key=KEY) as server:
        assert post(server, body).status_code == 403
        wrong = post(server, body, headers={"Authorization": "Bearer other"})
        assert wrong.status_code == 401
        assert wrong.json()["detail"]["error_type"] == "authentication_error"
        assert post(server, body, headers={"Authorization": f"Bearer {KEY}"}).status_code == 200
        assert httpx.get(f"{server.url}/v1/models", trust_env=False).status_code == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_that_others_can_reach_needs_to_be_meant(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--host", host, "--port", "0"]) == 2
    assert "--expose" in capsys.readouterr().err


def test_with_expose_it_listens_there() -> None:
    with serving(host="0.0.0.0", expose=True) as server:
        assert httpx.get(f"http://127.0.0.1:{server.port}/v1/models", trust_env=False).status_code == 200


def test_a_port_in_use_is_said(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", str(server.port)]) == 2
    assert "in use" in capsys.readouterr().err


def test_addresses_that_are_none_are_said() -> None:
    with pytest.raises(ConfigError, match="no such address"):
        Server("no.such.host.invalid")
    with pytest.raises(ConfigError, match="no address of this machine"):
        Server("192.0.2.1", expose=True)


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--port", port])
    assert ended.value.code == 2


def test_the_command_says_where_it_listens_and_ends_with_ctrl_c() -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "hermes_jev.cli", "serve", "--port", "0"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stderr is not None
        line = child.stderr.readline()
        url = next(word for word in line.split() if word.startswith("http://127.0.0.1:"))
        assert httpx.get(url.replace("systemone;", "models"), trust_env=False).status_code == 200
        child.send_signal(signal.SIGINT)
        rest = child.stderr.read()
        assert child.wait(timeout=20) == 0
    assert rest == "ended\n"


# --- our own client ---------------------------------------------------------------------------------------------------

SMALL = {"pin_max_chars": 501, "min_gain_percent": 0}
"""Results of up to 700 characters are told whole; with this setting they are judged too."""


def short_session(calls: int = 12, size: int = 600) -> list[Message]:
    messages = [user("fix src/out3/part_1.py so that value 111 is kept")]
    for number in range(1, calls + 1):
        tool = ("read_file", "terminal", "write_file")[number % 3]
        given = {"path": f"src/out{number}/part_1.py"} if tool != "terminal" else {"command": f"grep out{number}"}
        # As the gate writes it: without blanks.
        arguments = json.dumps(given, separators=(",", ":"))
        messages += pair(number, text(size, f"out{number}"), tool, arguments, f"part {number}")
    return [*messages, assistant("Now src/out2/part_1.py is next.")]


def scores(pruned: Any) -> dict[int, tuple[Any, Any]]:
    return {
        decision.exchange.ordinal: (decision.verdict.call, decision.verdict.output)
        for decision in pruned.decisions
        if decision.verdict is not None
    }


def test_where_it_sees_the_same_text_its_verdicts_are_those_of_the_embedded_judge(
    server: Server, tmp_path: Path
) -> None:
    messages = short_session()
    inside = hermes_jev.prune(messages, judge="lexical", store=tmp_path / "a", settings=SMALL)

    outside = hermes_jev.prune(messages, judge=judge_at(server.url, key=None), store=tmp_path / "b", settings=SMALL)

    assert len(scores(inside)) == 9
    assert scores(outside) == scores(inside)
    assert outside.messages == inside.messages
    assert outside.receipt.judge == "jev"
    assert outside.receipt.model == Lexical.version


def test_of_long_results_it_sees_the_ends_and_answers_all_the_same(server: Server, tmp_path: Path) -> None:
    messages = short_session(40, 5_000)

    found = hermes_jev.prune(messages, judge=judge_at(server.url, key=None), store=tmp_path)

    assert len(scores(found)) == 37
    assert found.receipt.requests >= 2
    assert found.receipt.failed_requests == 0
    assert len({output for _, output in scores(found).values()}) > 10
    assert hermes_jev.restore(found.messages, store=tmp_path) == messages


def test_the_command_line_can_ask_it_without_a_key(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.delenv("TYPESAFE_API_KEY", raising=False)
    monkeypatch.delenv("JEV_API_KEY", raising=False)
    file = tmp_path / "s.json"
    file.write_text(json.dumps(short_session(12, 5_000)), encoding="utf-8")
    given = ["--judge", "jev", "--set", "endpoint=custom", "--set", f"base_url={server.url}", "--strict"]

    assert main(["prune", str(file), "--store", str(tmp_path / "store"), *given]) == 0

    told = capsysbinary.readouterr()
    assert b"judge jev, 1 requests" in told.err
    assert len(told.out) < file.stat().st_size


def test_turns_are_weighed_as_the_embedded_judge_weighs_them(server: Server) -> None:
    turns = [user(f"note {n}: keep /srv/data/file_{n}.csv and never delete it") for n in range(8)]
    turns += [assistant("ok"), user("please look at /srv/data/file_3.csv again")]
    endpoint = resolve_endpoint({}, base_url=server.url, preset=PRESETS["custom"])
    remote = SystemOne(endpoint, SecretStr("any"))

    for weigh in (hermes_jev.select, hermes_jev.compact):
        limit = {"keep_last": 2} if weigh is hermes_jev.select else {"target_bytes": 300}
        inside, outside = weigh(turns, judge="lexical", **limit), weigh(turns, judge=remote, **limit)
        if weigh is hermes_jev.select:
            assert (outside.fates, outside.digest) == (inside.fates, inside.digest)
            assert outside.unjudged == ()
        else:
            assert outside.messages == inside.messages
            assert not outside.stats["degraded"]
