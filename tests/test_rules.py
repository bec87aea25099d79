"""Free rules as tables: what settles an old result, and what must not."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from builders import GOAL, Fixed, assistant, call, pair, result, text, user

from hermes_jev.prune import prune
from hermes_jev.restore import restore
from hermes_jev.rules import Rule, rulings
from hermes_jev.settings import Settings
from hermes_jev.store import Store
from hermes_jev.tool_calls import absolute, fields_of, kind_of, lines_of, path_of, place_after, written_by
from hermes_jev.transcript import Transcript


class Step(NamedTuple):
    """One call: tool, arguments, result."""

    tool: str
    arguments: Any
    content: Any


def read(path: str, content: str, **part: Any) -> Step:
    return Step("read_file", {"path": path, **part}, content)


def run(command: str, content: str, **more: Any) -> Step:
    return Step("terminal", {"command": command, **more}, content)


def write(path: str, content: str = '{"ok": true}', tool: str = "write_file") -> Step:
    return Step(tool, {"path": path, "content": "x = 1"}, content)


def ruled(*steps: Step) -> dict[int, tuple[Rule, int]]:
    messages = [user(GOAL)]
    for number, step in enumerate(steps, 1):
        messages += pair(number, step.content, step.tool, step.arguments)
    return {ordinal: (found.rule, found.by) for ordinal, found in rulings(Transcript.parse(messages)).items()}


A, B, C = (text(3_000, tag) for tag in "abc")
CUT = (
    "x\n[hermes_jev: this call ran and returned 8,423 characters; the first 1 are above, all are stored: "
    'expand(id="r-aaaaaaaaaa")]'
)
TEST = "pytest -q tests/test_orders.py"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([read("a.py", A), read("b.py", B)], {}),
        ([read("a.py", A), run("cat a.py", A)], {1: ("duplicate", 2)}),
        ([read("a.py", A), read("b.py", B), read("x.py", A)], {1: ("duplicate", 3)}),
        ([run("ls -R", A), run("ls", A), run("ls .", A)], {1: ("duplicate", 3), 2: ("duplicate", 3)}),
        ([read("a.py", A), Step("search", {"query": "q"}, f"{B}\n{A}\n{C}")], {1: ("near duplicate", 2)}),
        ([Step("search", {"query": "q"}, A + "one more line\n"), read("a.py", A)], {1: ("near duplicate", 2)}),
        ([Step("search", {"query": "q"}, f"{A}\n{B}"), read("a.py", A)], {}),
        ([read("a.py", "x" * 3_000), run("cat a.min.js", "x" * 2_999)], {}),
    ],
    ids=["others", "same", "same later", "three", "inside", "nearly", "half", "no lines"],
)
def test_duplicates(steps: list[Step], expected: dict[int, tuple[Rule, int]]) -> None:
    assert ruled(*steps) == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([read("a.py", A), read("a.py", B)], {1: ("read again", 2)}),
        ([read("a.py", A), read("./lib/../a.py", B)], {1: ("read again", 2)}),
        ([read("a.py", A), read("lib/a.py", B)], {}),
        ([read("a.py", A), read("a.py", '{"error": "no such file"}')], {}),
        ([read("a.py", A), read("a.py", "File unchanged since last read.")], {}),
        ([read("a.py", A), write("a.py"), read("a.py", "x = 1")], {1: ("read again", 3)}),
        ([read("a.py", A), read("a.py", CUT)], {}),
        ([read("a.py", A, offset=1, limit=50), read("a.py", B, offset=1, limit=50)], {1: ("read again", 2)}),
        ([read("a.py", A, offset=1, limit=50), read("a.py", B, offset=1, limit=90)], {1: ("read again", 2)}),
        ([read("a.py", A, offset=1, limit=50), read("a.py", B, offset=40, limit=50)], {}),
        ([read("a.py", A, offset=10, limit=9), read("a.py", B)], {1: ("read again", 2)}),
        ([read("a.py", A, offset=900, limit=50), read("a.py", B)], {}),
        ([read("a.py", A), read("a.py", B, offset=1, limit=50)], {}),
        ([read("a.py", A, view_range=[5, 9]), read("a.py", B, view_range=[1, 20])], {1: ("read again", 2)}),
        ([read("a.py", A, view_range=[5, -1]), read("a.py", B, view_range=[1, 20])], {}),
        ([read("a.py", A, pages="1-2"), read("a.py", B, pages="1-2")], {1: ("read again", 2)}),
        ([read("a.py", A, pages="1-2"), read("a.py", B, pages="3-4")], {}),
        ([run("cat a.py", A), read("a.py", B)], {1: ("read again", 2)}),
        ([run("cd lib && cat a.py", A), read("a.py", B)], {}),
    ],
)
def test_superseded_reads(steps: list[Step], expected: dict[int, tuple[Rule, int]]) -> None:
    assert ruled(*steps) == expected


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"


@pytest.mark.parametrize(
    ("written", "supersedes"),
    [
        (write("a.py"), True),
        (write("a.py", "The file a.py has been updated."), True),
        (write("b.py"), False),
        (write("a.py", '{"success": false}'), False),
        (write("a.py", '{"error": "read only"}'), False),
        (write("a.py", "Error: disk full"), False),
        (write("a.py", "<tool_use_error>String to replace not found in file.</tool_use_error>"), False),
        (write("a.py", '{"ok": true}', "edit"), True),
        (Step("patch", {"mode": "patch", "patch": PATCH}, '{"success": true}'), True),
        (run("echo hi > a.py", ""), True),
        (run("echo hi >> a.py", ""), False),
        (run("make 2>a.py", ""), False),
        (run("sed -i 's/x/y/' a.py && make", "done"), True),
        (run("sed -n 1,5p a.py > /dev/null", ""), False),
        (run("echo hi > a.py", '{"exit_code": 1, "output": ""}'), False),
    ],
)
def test_written_since(written: Step, supersedes: bool) -> None:
    """A failed write supersedes nothing; an appended file still begins as it was read."""
    assert ruled(read("a.py", A), written, read("b.py", B)) == ({1: ("written since", 2)} if supersedes else {})


def test_the_read_after_a_write_stands() -> None:
    assert ruled(write("a.py"), read("a.py", A)) == {}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([run(TEST, A), run(TEST, B)], {1: ("run again", 2)}),
        ([run(TEST, A), write("b.py"), run(TEST, "1 passed")], {1: ("run again", 3)}),
        ([run(TEST, A), run(TEST + " -x", B)], {}),
        ([run(TEST, A), run(f"  {TEST}", B)], {}),
        ([run(TEST, A, workdir="/a"), run(TEST, B, workdir="/b")], {}),
        ([run(TEST, A), run("cd /srv", ""), run(TEST, B)], {}),
        ([run("cd /srv", ""), run(TEST, A), run("cd lib", ""), run("cd ..", ""), run(TEST, B)], {2: ("run again", 5)}),
        ([run("cd /srv", ""), run(TEST, A), run("cd -", ""), run(TEST, B)], {}),
        ([run(TEST, A), run(TEST, '{"exit_code": 1, "output": "cannot start"}')], {}),
        ([run(TEST, f"{A}\nexit code: 1"), run(TEST, f"{B}\nexit code: 1")], {1: ("run again", 2)}),
        ([run(TEST, A), run(TEST, CUT)], {}),
        ([Step("search_files", {"pattern": "x"}, A), Step("search_files", {"pattern": "x"}, B)], {1: ("run again", 2)}),
        ([Step("search_files", {"pattern": "x"}, A), Step("search_files", {"pattern": "x"}, "as before")], {}),
        ([Step("page_down", {}, A), Step("page_down", {}, B)], {}),
        ([Step("read_next", {}, A), Step("read_next", {}, B)], {}),
        ([Step("process", {"action": "poll", "id": 1}, A), Step("process", {"action": "poll", "id": 1}, B)], {}),
        ([Step("send_mail", {"to": "x"}, A), Step("send_mail", {"to": "x"}, B)], {}),
    ],
)
def test_run_again(steps: list[Step], expected: dict[int, tuple[Rule, int]]) -> None:
    """The same command in the same place; not what only looks the same, like the next page of something."""
    assert ruled(*steps) == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([Step("todo", {"todos": [1]}, A), Step("todo", {"todos": [2]}, B)], {1: ("older snapshot", 2)}),
        ([Step("TodoWrite", {"todos": [1]}, A), Step("TodoWrite", {"todos": []}, B)], {1: ("older snapshot", 2)}),
        ([Step("todo", {"todos": [1]}, A), Step("todo", {"todos": 2}, '{"error": "no"}')], {}),
        ([run("git status", A), run("git status --short", B)], {1: ("older snapshot", 2)}),
        ([run("git status", A), run("git status && git diff", B)], {}),
        ([Step("get_order_status", {"id": 1}, A), Step("get_order_status", {"id": 1}, B)], {1: ("older snapshot", 2)}),
        ([Step("get_order_status", {"id": 1}, A), Step("get_order_status", {"id": 2}, B)], {}),
        ([Step("update_task_status", {"id": 1}, A), Step("update_task_status", {"id": 1}, B)], {}),
    ],
)
def test_older_snapshots(steps: list[Step], expected: dict[int, tuple[Rule, int]]) -> None:
    assert ruled(*steps) == expected


def test_old_replies_of_expand() -> None:
    """The last ten calls are as recent as their pin."""
    others = [run(f"step {number}", text(100, f"s{number}")) for number in range(10)]

    assert ruled(Step("expand", {"id": "r-aaaaaaaaaa"}, A), *others) == {1: ("expanded", 0)}
    assert ruled(Step("expand", {"id": "r-aaaaaaaaaa"}, A), *others[1:]) == {}


@pytest.mark.parametrize(
    "arguments", ["", "{", "[]", "null", '{"path": 5}', '{"path": ""}', '{"command": ["ls"]}', "[" * 5_000]
)
def test_odd_arguments_settle_nothing(arguments: str) -> None:
    assert ruled(Step("read_file", arguments, A), Step("read_file", arguments, B)) in ({}, {1: ("run again", 2)})


def test_parts_of_one_group_are_calls_like_others() -> None:
    arguments = json.dumps({"path": "a.py"})
    group = assistant(None, call("c1", "read_file", arguments), call("c2", "read_file", arguments))
    messages = [user(GOAL), group, result("c1", A), result("c2", B)]

    assert {n: r.rule for n, r in rulings(Transcript.parse(messages)).items()} == {1: "read again"}


# --- in a pass ------------------------------------------------------------------------------------------------------


def test_what_a_rule_settles_is_not_asked_about_and_says_why(tmp_path: Any) -> None:
    steps = [
        read("a.py", A),
        run("cat b.txt", B),
        write("a.py"),
        read("a.py", C),
        *(run(f"e {n}", "ok") for n in "123"),
    ]
    messages = [user(GOAL)]
    for number, step in enumerate(steps, 1):
        messages += pair(number, step.content, step.tool, step.arguments)
    judge, store = Fixed(0.9, 0.9), Store(tmp_path)

    pruned = prune(messages, judge, store, Settings())

    assert set(judge.question_ids) == {"t2_call", "t2_output", "t4_call", "t4_output"}
    assert [(d.exchange.ordinal, d.action, d.reason) for d in pruned.decisions] == [
        (1, "remove", "rule: call 4 read it again"),
        (2, "keep", "output needed"),
        (4, "keep", "output needed"),
    ]
    assert pruned.receipt.decisions[0].reason == "rule: call 4 read it again"
    assert restore(pruned.messages, store) == messages
    assert prune(pruned.messages, judge, store, Settings()).messages == pruned.messages


def test_a_result_that_failed_keeps_its_excerpt(tmp_path: Any) -> None:
    failed = f"{A}\nexit code: 1"
    messages = [user(GOAL)]
    for number, content in enumerate([failed, failed, "ok", "ok", "ok"], 1):
        messages += pair(number, content, "terminal", {"command": f"step {number}"})

    pruned = prune(messages, Fixed(0.9, 0.9), Store(tmp_path), Settings())

    first = pruned.decisions[0]
    assert (first.action, first.reason) == ("truncate", "rule: call 2 returned the same")


# --- what calls say -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "command", "after"),
    [
        ("", "ls", ""),
        ("", "cd /srv/app", "/srv/app"),
        ("/srv", "cd app && make", "/srv/app"),
        ("/srv", "make; cd ..", "/"),
        ("/srv", "cd 'app'", "/srv/app"),
        ("/srv", "cd", "~"),
        ("/srv", "cd ~/app", "~/app"),
        ("/srv", "(cd app; make)", "/srv"),
        ("/srv", "echo cd app", "/srv"),
        ("/srv", "pushd /var/x\nmake", "/var/x"),
    ],
)
def test_places(place: str, command: str, after: str) -> None:
    assert place_after(place, command) == after


def test_a_place_that_cannot_be_followed_is_no_other() -> None:
    assert place_after("/srv", "cd $HOME") not in ("/srv", "~", "")
    assert absolute("a/../b.py", "/srv") == absolute("/srv/b.py", "/var/x") == "/srv/b.py"


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({}, (1, float("inf"))),
        ({"offset": 5, "limit": 10}, (5, 14)),
        ({"offset": 0, "limit": 10}, (1, 10)),
        ({"offset": "5"}, (5, float("inf"))),
        ({"start_line": 3, "end_line": 7}, (3, 7)),
        ({"view_range": [3, 7]}, (3, 7)),
        ({"offset": "five"}, None),
        ({"offset": True}, None),
        ({"view_range": [3]}, None),
        ({"page": 3}, None),
        ({"offset": 3, "end_line": 9}, None),
    ],
)
def test_lines(arguments: dict[str, Any], lines: tuple[float, float] | None) -> None:
    assert lines_of(arguments) == lines


def test_fields_of_a_call() -> None:
    assert path_of(fields_of('{"command": "cd /x && cat -n lib/a.py"}')) == "lib/a.py"
    assert path_of(fields_of('{"command": "cat a.py | grep x"}')) == ""
    assert fields_of("[1]") == fields_of("{") == fields_of('"x"') == {}
    assert written_by("reads", {"path": "a.py"}) == frozenset()
    assert written_by("shell", {"command": "cat x | tee out.txt"}) == {"out.txt"}
    assert kind_of("TodoWrite") == "writes"
