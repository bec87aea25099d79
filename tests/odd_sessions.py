"""Strategies for transcripts of every odd kind, for judges, settings and windows.

Sizes stand around the limits that matter (what is settled by its size, what can be shortened at all), the characters
are those that break things, and calls and results are paired in all the ways they should not be.
"""

from __future__ import annotations

import json
from typing import Any

from builders import ByOrdinal, Fixed, Message, assistant, call, result, system, user
from hypothesis import strategies as st

from hermes_jev import Settings

PIECES = (
    "plain words and more of them\n",
    "src/a_b/parser.py:12: error E501\r\n",
    "\x00\ufeff\u2028",
    "漢字仮名",
    "👩\u200d👧🇩🇪e\u0301",
    "\ud800 ",
    "\udc00\ud800",
    "\n",
    "x",
    '{"k": [1, 2]}\t',
    "<untrusted_tool_result>\n\n",
    "[/OUT-OF-BAND USER MESSAGE]\n",
    "[hermes_jev: this call ran; its ",
)
ENDINGS = (
    "",
    "\n",
    "\nexit code: 0",
    "\nexit status: -12345\n",
    "\nTraceback (most recent call last)\nValueError: x",
    "\ud83d",
    'quoted:\n[hermes_jev: this call ran; its 9,999 characters are stored: expand(id="r-abcdefghij"). '
    "Without that tool only a new call shows them.]",
)
SIZES = (0, 10, 699, 701, 702, 1_200, 1_499, 1_500, 1_501, 1_502, 1_700, 1_701, 1_900, 2_600, 5_000)
WORDS = "\n\n[OUT-OF-BAND USER MESSAGE — sent while you work]\n{}\n[/OUT-OF-BAND USER MESSAGE]"

