"""A simulated API: a real HTTP server in a thread, with prepared answers. It refuses requests without a valid
signature.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.cli.sigv4 import is_signed_by
from tests.support.http_server import QuietHandler, QuietServer, served

KEY, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "eu-central-1"
PREFIX = "/restapis/ab12/api/_user_request_"  # a stage in the path, as the local cloud has it


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Played:
    """An answer. ``content`` of type bytes is sent unchanged; ``hang_up`` closes the connection without an answer;
    ``after`` are the seconds that the answer takes."""

    status: int = 200
    content: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False
    after: float = 0.0


@dataclass
class PlayedApi:
    """``answers`` holds the answers per method and path: one after another, and the last one repeats."""

    url: str = ""
    answers: dict[tuple[str, str], list[Played]] = field(default_factory=dict)
    lists: dict[str, list[Any]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    def play(self, method: str, path: str, *answers: Any) -> None:
        """Prepare answers. A document means the answer 200."""
        self.answers[method, path] = [a if isinstance(a, Played) else Played(200, a) for a in answers]

    def refuse(self, method: str, path: str, status: int, code: str, message: str, **more: str) -> None:
        error = {"code": code, "message": message, "field": None, "hint": None, **more}
        self.play(method, path, Played(status, {"error": error}))

    def sent(self, method: str, path: str) -> list[Request]:
        return [request for request in self.requests if (request.method, request.path) == (method, path)]

    def answer(self, request: Request) -> Played:
        self.requests.append(request)
        prepared = self.answers.get((request.method, request.path))
        if prepared:
            return prepared.pop(0) if len(prepared) > 1 else prepared[0]
        if request.method == "GET" and request.path in self.lists:
            return Played(200, self._page(self.lists[request.path], request.query))
        name = request.path.rpartition("/")[2]
        error = {"code": "not_found", "message": f"nothing named {name!r}", "field": None, "hint": None}
        return Played(404, {"error": error})

    def _page(self, items: list[Any], query: dict[str, str]) -> Any:
        start = int(query.get("cursor", "0"))
        end = start + int(query.get("limit", "50"))
        return {"items": items[start:end], "next_cursor": str(end) if end < len(items) else None}


@contextmanager
def playing() -> Iterator[PlayedApi]:
    api = PlayedApi()

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two writes, and the second would wait for an answer

        def do(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            if not is_signed_by(KEY, SECRET, REGION, self.command, self.path, headers, content):
                message = "The request signature we calculated does not match the signature you provided."
                self._send(Played(403, {"message": message}))
                return
            parts = urlsplit(self.path)
            body = json.loads(content) if content else None
            path = parts.path.removeprefix(PREFIX)
            self._send(api.answer(Request(self.command, path, dict(parse_qsl(parts.query)), headers, body)))

        do_GET = do_PUT = do_POST = do_DELETE = do

        def _send(self, played: Played) -> None:
            time.sleep(played.after)
            if played.hang_up:
                self.close_connection = True
                return
            raw = played.content if isinstance(played.content, bytes) else json.dumps(played.content).encode()
            self.send_response(played.status)
            for name, value in {"Content-Type": "application/json", **played.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    with served(QuietServer(Handler)) as server:
        api.url = f"{server.url}{PREFIX}"
        yield api
