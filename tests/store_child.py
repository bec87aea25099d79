"""What the tests of the store run in processes of their own: `python store_child.py MODE FOLDER …`.

PYTHONPATH names the checkout. Each mode prints one line of JSON per step, at once.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from hermes_jev.errors import StoreError
from hermes_jev.prune import prune
from hermes_jev.store import Keep, Kept, Store

Answer = tuple[str | None, str | None]

ROOT = Path(__file__).resolve().parents[1]


def item(name: str, number: int, size: int = 5_000) -> Keep:
    """An original that any process can make again; its text hardly compresses."""
    text = random.Random(f"{name} {number}").randbytes(size // 2).hex()
    return Keep("terminal", json.dumps({"command": name, "number": number}), text, "ok", lambda id: f"{name} in {id}")


def start(*arguments: object, bound_by_modes: bool = False, within: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start this file in another process; its lines come through `stdout`.

    `within` is a command that runs it. With `bound_by_modes` the modes of files hold for it even when the tests run as
    the superuser.
    """
    return subprocess.Popen(
        [*within, sys.executable, __file__, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=give_up_override if bound_by_modes else None,
    )


def give_up_override() -> None:
    """What this process starts next may not pass over the modes of files; Linux only, as far as it is needed."""
    if os.geteuid() == 0:
        drop_from_bounding_set, dac_override, dac_read_search = 24, 1, 2
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (dac_override, dac_read_search):
            if libc.prctl(drop_from_bounding_set, capability, 0, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "a capability could not be given up")


def answers(lines: Sequence[str]) -> list[Answer]:
    return [(id, error) for line in lines for id, error in json.loads(line)]


def refused(given: Sequence[Kept | StoreError], words: str) -> None:
    """Every item was refused, in words that name the file and the reason and nothing else of the path."""
    assert given
    for one in given:
        assert isinstance(one, StoreError)
        assert words in str(one)
        assert "/" not in str(one)


def opens_exactly(store: Store, keep: Keep, id: str) -> None:
    back = store.get(id, None)
    assert (back.tool, back.arguments, back.result) == (keep.tool, keep.arguments, keep.result)
    assert store.original_of(keep.render(id)) == back


def _show(answers: list[Kept | StoreError]) -> None:
    print(json.dumps([[one.id, None] if isinstance(one, Kept) else [None, str(one)] for one in answers]), flush=True)


def _writer(store: Store, name: str, many: str) -> None:
    for number in range(int(many)) if int(many) else count():
        _show(store.keep(name, [item(name, number)]))


def _killed(store: Store) -> None:
    """For each name on stdin an endless writer that somebody else kills: its process id, its answers, `ended`."""
    for line in sys.stdin:
        process_id = os.fork()
        if process_id == 0:
            print(os.getpid(), flush=True)
            _writer(store, line.strip(), "0")
        os.waitpid(process_id, 0)
        print("ended", flush=True)


def mixed(number: int) -> Keep:
    """Originals of which every tenth, the first included, is larger than the limit of the tests."""
    return item("limited", number, size=20_000 if number % 10 else 700_000)


def _limited(store: Store, limit: str, many: str) -> None:
    # Python ignores the signal, so a write beyond the limit fails as one on a full disk does: in the middle.
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    _show(store.keep("s", [mixed(number) for number in range(int(many))]))


def _pass(store: Store, many: str, size: str) -> None:
    """One pass over a session of large results; how each is afterwards, and the receipt's line."""
    messages: list[Any] = [{"role": "user", "content": "go on"}]
    results = [random.Random(f"pass {number}").randbytes(int(size)).hex() for number in range(int(many))]
    for number, result in enumerate(results):
        function = {"name": "terminal", "arguments": json.dumps({"number": number})}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    settings = {"pin_last_calls": 0, "output_threshold": 1, "call_threshold": 1}
    pruned = prune(messages, judge="lexical", store=store, settings=settings)
    after = [message["content"] for message in pruned.messages if message["role"] == "tool"]
    whole = [new == old for new, old in zip(after, results, strict=True)]
    behind = store.originals_of(after)
    exact = [at in behind and behind[at].result == result for at, result in enumerate(results)]
    print(json.dumps({"whole": whole, "exact": exact, "line": pruned.receipt.summary()}), flush=True)


def _bound(store: Store, pointer: str) -> None:
    try:
        print(json.dumps(store.get(pointer, None).result), flush=True)
    except StoreError as error:
        print(json.dumps({"error": str(error)}), flush=True)
    _show(store.keep("s", [item("bound", 0), item("bound", 1)]))


MODES: dict[str, Callable[..., None]] = {
    "writer": _writer,
    "killed": _killed,
    "limited": _limited,
    "bound": _bound,
    "pass": _pass,
}

if __name__ == "__main__":
    MODES[sys.argv[1]](Store(Path(sys.argv[2])), *sys.argv[3:])
