"""`jev serve`: the lexical judge as a System One service."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ..errors import ConfigError
from ..serve import Server
from .common import OK, Commands, add_command, say


def add(commands: Commands) -> None:
    """Describe the command."""
    command = add_command(
        commands,
        "serve",
        "Answer System One requests with the lexical judge, offline, until Ctrl-C.",
        "jev serve --port 8765    (then TYPESAFE_BASE_URL=http://127.0.0.1:8765)",
        _run,
    )
    command.add_argument("--port", type=_port, default=8765, metavar="N", help="where to listen; 0 takes a free port")
    command.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="this machine alone by default")
    command.add_argument("--expose", action="store_true", help="allow an address that other machines can reach")
    command.add_argument("--key-env", metavar="VARIABLE", help="refuse requests without the key in this variable")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text[:40]!r}")
    return int(text)


def _run(arguments: Any) -> int:
    server = Server(arguments.host, arguments.port, key=_key(arguments.key_env), expose=arguments.expose)
    say(f"the lexical judge answers at {server.url}/v1/systemone; Ctrl-C ends it")
    try:
        server.run()
    except KeyboardInterrupt:
        say("ended")
    return OK


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"--key-env {variable}: that variable is not set")
    return key
