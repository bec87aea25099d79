"""Record the session that `jev demo` shows: a real Hermes host does a small engineering job.

    .venv/bin/python benchmarks/record_demo.py --host .venv-host-0.19/bin/python

The host, its tools and all their output are real: the tests fail and pass, the files are read and patched, in a
project built in a temporary folder (demo_project.py). Only the model is a script. What is recorded is what the host
sent to it, in OpenAI chat format without the system prompt, with the folder's name replaced. The result is
hermes_jev/data/demo_session.json.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import demo_project
from demo_turns import TURNS

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from host_run import HostHome, make_home  # noqa: E402 - the helpers of the tests are no package
from model_server import Message, ModelServer, Steps  # noqa: E402

TARGET = ROOT / "hermes_jev" / "data" / "demo_session.json"
PLACE = "/workspace/orders-import"
WINDOW = 200_000
"""Tokens: wide enough that the host compacts nothing while the session is recorded."""

_RENAMED = (
    # pytest's folders hold the user's name and a running number.
    (re.compile(r"/tmp/pytest-of-\w+/pytest-\d+"), "/workspace/tmp"),
    (re.compile(r"/[\w./-]+/bin/python3?\b"), "/usr/bin/python3"),
    (re.compile(r"\bin \d+\.\d\ds\b"), "in 0.21s"),
)
_FORBIDDEN = re.compile(r"/tmp/|/root\b|/home/|/Users/|site-packages|venv|\w@(?!pytest)\w+\.\w|\d{1,3}(?:\.\d{1,3}){3}")


def furnish(host: HostHome) -> None:
    """Give the session's login shell the pytest of this python, without plugins, colours or anyone's git settings."""
    lines = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_PAGER": "cat",
        "COLUMNS": "100",
    }
    profile = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in lines.items())
    for name in (".profile", ".bashrc"):
        (host.folder / "user" / name).write_text(profile, encoding="utf-8")


def record(python: Path, folder: Path) -> list[Message]:
    """Run all turns in one session; the messages the host sent last, and the last answer."""
    session = None
    with ModelServer(Steps([]), context_length=WINDOW) as model:
        host = make_home(python, folder, model.url, plugin=None, context_length=WINDOW)
        furnish(host)
        demo_project.build(host.work)
        for request, steps in TURNS:
            model.script = Steps(steps)
            run = host.chat(request, resume=session, toolsets="terminal,file", timeout_s=300)
            if run.rc or model.failures:
                raise SystemExit(f"the host ended with {run.rc}: {model.failures} {run.stdout} {run.stderr}")
            session = run.session_id
        said = [message for message in model.requests[-1]["messages"] if message["role"] != "system"]
        answer: Message = {"role": "assistant", "content": TURNS[-1][1][-1]["text"]}
        return [plain(message, host) for message in [*said, answer]]


def plain(message: Mapping[str, Any], host: HostHome) -> Message:
    """The message with the keys of the OpenAI format, and without what differs between machines and runs."""
    keys = ("role", "content", "tool_calls", "tool_call_id")
    text = json.dumps({key: message[key] for key in keys if key in message}, ensure_ascii=False)
    text = text.replace(str(host.work), PLACE)
    for pattern, name in _RENAMED:
        text = pattern.sub(name, text)
    return dict(json.loads(text))


def problems(messages: Sequence[Message]) -> list[str]:
    """What would make the session unfit to be shipped."""
    text = json.dumps(messages, ensure_ascii=False)
    found = [f"names a machine or a person: {match[0]!r}" for match in _FORBIDDEN.finditer(text)]
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    if calls != results:
        found.append("calls and results do not pair")
    if len(calls) < 25:
        found.append(f"only {len(calls)} tool calls")
    size = sum(len(message["content"] or "") for message in messages)
    if not 120_000 <= size <= 250_000:
        found.append(f"{size:,} characters")
    return found


def main() -> None:
    """Record, check, write."""
    parser = argparse.ArgumentParser(description="record the session that `jev demo` shows")
    parser.add_argument("--host", type=Path, required=True, help="python of a venv with hermes-agent 0.19")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="orders-import-") as folder:
        messages = record(options.host.absolute(), Path(folder))
    found = problems(messages)
    if found:
        raise SystemExit("\n".join(found))
    lines = ",\n".join(json.dumps(message, ensure_ascii=False) for message in messages)
    options.out.write_text(f'{{"messages": [\n{lines}\n]}}\n', encoding="utf-8")
    size = sum(len(message["content"] or "") for message in messages)
    print(f"{options.out}: {len(messages)} messages, {size:,} characters")


if __name__ == "__main__":
    main()