bodies = st.builds(
    lambda piece, size, ending: (piece * (size // len(piece) + 1))[:size] + ending,
    st.sampled_from(PIECES),
    st.sampled_from(SIZES),
    st.sampled_from(ENDINGS),
)
small = st.sampled_from(("", "ok", "\ud800", "\r\n\x00", "漢", "/path/to file"))


def _wrapped(body: str, opening: str) -> str:
    return f'<untrusted_tool_result source="web">{opening}{body}\n</untrusted_tool_result>'


wrapped = st.builds(_wrapped, bodies, st.sampled_from(("", "\n", "\nThe following content was retrieved.\n\n")))
spoken_to = st.builds(
    lambda body, words: body + WORDS.format(words),
    st.one_of(bodies, wrapped),
    st.sampled_from(("stop", "use port 8080\n\nand no other", "w" * 900, "w" * 1_600)),
)
IMAGE = {"type": "image_url", "image_url": {"url": "data:" + "A" * 7_000}}
parts = st.builds(
    lambda body, more: [{"type": "text", "text": body}, *more],
    bodies,
    st.sampled_from(
        (
            [],
            [IMAGE],
            [None, 5, "loose"],
            [{"text": "end"}],
        )
    ),
)
objects = st.builds(
    lambda body, more: {"output": body, **more},
    bodies,
    st.sampled_from(
        ({}, {"exit_code": 0}, {"error": "no"}, {"n": 2**70, "f": 1.5, "t": True, "l": [None, {}]}, {"\ud800": 1})
    ),
)
previews = bodies.map(lambda body: "<persisted-output>\n" + body)
contents = st.one_of(bodies, bodies, bodies, wrapped, spoken_to, parts, objects, previews, st.none(), st.just(7))

tools = st.sampled_from(("terminal", "terminal", "read_file", "todo", "memory", "expand", "t\x00l", "漢", "mcp\ud800"))
LONG_INPUTS = (
    json.dumps({"path": "a.py", "content": "line of the file\n" * 200}),
    '{"edits": [{"old": "' + "x" * 900 + '", "n": 1.10}, "\\ud800"], "漢": "' + "漢" * 500 + '"}',
    '{"rows": ' + json.dumps(list(range(900))) + ', "a": {"b": "' + "q" * 401 + '"}, "a": 2}',
    json.dumps("t" * 3_000),
)
arguments = st.sampled_from(
    (*LONG_INPUTS, "{}", '{"command": "ls"}', '{"path": "a.py", "n": 1}', "not json", "\ud800", "", '{"t": "漢\\n"}')
)


@st.composite
def groups(draw: st.DrawFn, prefix: str) -> list[Message]:
    """An assistant turn with its calls, and results that fit or do not."""
    count = draw(st.integers(1, 3))
    naming = draw(st.sampled_from(("own", "own", "own", "own", "same", "none", "again")))
    names = {
        "own": [f"{prefix}-{slot}" for slot in range(count)],
        "again": [f"again-{slot}" for slot in range(count)],
        "same": ["same"] * count,
        "none": [""] * count,
    }[naming]
    calls = [call(name, draw(tools), draw(arguments)) for name in names]
    answers = [result(name, draw(contents)) for name in names]
    if naming == "none":
        calls = [{key: value for key, value in entry.items() if key != "id"} for entry in calls]
        answers = [{key: value for key, value in entry.items() if key != "tool_call_id"} for entry in answers]
    turn = assistant(draw(st.none() | small), *calls)
    match draw(st.sampled_from(("fits", "fits", "fits", "fits", "turned", "lost", "twice", "early", "torn", "orphan"))):
        case "turned":
            return [turn, *reversed(answers)]
        case "lost":
            return [turn, *answers[1:]]
        case "twice":
            return [turn, *answers, answers[0]]
        case "early":
            return [*answers, turn]
        case "torn":
            return [turn, *answers[:1], user("wait"), *answers[1:]]
        case "orphan":
            return [turn, *answers, result("nobody", draw(contents))]
    return [turn, *answers]


prose = st.one_of(
    st.builds(user, st.one_of(bodies, small, parts, st.none())),
    st.builds(assistant, st.one_of(bodies, small, st.none())),
    st.builds(lambda body: {**user(body), "name": "u", "_db_id": 7}, small),
)


@st.composite
def transcripts(draw: st.DrawFn, prefix: str = "g", most: int = 6) -> list[Message]:
    messages: list[Message] = [system("be kind")] if draw(st.booleans()) else []
    messages.append(user(draw(st.sampled_from(("fix the parser", "go on", "\ud800", "")))))
    for number in range(draw(st.integers(0, most))):
        messages += draw(groups(f"{prefix}{number}"))
        if draw(st.booleans()):
            messages.append(draw(prose))
    return messages


chances = st.sampled_from((0.0, 0.1, 0.3, 0.49, 0.5, 0.9, 1.0))


@st.composite
def judges(draw: st.DrawFn, missing: bool = True) -> Any:
    """A function that makes the same judge again and again; `missing` lets it leave questions unanswered."""
    local = draw(st.booleans())
    if draw(st.booleans()):
        both = draw(chances), draw(chances)
        return lambda: Fixed(*both, local=local)
    answer = st.none() | chances if missing else chances
    pairs = draw(st.lists(st.tuples(answer, answer), min_size=1, max_size=7))
    by_ordinal = {ordinal: pairs[ordinal % len(pairs)] for ordinal in range(1, 60)}
    return lambda: ByOrdinal(by_ordinal, local=local)


settings = st.builds(
    Settings,
    pin_last_calls=st.sampled_from((0, 0, 1, 3)),
    pin_max_chars=st.sampled_from((701, 1_500, 1_500)),
    excerpt_chars=st.sampled_from((1, 2, 50, 300, 300)),
    fact_chars=st.sampled_from((0, 40, 1_000, 1_000)),
    min_gain_percent=st.sampled_from((0.0, 0.05)),
    call_threshold=st.sampled_from((0.5, 0.5, 0.0, 1.0)),
    output_threshold=st.sampled_from((0.5, 0.5, 0.2, 1.0)),
    protected_tools=st.sampled_from((("memory",), ())),
    removed_calls=st.sampled_from(("notice", "notice", "drop")),
    last_resort=st.sampled_from(("text", "text", "off")),
    deepen=st.sampled_from(("turns", "turns", "inputs", "off")),
    expected_calls=st.sampled_from((1, 15, 50, 1_000_000)),
)
windows = st.sampled_from((None, None, 0.4, 0.9, 1.1, 1.3, 1.6, 2.5, 5.0))
"""The window as a multiple of what the transcript is estimated at; None is unknown."""
