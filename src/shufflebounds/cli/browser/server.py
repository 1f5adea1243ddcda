"""The command ``shufflebounds ui``: serves the calculator's page to a browser on the same machine.

The server listens on the loopback address alone and answers GET requests whose path begins with the random token of its address.
The Host header must name this address, so that a page of another site that resolves its own name to 127.0.0.1 gets no answer. All
files of the page are read before the first request; no request opens a file.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import socketserver
import sys
import threading
import warnings
import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl

from shufflebounds._base.progress import elsewhere
from shufflebounds._base.types import InconsistentBoundsError
from shufflebounds.cli.browser.questions import answer, fields, tradeoff
from shufflebounds.cli.output.printing import as_json
from shufflebounds.cli.parsers import Parser, number

__all__ = ["Calculator", "add_arguments", "run"]

HOST = "127.0.0.1"
MOST_FIELDS = 40
"""Largest number of fields of a query; every mechanism has fewer than half as many options. Raised: more work for a query that is
refused."""

TYPES = {"calculator.html": "text/html", "calculator.css": "text/css", "calculator.js": "text/javascript"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
                               "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of every reply: the browser loads nothing from elsewhere and shows the page in no frame."""


class _Warnings(threading.local):
    """The warnings of the request that this thread answers."""

    def __init__(self) -> None:
        self.texts: list[str] = []


_warnings = _Warnings()


class Calculator(socketserver.ThreadingTCPServer):
    """The server, with its token and with the files of the page in memory."""

    daemon_threads = True
    block_on_close = False
    # On Windows, True would let the server use the port of another program.
    allow_reuse_address = os.name != "nt"
    request_queue_size = 64

    def __init__(self, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.token = secrets.token_urlsafe(16)
        port = self.server_address[1]
        self.address = f"http://{HOST}:{port}/{self.token}/"
        # A browser omits port 80 from the Host header.
        self.hosts = {f"{name}{end}" for name in (HOST, "localhost") for end in (f":{port}", *([""] if port == 80 else []))}
        place = resources.files("shufflebounds.cli.browser")
        self.files = {name: (place.joinpath(name).read_bytes(), kind) for name, kind in TYPES.items()}
        self.files[""] = self.files.pop("calculator.html")
        self.files["calculator_fields.json"] = (json.dumps(fields()).encode(), "application/json")


    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the traceback of an error, unless the error is that the browser has closed the connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request. Every method but GET is refused by the base class."""

    server: Calculator
    timeout = 30
    server_version, sys_version = "shufflebounds", ""

    def do_GET(self) -> None:
        if self.headers.get("Host") not in self.server.hosts:
            self._reply(HTTPStatus.FORBIDDEN, b"another host\n", "text/plain")
            return
        path, _, query = self.path.partition("?")
        begin = f"/{self.server.token}/"
        page = path[len(begin) :]
        if not secrets.compare_digest(path[: len(begin)].encode(), begin.encode()):
            self._reply(HTTPStatus.NOT_FOUND, b"not here: open the address that the command printed\n", "text/plain")
        elif page in self.server.files:
            self._reply(HTTPStatus.OK, *self.server.files[page])
        elif page in ("answer", "tradeoff"):
            status, told = self._answered(answer if page == "answer" else tradeoff, query)
            self._reply(status, as_json(told).encode(), "application/json")
        else:
            self._reply(HTTPStatus.NOT_FOUND, b"no such page\n", "text/plain")

    @staticmethod
    def _answered(question: Any, query: str) -> tuple[HTTPStatus, dict[str, Any]]:
        """Return the answer to a query with the warnings of the library, or its error."""
        _warnings.texts = []
        try:
            with elsewhere():
                told = question(dict(parse_qsl(query, max_num_fields=MOST_FIELDS)))
        except (ValueError, InconsistentBoundsError) as problem:
            return HTTPStatus.BAD_REQUEST, {"error": str(problem)}
        return HTTPStatus.OK, {**told, "warnings": _warnings.texts}

    def _reply(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing."""


def _noted(message: Warning | str, *place: Any, **keywords: Any) -> None:
    """Store a warning for the reply to the request that caused it."""
    _warnings.texts.append(str(message))


def add_arguments(parser: Parser, words: list[str]) -> None:
    """Add the arguments of the sub-command to its parser."""
    parser.add_argument("--port", type=number, default=0, help="port of the loopback address (default: any that is free)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")


def run(arguments: argparse.Namespace) -> None:
    """Serve the page until Ctrl-C."""
    if not isinstance(arguments.port, int) or not 0 <= arguments.port < 2**16:
        raise ValueError(f"port={arguments.port!r} must be an integer in 0..65535")
    try:
        server = Calculator(arguments.port)
    except OSError as problem:
        raise ValueError(f"port={arguments.port!r} cannot be used: {problem.strerror}; leave --port out for a free one") from None
    with server:
        print(f"The calculator is at {server.address}\nCtrl-C stops it.", flush=True)
        if not arguments.no_browser:
            webbrowser.open(server.address)
        with warnings.catch_warnings():
            # A warning is shown again for every request that causes it.
            warnings.simplefilter("always")
            warnings.showwarning = _noted
            server.serve_forever()
