"""Listen on one address and answer System One requests, each in a thread of its own. Nothing of a request is kept or
logged."""

from __future__ import annotations

import errno
import hmac
import ipaddress
import json
import logging
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from uuid import uuid4

from ..errors import ConfigError
from . import answering
from .schema import Refused, Reply, listed_models, problem, read_body

logger = logging.getLogger(__name__)

ROUTE, MODELS = "/v1/systemone", "/v1/models"
MOST_BYTES = 4_000_000
"""A longer body is over every limit on tokens."""
PATIENCE_S = 30.0
"""How long a connection may say nothing."""

_WORDS = {
    errno.EADDRINUSE: "the port is in use; choose another, or 0 for a free one",
    errno.EADDRNOTAVAIL: "that is no address of this machine",
    errno.EACCES: "this user may not listen there; choose a port from 1024 on",
}


class Server:
    """A service that listens from the moment it is made. `port` 0 takes a free one.

    `key`, if given, is what requests must carry (`Authorization: Bearer …`). Raises ConfigError when the address cannot
    be listened on, or is not loopback and `expose` is false.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, *, key: str | None = None, expose: bool = False) -> None:
        family, address = _resolved(host, port)
        if not expose and not ipaddress.ip_address(address.partition("%")[0]).is_loopback:
            raise ConfigError(f"{host} can be reached from other machines; --expose says that this is meant")
        try:
            self._http = _Http(family, (address, port), key)
        except OSError as error:
            raise ConfigError(f"{host} port {port}: {_why(error)}") from None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        """The root of the service, without a path."""
        host = str(self._http.server_address[0])
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def run(self) -> None:
        """Answer requests until `stop` is called from another thread, or until KeyboardInterrupt."""
        try:
            self._http.serve_forever(poll_interval=0.1)
        finally:
            self._http.server_close()

    def stop(self) -> None:
        """End `run`; requests at work are not waited for."""
        self._http.shutdown()


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ConfigError(f"{host}: there is no such address on this machine") from None
    family, _, _, _, address = found[0]
    return family, str(address[0])


def _why(error: OSError) -> str:
    return _WORDS.get(error.errno or 0, f"cannot be listened on: {error.strerror}")


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, family: socket.AddressFamily, address: tuple[str, int], key: str | None) -> None:
        self.address_family = family
        self.key = key
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """As the base does, without asking a name server for this machine's name."""
        # Without this a port that was closed a moment ago counts as in use; it does not let two servers share one.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is an ordinary event; whatever it is, the service goes on."""
        logger.debug("a connection ended early", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "hermes_jev", ""
    timeout = PATIENCE_S

    def do_GET(self) -> None:
        """The list of models."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Questions."""
        self._answer(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """No access log: it would hold nothing of use."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses by itself, as JSON."""
        self.close_connection = True
        self._send(Reply(int(code), {"detail": message or self.responses.get(code, ("Error",))[0]}))

    def _answer(self, work: Any) -> None:
        try:
            reply = work()
        except Refused as refusal:
            reply = refusal.reply
        except RecursionError:
            reply = problem(400, "api_usage_error", "The body is nested too deeply").reply
        except TimeoutError:
            self.close_connection = True
            return
        self._send(reply)

    def _get(self) -> Reply:
        if self._path() == ROUTE:
            raise Refused(Reply(405, {"detail": "Method Not Allowed"}))
        if self._path() != MODELS:
            raise Refused(Reply(404, {"detail": "Not Found"}))
        self._check_key()
        return Reply(200, listed_models())

    def _post(self) -> Reply:
        raw = self._body()
        if self._path() != ROUTE:
            raise Refused(Reply(404, {"detail": "Not Found"}))
        self._check_key()
        return Reply(200, answering.respond(read_body(raw)))

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _check_key(self) -> None:
        key = cast("_Http", self.server).key
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        if key is None:
            return
        if scheme.lower() != "bearer" or not given.strip():
            raise problem(403, "authentication_error", "Must supply an API key! Check your request and try again.")
        if not hmac.compare_digest(given.strip().encode("latin-1", "replace"), key.encode()):
            raise problem(401, "authentication_error", "Cannot authenticate with the server. Check your API key.")

    def _body(self) -> bytes:
        """The body, whole. Raises Refused for one whose length is not said, too long, or cut off."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise problem(411, "api_usage_error", "Content-Length is needed")
        if len(length) > 12 or int(length) > MOST_BYTES:
            self.close_connection = True
            raise problem(413, "max_tokens_exceeded")
        raw = self.rfile.read(int(length))
        if len(raw) < int(length):
            self.close_connection = True
            raise problem(400, "api_usage_error", "The body is shorter than Content-Length")
        if self.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise problem(415, "api_usage_error", "Content-Encoding is not supported")
        return raw

    def _send(self, reply: Reply) -> None:
        payload = json.dumps(reply.data).encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.send_header("x-typesafe-request-id", f"req_{uuid4().hex}")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)
