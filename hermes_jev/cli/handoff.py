"""`jev handoff`: the request to a writer, printed; nothing is sent."""

from __future__ import annotations

import os
from typing import Any

from ..egress import Gate
from ..errors import InputError
from ..handoff import material_of, request, safe
from ..history import hermes_home, read_session
from ..select import LIMIT
from .common import (
    OK,
    Commands,
    add_command,
    judge_argument,
    only_conversation,
    out,
    say,
    set_argument,
    settings_from,
    whole_number,
)


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "handoff",
        "Print the request for a handoff: the whole dialogue and what to write of it. HANDOFF_JEV=1: a digest of it.",
        "jev handoff session.json > request.txt",
        _run,
    )
    command.add_argument("file", metavar="FILE", nargs="?", help="a transcript; - is stdin")
    command.add_argument("--session", metavar="ID", help="a session of Hermes' own history instead")
    command.add_argument("--limit", type=whole_number, default=LIMIT, metavar="N", help="characters of the digest")
    judge_argument(command)
    set_argument(command)


def _run(arguments: Any) -> int:
    if (arguments.file is None) == (arguments.session is None):
        raise InputError("handoff: give a FILE or --session ID, one of them")
    settings = settings_from(arguments.set)
    if arguments.session:
        messages: list[Any] = list(read_session(hermes_home(os.environ), arguments.session))
    else:
        messages = only_conversation(arguments.file)
    found = material_of(messages, os.environ, settings, arguments.judge, arguments.limit)
    if found.note:
        say(found.note)
    # What is printed here is meant for a writer elsewhere.
    out(request(safe(found.text, Gate()), arguments.session or ""))
    return OK
